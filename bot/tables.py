"""The tables that may stand in ``limpet.toml``, one model each, and the ids and names in them.

Each checks what it can see by itself. What they make together is ``settings``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import time, timedelta
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeAlias, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)
from pydantic_core import PydanticCustomError

from adapters import registry
from agents.settings import ModelName, ModelNames
from agents.tools.settings import ToolSettings
from bot import router
from bot.access import ChatPolicy, DirectPolicy, Joining, Policy
from bot.agent_names import MAIN
from bot.queueing import Queue, QueueMode
from bot.scope import Per
from bot.spelling import did_you_mean
from bot.zone import suggested, zone

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
    return f"{channel}:{canonical(channel, sender)}"


def canonical(channel: str, sender: str) -> str:
    """The id of a sender as the events of ``channel`` have it. Raises a refusal for what can't be one."""
    if channel == TERMINAL or sender == "*":
        return sender
    try:
        return registry.canonical_id(channel, sender)
    except ValueError as error:
        what, _, mend = str(error).partition(": ")
        raise refusal(what, mend or None) from error


def sender_canonical(kind: Any, binding: Mapping[str, Any]) -> Mapping[str, Any]:
    """``binding`` with the id of its sender in the writing of the platform ``kind``, if there is one of that name."""
    if _is_id(binding.get("sender")) and isinstance(kind, str) and kind in channel_names():
        return {**binding, "sender": canonical(kind, str(binding["sender"]))}
    return binding


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def senders_canonical(kind: str, section: Mapping[str, Any]) -> dict[str, Any]:
    """``section`` of a channel with every id of a sender in the platform's own writing."""

    def each(ids: Any) -> Any:
        known = isinstance(ids, list | tuple)
        return [canonical(kind, str(one)) if _is_id(one) else one for one in ids] if known else ids

    found = {key: each(value) if key in ("allow", "blocked") else value for key, value in section.items()}
    if isinstance(chats := section.get("chats"), Mapping):
        found["chats"] = {
            chat: {**own, "allow": each(own["allow"])} if isinstance(own, Mapping) and "allow" in own else own
            for chat, own in chats.items()
        }
    return found


def agent_name(value: str) -> str:
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


class Table(BaseModel):
    """One table of the file: unknown keys are refused, values don't change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TemplateSettings(Table):
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


class ChatSettings(Table):
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


class ChannelSettings(Table, Generic[Options]):
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


class BindingSettings(Table):
    """``[[bindings]]``: the agent that answers what matches all the other keys; one without any answers the rest."""

    agent: str | None = Field(None, examples=["main"], description="Who answers what matches.")
    template: str | None = Field(
        None,
        examples=["support"],
        description="Instead of ``agent``: each chat that matches has a workspace of its own, made from this one of "
        "``[templates]`` with the first message.",
    )
    per: Per | None = Field(
        None, description="With ``template``: whether each chat or each sender has its own. None: each chat."
    )
    channel: str | None = Field(None, examples=["telegram"], description="A platform.")
    account: str | None = Field(None, examples=["telegram"], description="A section of ``[channels]``.")
    space: Id | None = Field(None, examples=["T0123456789"], description="A guild (Discord) or team (Slack).")
    role: Id | None = Field(None, examples=["1234567890"], description="A role of the sender in the space.")
    chat: Id | None = Field(
        None, examples=["-1001234567890"], description='A chat and its threads; "*" is any chat that is not direct.'
    )
    thread: Id | None = Field(None, examples=["42"], description="One thread or topic of the chat.")
    sender: Id | None = Field(None, examples=["123456789"], description="One sender, by id.")

    @model_validator(mode="before")
    @classmethod
    def _sender_is_canonical(cls, data: Any) -> Any:
        return sender_canonical(data.get("channel"), data) if isinstance(data, Mapping) else data

    @model_validator(mode="after")
    def _one_answers(self) -> BindingSettings:
        if self.agent is None and self.template is None:
            raise refusal("says nobody who answers", 'add agent = "main"')
        if self.agent is not None and self.template is not None:
            raise refusal("has an agent and a template: only one can answer", "take one of them out")
        if self.template is None and self.per is not None:
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
            return router.Binding(self.template, self.match, origin, self.per or "chat")
        return router.Binding(self.agent or MAIN, self.match, origin)


class IdentitySettings(Table):
    """``[identities.<name>]``: a person with several accounts, and what they are at least on each of them."""

    accounts: tuple[AccountId, ...] = Field(examples=[["telegram:123456789"]], description="The accounts.")
    level: Literal["guest", "member"] | None = Field(
        None, description='What the person is: "guest" or "member". None: what each account was let in as.'
    )


FileKind: TypeAlias = Literal["image", "audio", "voice", "video", "document", "sticker"]


class MediaSettings(Table):
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


class QueueSettings(Table):
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


class LimitsSettings(Table):
    """``[limits]``: how much may be said. The terminal has no limit, and ``/stop`` one of its own."""

    per_sender: int = Field(default=60, ge=1, description="Messages to the bot that one sender may send in a minute.")
    per_chat: int = Field(default=180, ge=1, description="Messages to the bot that a chat may bring in a minute.")


class VoiceSettings(Table):
    """``[voice]``: how the agent comes to read what is said."""

    model: ModelName | None = Field(
        default=None,
        examples=["openai/whisper-1"],
        description="A model that writes down what is said in a voice note, as provider/model or the name of a "
        "[models.<name>] table with the address of another server. Not set: the agent is told that it can't listen.",
    )
