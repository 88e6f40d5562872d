"""The settings: what may stand in ``limpet.toml``, and how it becomes one validated value.

A value comes from ``LIMPET_*`` in the environment, else from the file, else from its default. Each package brings its
own settings (``agents.settings``, ``workspaces.memory.settings``, the adapters'); this module puts them together and
checks what only the hub can see: that a binding names an agent, that no two bindings ask the same. Nothing here writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import time, timedelta
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeAlias, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    WrapValidator,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from adapters import registry
from adapters.errors import MissingExtra
from agents.settings import BudgetSettings, ModelName, ModelNames, ModelsSettings
from agents.tools.settings import ToolSettings
from bot import router
from bot.access import ChatPolicy, DirectPolicy, Joining, Policy
from bot.agent_names import MAIN, agent_tables, template_of
from bot.errors import Problem
from bot.home import Home
from bot.queueing import Queue, QueueMode
from bot.scope import Per
from bot.spelling import did_you_mean
from bot.zone import suggested, zone
from workspaces.installation import install_extra
from workspaces.memory.settings import MemorySettings
from workspaces.scope import Level

UNAVAILABLE = "unavailable"
"""The type of the error of a channel whose package is not installed: only that channel can't be had."""

TERMINAL = "terminal"
"""The channel that needs no settings."""


def channel_names() -> tuple[str, ...]:
    """What a message's channel can be called."""
    return (TERMINAL, *registry.names())


def refusal(message: str, mend: str | None = None) -> PydanticCustomError:
    """What a validator raises: ``message`` names the value, ``mend`` what to write instead."""
    return PydanticCustomError("refused", "{message}", {"message": message, "mend": mend})


def _number_as_text(value: Any) -> Any:
    """Ids are text, but Telegram's look like numbers and are often written without quotes."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _id(value: str) -> str:
    value = value.strip()
    if not value:
        raise refusal("an empty id allows nobody", "take it out")
    if value.startswith("@"):
        raise refusal(
            f"{value!r} is a name, and names change hands",
            'write the number; a person needs none where direct = "pairing": they get a code for you to approve',
        )
    return value


def _account_id(value: str) -> str:
    channel, _, sender = value.strip().partition(":")
    if sender and channel not in channel_names():
        raise refusal(f"{value!r} names no channel", did_you_mean(channel, channel_names()))
    if not sender or sender.startswith("@"):
        what = "is a name, and names change hands" if "@" in value else "lacks the channel"
        raise refusal(f"{value!r} {what}", 'write channel and id: "telegram:123456789"')
    return value.strip()


def _agent_name(value: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,63}", value):
        raise refusal(f"{value!r} can't be the name of an agent", "use a-z, 0-9 and -, at most 64 of them")
    return value


def _zone_name(value: str) -> str:
    if zone(value) is None:
        found = suggested(value)
        mend = f"did you mean {found!r}?" if found else 'use a name of the tz database: "Europe/Berlin"'
        raise refusal(f"{value!r} is no time zone", mend)
    return value


def _absolute(value: Path) -> Path:
    path = value.expanduser()
    if not path.is_absolute():
        raise refusal(f"{str(value)!r} is relative, and to what is not known", f'write it out: "~/{value}"')
    return path


Id = Annotated[str, BeforeValidator(_number_as_text), AfterValidator(_id)]
"""A platform's own id of a sender, a chat or the like; a whole number is taken for its digits."""

AccountId = Annotated[str, AfterValidator(_account_id)]
"""A sender with the channel: "telegram:123456789"."""


