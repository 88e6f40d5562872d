"""Finds adapters by the name that the configuration uses, and makes them.

Discord, Slack, Telegram, WhatsApp and the webhook are built in; any installed package adds its own by an entry point in
the group ``limpet.adapters`` that names a class such as ``WebhookAdapter``. Nothing of an adapter is imported before it
is asked for by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

from adapters.errors import AdapterError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.metadata import EntryPoint
    from pathlib import Path

    from pydantic import BaseModel

    from adapters.adapter import Adapter
    from adapters.linking import Shown

GROUP = "limpet.adapters"

_BUILT_IN = {
    "discord": "adapters.discord:DiscordAdapter",
    "slack": "adapters.slack:SlackAdapter",
    "telegram": "adapters.telegram:TelegramAdapter",
    "webhook": "adapters.webhook:WebhookAdapter",
    "whatsapp": "adapters.whatsapp:WhatsAppAdapter",
}


_ONE_WRITING = frozenset({"discord", "slack", "telegram", "webhook"})
"""Those whose ids are written in one way only, so that a file which names them doesn't load them."""


class Identity(Protocol):
    """Who an account turned out to be on its platform.

    ``username`` is what others call it by, "" where it has none but its ``name``; ``link`` is where they write to it.
    """

    @property
    def id(self) -> str: ...
    @property
    def username(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def link(self) -> str: ...


class Finding(Protocol):
    """``what`` is the case, one sentence, where no error tells of it; ``mend`` is what to do if it is not wanted."""

    @property
    def what(self) -> str: ...
    @property
    def mend(self) -> str: ...


class AdapterClass(Protocol):
    """What a name stands for: something that makes an adapter of an account's name and its settings.

    The settings may have a static ``asked(options)``: which of several secrets have to be asked for, in that order.
    It may have ``async inspect(settings, groups) -> list[Finding]``, which asks the platform about the account and the
    groups where it is to answer.

    Where ``keeps_folder`` is true it keeps something between runs: it is made with ``folder=``, a folder of the
    account's own, and so are ``check`` and ``inspect`` called. An account that a person links by their phone has
    ``async link(settings, *, phone, show, folder) -> Identity`` instead of secrets. Where ``is_isolated`` is true it
    works in a process of its own. Where people write ids of senders in more than one way (a phone number), a static
    ``canonical_id(written) -> str`` says how its events have it, and raises ValueError with the mend.
    """

    @property
    def settings_model(self) -> type[BaseModel]: ...

    def __call__(self, account: str, settings: Any, **kept: Any) -> Adapter: ...

    async def check(self, settings: Any, **kept: Any) -> Identity:
        """Ask the platform whose the secrets are, without receiving anything. Raises ``adapters.errors``."""


class UnknownAdapterError(AdapterError):
    """No adapter has that name; the message holds the names there are."""

    def __init__(self, kind: str, known: tuple[str, ...]) -> None:
        import difflib

        close = difflib.get_close_matches(kind, known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        super().__init__(f"no adapter is called {kind!r}.{hint} Known: {', '.join(known)}")
        self.kind = kind


class BrokenAdapterError(AdapterError):
    """What another package brings as an adapter can't be imported; ``package`` is what has to be updated or removed."""

    def __init__(self, kind: str, package: str, reason: str) -> None:
        super().__init__(f"the adapter {kind!r} of the package {package} can't be loaded: {reason}")
        self.package = package


def names() -> tuple[str, ...]:
    """The names of all adapters, sorted; loads none."""
    return tuple(sorted({*_BUILT_IN, *_entry_points()}))


def settings_model(kind: str) -> type[BaseModel]:
    """The model that checks the settings of one account. Raises UnknownAdapterError and BrokenAdapterError."""
    return _load(kind).settings_model


def build(kind: str, account: str, settings: BaseModel, folder: Path) -> Adapter:
    """The adapter of one account; it does nothing until it is run. Raises UnknownAdapterError.

    ``folder`` is where it may keep what it needs between runs; it need not be there.
    """
    adapter = _load(kind)
    kept = _kept(adapter, folder)
    if getattr(adapter, "is_isolated", False):
        from adapters.isolated.host import isolated

        return isolated(_place(kind), account, settings, kept)
    return adapter(account, settings, **kept)


async def check(kind: str, settings: BaseModel, folder: Path) -> Identity:
    """Who the account of ``settings`` is. Raises UnknownAdapterError, AuthFailed and what else the platform says."""
    adapter = _load(kind)
    return await adapter.check(settings, **_kept(adapter, folder))


async def inspect(kind: str, settings: BaseModel, groups: Sequence[str], folder: Path) -> Sequence[Finding]:
    """What keeps the account from hearing or answering in ``groups``; none where the adapter has no eye for it.

    Raises as ``check`` does.
    """
    adapter = _load(kind)
    look = getattr(adapter, "inspect", None)
    if look is None:
        await adapter.check(settings, **_kept(adapter, folder))
        return ()
    return cast("Sequence[Finding]", await look(settings, groups, **_kept(adapter, folder)))


def canonical_id(kind: str, written: str) -> str:
    """The id of a sender in the writing of the platform's events. Raises ValueError for what can't be one."""
    if kind in _ONE_WRITING:
        return written
    try:
        found = getattr(_load(kind), "canonical_id", None)
    except AdapterError:  # nothing of it is there, which is told of elsewhere
        return written
    return written if found is None else cast(str, found(written))


def is_linked(kind: str) -> bool:
    """Whether its accounts are linked by a person, and have no secrets. Raises UnknownAdapterError."""
    return hasattr(_load(kind), "link")


async def link(
    kind: str, settings: BaseModel, folder: Path, *, phone: str | None, show: Callable[[Shown], None]
) -> Identity:
    """Link an account to us: ``show`` is called with what its person has to see, each time that it changes.

    ``phone`` is its number for a code that is typed, in any writing; None for one that is photographed. Raises
    Unreachable, and AuthFailed where it came to nothing, with the mend.
    """
    adapter = cast(Any, _load(kind))
    return cast(Identity, await adapter.link(settings, phone=phone, show=show, folder=folder))


def _kept(adapter: AdapterClass, folder: Path) -> dict[str, Any]:
    return {"folder": folder} if getattr(adapter, "keeps_folder", False) else {}


def _load(kind: str) -> AdapterClass:
    """A package can't take over a built-in name."""
    import pkgutil

    if place := _BUILT_IN.get(kind):
        return cast(AdapterClass, pkgutil.resolve_name(place))
    if entry_point := _entry_points().get(kind):
        try:
            return cast(AdapterClass, entry_point.load())
        except AdapterError:  # a missing extra of its own
            raise
        except Exception as error:  # whatever its import does, the other channels go on
            package = entry_point.dist.name if entry_point.dist else entry_point.value
            raise BrokenAdapterError(kind, package, f"{type(error).__name__}: {error}") from error
    raise UnknownAdapterError(kind, names())


def _place(kind: str) -> str:
    """Where the class of ``kind`` is: "package.module:Class"."""
    return _BUILT_IN.get(kind) or _entry_points()[kind].value


def _entry_points() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {entry_point.name: entry_point for entry_point in entry_points(group=GROUP)}
