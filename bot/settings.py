"""The settings: what may stand in ``limpet.toml``, and how it becomes one validated value.

A value comes from ``LIMPET_*`` in the environment, else from the file, else from its default. Each package brings its
own settings (``agents.settings``, ``workspaces.memory.settings``, the adapters'); this module puts them together and
checks what only the hub can see: that a binding names an agent, that no two bindings ask the same. Nothing here writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
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
from agents.settings import BudgetSettings, ModelsSettings
from bot import router
from bot.access import Policy
from bot.agent_names import MAIN, agent_tables, template_of
from bot.errors import Problem
from bot.home import Home
from bot.queueing import QueueMode
from bot.spelling import did_you_mean
from bot.tables import (
    AccountId,
    AgentSettings,
    BindingSettings,
    ChannelSettings,
    IdentitySettings,
    LimitsSettings,
    MediaSettings,
    QueueSettings,
    TemplateSettings,
    VoiceSettings,
    agent_name,
    refusal,
    sender_canonical,
    senders_canonical,
)
from workspaces.installation import install_extra
from workspaces.memory.settings import MemorySettings
from workspaces.scope import Level

UNAVAILABLE = "unavailable"
"""The type of the error of a channel whose package is not installed: only that channel can't be had."""


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
    section = senders_canonical(kind, section)
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
    agents: dict[Annotated[str, AfterValidator(agent_name)], AgentSettings] = Field(
        default_factory=dict,
        description="The assistants, each with its own workspace and memory. `main` is always one of them, with or "
        "without a table; a table adds an agent and takes none away. `main` answers in the terminal and wherever no "
        "binding names another. To put another in its place everywhere, bind it without any key: `[[bindings]]` with "
        "nothing but `agent`.",
    )
    templates: dict[Annotated[str, AfterValidator(agent_name)], TemplateSettings] = Field(
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

    @model_validator(mode="before")
    @classmethod
    def _bound_senders_are_canonical(cls, data: Any) -> Any:
        """A binding that names a section, and no platform, has its senders' ids in the writing of that platform."""
        sections, bindings = (data.get("channels"), data.get("bindings")) if isinstance(data, Mapping) else (None, None)
        if not isinstance(sections, Mapping) or not isinstance(bindings, list | tuple):
            return data
        kinds = {name: section.get("kind", name) for name, section in sections.items() if isinstance(section, Mapping)}

        def written(binding: Any) -> Any:
            account = binding.get("account") if isinstance(binding, Mapping) else None
            kind = kinds.get(account) if isinstance(account, str) else None
            return binding if kind is None or "channel" in binding else sender_canonical(kind, binding)

        return {**data, "bindings": [written(binding) for binding in bindings]}

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