class _Table(BaseModel):
    """One table of the file: unknown keys are refused, values don't change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TemplateSettings(_Table):
    """``[templates.<name>]``: what a workspace of its own is made from, for each chat or each sender of a binding.

    Its files lie in ``templates/<name>`` of the home; they are made with the first such workspace, and a change of one
    of them reaches all who have none of their own.
    """

    model: ModelNames | None = Field(
        None,
        examples=["ollama/qwen3:4b"],
        description="A model, or a list as in ``models.default``. None: the default of ``[models]``.",
    )
    time_zone: Annotated[str, AfterValidator(_zone_name)] | None = Field(
        None,
        examples=["Europe/Berlin"],
        description="Where its days begin. None: what USER.md says, else the zone of this machine.",
    )
    recall: Literal["auto", "tool", "off"] = Field(
        "auto",
        description='Whether its memory is searched before each turn ("auto"), only when it asks ("tool"), or never.',
    )
    tools: ToolSettings = Field(default_factory=ToolSettings, description="What its tools may do.")
    curate: bool = Field(
        True,
        description="Whether, once a day when nobody talks, what the notes say twice becomes a line of MEMORY.md.",
    )
    reset_after_idle: timedelta | None = Field(
        None,
        gt=timedelta(0),
        examples=["PT8H"],
        description='After so long without a word ("PT8H" is eight hours) a conversation begins anew, what matters of '
        "the old one noted first. None: never.",
    )
    reset_daily_at: time | None = Field(
        None,
        examples=["04:00"],
        description="When, in its time zone, conversations begin anew each day. None: never.",
    )


class AgentSettings(TemplateSettings):
    """``[agents.<name>]``: one assistant with its own workspace and memory."""

    workspace: Annotated[Path, AfterValidator(_absolute)] | None = Field(
        None, examples=["~/notes"], description="The folder of its Markdown. None: ``workspaces/<name>`` of the home."
    )


class ChatSettings(_Table):
    """``[channels.<name>.chats."<id>"]``: what is otherwise in one group and its threads than in the others."""

    require_mention: bool | None = Field(
        None, description="Whether a message must address the bot to be answered. None: as everywhere on the channel."
    )
    allow: tuple[Id, ...] | None = Field(
        None, examples=[["123456789"]], description="Who is answered there, by id. None: whoever speaks there."
    )

    @property
    def policy(self) -> ChatPolicy:
        return ChatPolicy(self.require_mention, None if self.allow is None else frozenset(self.allow))


Options = TypeVar("Options", bound=BaseModel)


class ChannelSettings(_Table, Generic[Options]):
    """``[channels.<name>]``: one account on one platform, and who may talk to it there."""

    kind: str = Field(
        examples=["telegram"], description="The adapter. The name of the section unless it says otherwise."
    )
    enabled: bool = Field(True, description="Whether the hub answers there.")
    direct: DirectPolicy = Field(
        "pairing",
        description="Who may write directly: also strangers with a pairing code, the allowlist only, anyone, nobody.",
    )
    allow: tuple[Id, ...] = Field(
        (),
        examples=[["123456789"]],
        description='Senders who may write directly, by id. "*" is everyone (with direct = "open"). Empty: nobody.',
    )
    groups: tuple[Id, ...] = Field(
        (), examples=[["-1001234567890"]], description='Groups it answers in, by chat id; "*" is any. Empty: none.'
    )
    require_mention: bool = Field(True, description="Whether a message in a group must address the bot to be answered.")
    stream: bool = Field(
        True, description="Whether an answer is shown while it is being written, where that is possible."
    )
    acknowledge: str = Field(
        "",
        max_length=16,
        examples=["👀"],
        description="An emoji that it puts on a message while it works on the answer, where that is possible.",
    )
    blocked: tuple[Id, ...] = Field(
        (), examples=[["987654321"]], description="Senders who are not heard anywhere on this account, by id."
    )
    chats: dict[str, ChatSettings] = Field(
        default_factory=dict, description="What is otherwise in one of its groups, by chat id."
    )
    joining: Joining = Field(
        "say",
        description="What it does when it is added to a group that it may not answer in: says so once, with the mend; "
        "leaves; or keeps quiet.",
    )
    queue: QueueMode | None = Field(
        None,
        examples=["collect"],
        description="What becomes of a message that comes while another is answered. None: ``mode`` of ``[queue]``.",
    )
    options: Options
    """What the adapter itself can be told; in the file these keys stand beside the others."""

    @model_validator(mode="after")
    def _open_means_everyone(self) -> ChannelSettings[Options]:
        if self.direct == "open" and "*" not in self.allow:
            raise refusal(
                'direct = "open" lets anyone talk, and allow doesn\'t say so', 'if it is meant: allow = ["*"]'
            )
        if self.direct != "open" and "*" in self.allow:
            raise refusal(
                f'allow has "*", everyone, but direct is "{self.direct}"', 'if everyone is meant: direct = "open"'
            )
        return self

    @property
    def policy(self) -> Policy:
        return Policy(
            self.direct,
            frozenset(self.allow),
            frozenset(self.groups),
            frozenset(self.blocked),
            self.require_mention,
            {chat: own.policy for chat, own in self.chats.items()},
            self.joining,
        )


class BindingSettings(_Table):
    """``[[bindings]]``: the agent that answers what matches all the other keys; one without any answers the rest."""

    agent: str | None = Field(None, examples=["main"], description="Who answers what matches.")
    template: str | None = Field(
        None,
        examples=["support"],
        description="Instead of ``agent``: each chat that matches has a workspace of its own, made from this one of "
        "``[templates]`` with the first message.",
    )
    per: Per = Field("chat", description="With ``template``: whether each chat or each sender has its own.")
    channel: str | None = Field(None, examples=["telegram"], description="A platform.")
    account: str | None = Field(None, examples=["telegram"], description="A section of ``[channels]``.")
    space: Id | None = Field(None, examples=["T0123456789"], description="A guild (Discord) or team (Slack).")
    role: Id | None = Field(None, examples=["1234567890"], description="A role of the sender in the space.")
    chat: Id | None = Field(
        None, examples=["-1001234567890"], description='A chat and its threads; "*" is any chat that is not direct.'
    )
    thread: Id | None = Field(None, examples=["42"], description="One thread or topic of the chat.")
    sender: Id | None = Field(None, examples=["123456789"], description="One sender, by id.")

    @model_validator(mode="after")
    def _one_answers(self) -> BindingSettings:
        if self.agent is None and self.template is None:
            raise refusal("says nobody who answers", 'add agent = "main"')
        if self.agent is not None and self.template is not None:
            raise refusal("has an agent and a template: only one can answer", "take one of them out")
        if self.template is None and "per" in self.model_fields_set:
            raise refusal("per says nothing without template", "take it out, or write template in the place of agent")
        if self.template is not None and self.channel is None and self.account is None:
            raise refusal("template says nothing without channel", "add channel = …")
        return self

    @model_validator(mode="after")
    def _ids_belong_to_something(self) -> BindingSettings:
        place = self.channel or self.account
        needs = (
            ("space", self.space, "channel", place),
            ("chat", self.chat, "channel", place),
            ("sender", self.sender, "channel", place),
            ("role", self.role, "space", self.space),
            ("thread", self.thread, "chat", self.chat),
        )
        for key, value, around, given in needs:
            if value is not None and given is None:
                raise refusal(f"{key} = {value!r} says nothing without {around}", f"add {around} = …")
        return self

    @property
    def match(self) -> router.Match:
        return router.Match(**self.model_dump(exclude={"agent", "template", "per"}))

    def binding(self, origin: str) -> router.Binding:
        """As the router takes it; ``origin`` is where it stands."""
        if self.template is not None:
            return router.Binding(self.template, self.match, origin, self.per)
        return router.Binding(self.agent or MAIN, self.match, origin)


class IdentitySettings(_Table):
    """``[identities.<name>]``: a person with several accounts, and what they are at least on each of them."""

    accounts: tuple[AccountId, ...] = Field(examples=[["telegram:123456789"]], description="The accounts.")
    level: Literal["guest", "member"] | None = Field(
        None, description='What the person is: "guest" or "member". None: what each account was let in as.'
    )


FileKind: TypeAlias = Literal["image", "audio", "voice", "video", "document", "sticker"]


class MediaSettings(_Table):
    """``[media]``: which of the files that come with messages are fetched."""

    kinds: tuple[FileKind, ...] = Field(
        default=get_args(FileKind),
        examples=[["image", "voice", "document"]],
        description="What is fetched; of anything else the agent only hears that it came.",
    )
    max_mb: float = Field(
        default=20,
        gt=0,
        le=1_000,
        description="The largest file that is fetched, in MB. Telegram hands out no more than 20.",
    )
    max_files: int = Field(default=10, ge=1, description="How many files of one message are fetched.")
    timeout: float = Field(
        default=60, gt=0, description="How long fetching the files of one message may take, in seconds."
    )

    @property
    def max_bytes(self) -> int:
        return int(self.max_mb * 1_000_000)


class QueueSettings(_Table):
    """``[queue]``: how messages wait while another one of the same conversation is answered."""

    mode: QueueMode = Field(
        default="steer",
        description="Of the same person in the same place: words join the running turn (steer), wait and are answered "
        "together (collect), are each answered alone (followup), or end the running turn, which begins anew with them "
        "(interrupt). ``/queue`` in a chat changes it there.",
    )
    debounce: float = Field(
        default=0.0,
        ge=0,
        le=60,
        examples=[2.5],
        description="What somebody says within so many seconds of their message before is one question. 0: nothing is "
        "waited for.",
    )
    most_waiting: int = Field(
        default=20,
        ge=1,
        description="How many messages may wait in one conversation. Beyond it the oldest are left out, and the next "
        "answer knows which.",
    )

    @property
    def queue(self) -> Queue:
        return Queue(self.mode, self.debounce, self.most_waiting)


class LimitsSettings(_Table):
    """``[limits]``: how much may be said. The terminal and ``/stop`` have no limit."""

    per_sender: int = Field(default=60, ge=1, description="Messages to the bot that one sender may send in a minute.")
    per_chat: int = Field(default=180, ge=1, description="Messages to the bot that a chat may bring in a minute.")


class VoiceSettings(_Table):
    """``[voice]``: how the agent comes to read what is said."""

    model: ModelName | None = Field(
        default=None,
        examples=["openai/whisper-1"],
        description="A model that writes down what is said in a voice note, as provider/model or the name of a "
        "[models.<name>] table with the address of another server. Not set: the agent is told that it can't listen.",
    )


def _channel(section: Any, handler: Any) -> Any:
    """The section, its keys parted into the hub's own and those of the adapter that ``kind`` names."""
    if not isinstance(section, Mapping):
        return handler(section)
    kind = section["kind"]
    if kind not in registry.names():
        raise refusal(f"no channel is called {kind!r}", did_you_mean(str(kind), registry.names()))
    try:
        model = registry.settings_model(kind)
    except MissingExtra as error:
        context = {"message": str(error), "mend": f"install it: {install_extra(error.extra)}"}
        raise PydanticCustomError(UNAVAILABLE, "{message}", context) from error
    except registry.BrokenAdapterError as error:
        context = {"message": str(error), "mend": f"update {error.package}, or uninstall it"}
        raise PydanticCustomError(UNAVAILABLE, "{message}", context) from error
    common = ChannelSettings.model_fields.keys() - {"options"}
    parted: dict[str, Any] = {key: value for key, value in section.items() if key in common}
    parted["options"] = {key: value for key, value in section.items() if key not in common}
    return ChannelSettings[model].model_validate(parted)  # type: ignore[valid-type]  # made for the kind at hand


class Settings(BaseSettings):
    """Everything that can be set. An absent file is all defaults: one agent ``main``, in the terminal."""

    model_config = SettingsConfigDict(
        extra="forbid", frozen=True, env_prefix="LIMPET_", env_nested_delimiter="__", validate_default=False
    )

    owners: tuple[AccountId, ...] = Field(
        (),
        examples=[["telegram:123456789"]],
        description="Accounts of whoever owns this bot: they share the home memory and have every right. The terminal "
        "is the owner's anyway.",
    )
    identities: dict[str, tuple[AccountId, ...] | IdentitySettings] = Field(
        default_factory=dict,
        examples=[{"ann": ["telegram:123456789", "telegram:987654321"]}],
        description="Accounts that are one person, by a name for them: they share a session and a memory. As a "
        "table it says what the person is, too: ``[identities.ann]`` with ``accounts`` and ``level``.",
    )
    agents: dict[Annotated[str, AfterValidator(_agent_name)], AgentSettings] = Field(
        default_factory=dict,
        description="The assistants, each with its own workspace and memory. `main` is always one of them, with or "
        "without a table; a table adds an agent and takes none away. `main` answers in the terminal and wherever no "
        "binding names another. To put another in its place everywhere, bind it without any key: `[[bindings]]` with "
        "nothing but `agent`.",
    )
    templates: dict[Annotated[str, AfterValidator(_agent_name)], TemplateSettings] = Field(
        default_factory=dict,
        description="What the workspaces of bindings with ``template`` are made from.",
    )
    channels: dict[str, Annotated[ChannelSettings[Any], WrapValidator(_channel)]] = Field(
        default_factory=dict, description="An account on a platform, and who may talk to the bot there."
    )
    bindings: tuple[BindingSettings, ...] = Field(
        (),
        description="Which agent answers where. A binding is for what fits all of its keys; the most exact one wins.",
    )
    models: ModelsSettings = Field(
        default_factory=ModelsSettings, description="Which model answers, and how it is reached."
    )
    budget: BudgetSettings = Field(default_factory=BudgetSettings, description="What the models may cost.")
    memory: MemorySettings = Field(default_factory=MemorySettings, description="How notes are indexed and found.")
    media: MediaSettings = Field(
        default_factory=MediaSettings, description="Which of the files that come with messages are fetched."
    )
    voice: VoiceSettings = Field(default_factory=VoiceSettings, description="How voice notes are understood.")
    queue: QueueSettings = Field(
        default_factory=QueueSettings, description="How messages wait while another one is answered."
    )
    limits: LimitsSettings = Field(default_factory=LimitsSettings, description="How much may be said.")

    _degraded: dict[str, Problem] = PrivateAttr(default_factory=dict)
    _warnings: tuple[Problem, ...] = PrivateAttr(())
    _routes: tuple[router.Binding, ...] = PrivateAttr(())

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the signature is pydantic-settings'
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what ``load`` has put together: the environment must be the one that was passed to it."""
        return (init_settings,)

    @model_validator(mode="before")
    @classmethod
    def _main_is_there(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or not isinstance(data.get("agents", {}), Mapping):
            return data
        return {**data, "agents": agent_tables(data)}

    @field_validator("channels", mode="before")
    @classmethod
    def _kind_is_the_name(cls, sections: Any) -> Any:
        if not isinstance(sections, Mapping):
            return sections
        return {n: {"kind": n, **s} if isinstance(s, Mapping) else s for n, s in sections.items()}

    def attach(
        self, degraded: Mapping[str, Problem], warnings: Sequence[Problem], routes: Sequence[router.Binding]
    ) -> None:
        """Note what only the loader knows; once, before anyone else has the settings."""
        self._degraded = dict(degraded)
        self._warnings = tuple(warnings)
        self._routes = tuple(routes)

    @property
    def degraded(self) -> Mapping[str, Problem]:
        """Channels that can't start because a secret or a package is missing, and why. They are not in ``channels``."""
        return self._degraded

    @property
    def warnings(self) -> Sequence[Problem]:
        """What is allowed but hardly meant, such as an allowlist that is empty."""
        return self._warnings

    def routes(self) -> Sequence[router.Binding]:
        """The bindings for the router, each with the line it stands on."""
        return self._routes

    def policies(self) -> Mapping[tuple[str, str], Policy]:
        """Who may talk where, by channel and account (the name of the section)."""
        return {(section.kind, name): section.policy for name, section in self.channels.items()}

    def signs(self) -> Mapping[tuple[str, str], str]:
        """What is put on a message while it is answered, by channel and account."""
        return {(section.kind, name): section.acknowledge for name, section in self.channels.items()}

    def accounts(self) -> Mapping[str, Sequence[str]]:
        """The accounts of each identity, by its name."""
        return {n: own.accounts if isinstance(own, IdentitySettings) else own for n, own in self.identities.items()}

    def identity_levels(self) -> Mapping[str, Level]:
        """What each identity is at least, where the settings say it."""
        tables = {n: own for n, own in self.identities.items() if isinstance(own, IdentitySettings)}
        return {name: Level[own.level.upper()] for name, own in tables.items() if own.level is not None}

    def streams(self) -> frozenset[tuple[str, str]]:
        """Where answers are shown while they are being written, by channel and account."""
        return frozenset((section.kind, name) for name, section in self.channels.items() if section.stream)

    def queues(self) -> Mapping[tuple[str, str], QueueMode]:
        """How messages queue where that is set for the channel, by channel and account."""
        return {(section.kind, name): section.queue for name, section in self.channels.items() if section.queue}

    @property
    def default_agent(self) -> str:
        """Who answers where no other binding matches: the agent of a binding without any key, else ``main``."""
        agents = (binding.agent for binding in self.bindings if binding.match == router.Match())
        return next(filter(None, agents), MAIN)

    def agent(self, name: str) -> TemplateSettings:
        """What is set for the agent ``name``, or for the template of that name and all that is made from it.

        Raises KeyError where neither is known.
        """
        return self.agents.get(name) or self.templates[template_of(name) or name]

    def workspace(self, agent: str, home: Home) -> Path:
        """The folder of the agent's Markdown."""
        own = self.agents.get(agent)
        return (own and own.workspace) or home.workspace(agent)


def secrets_in(settings: Settings) -> set[str]:
    """Every secret among the settings, for the redactor of the log."""
    return set(_secrets(settings))


def _secrets(value: Any) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, BaseModel):
        for _, inner in value:
            yield from _secrets(inner)
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _secrets(inner)
