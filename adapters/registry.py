"""Finds adapters by the name that the configuration uses, and makes them.

Telegram is built in; any installed package adds its own by an entry point in the group ``limpet.adapters`` that names a
class such as ``TelegramAdapter``. Nothing of an adapter is imported before it is asked for by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

from adapters.errors import AdapterError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from pydantic import BaseModel

    from adapters.adapter import Adapter

GROUP = "limpet.adapters"

_BUILT_IN = {"telegram": "adapters.telegram:TelegramAdapter"}


class Identity(Protocol):
    """Who an account turned out to be on its platform; ``username`` is what others call it by."""

    @property
    def id(self) -> str: ...
    @property
    def username(self) -> str: ...
    @property
    def name(self) -> str: ...


class AdapterClass(Protocol):
    """What a name stands for: something that makes an adapter of an account's name and its settings."""

    @property
    def settings_model(self) -> type[BaseModel]: ...

    def __call__(self, account: str, settings: Any) -> Adapter: ...

    async def check(self, settings: Any) -> Identity:
        """Ask the platform whose the secrets are, without receiving anything. Raises ``adapters.errors``."""


class UnknownAdapterError(AdapterError):
    """No adapter has that name; the message holds the names there are."""

    def __init__(self, kind: str, known: tuple[str, ...]) -> None:
        import difflib

        close = difflib.get_close_matches(kind, known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        super().__init__(f"no adapter is called {kind!r}.{hint} Known: {', '.join(known)}")
        self.kind = kind


def names() -> tuple[str, ...]:
    """The names of all adapters, sorted; loads none."""
    return tuple(sorted({*_BUILT_IN, *_entry_points()}))


def settings_model(kind: str) -> type[BaseModel]:
    """The model that checks the settings of one account. Raises UnknownAdapterError."""
    return _load(kind).settings_model


def build(kind: str, account: str, settings: BaseModel) -> Adapter:
    """The adapter of one account; it does nothing until it is run. Raises UnknownAdapterError."""
    return _load(kind)(account, settings)


async def check(kind: str, settings: BaseModel) -> Identity:
    """Who the account of ``settings`` is. Raises UnknownAdapterError, AuthFailed and what else the platform says."""
    return await _load(kind).check(settings)


def _load(kind: str) -> AdapterClass:
    """A package can't take over a built-in name."""
    import pkgutil

    if place := _BUILT_IN.get(kind):
        return cast(AdapterClass, pkgutil.resolve_name(place))
    if entry_point := _entry_points().get(kind):
        return cast(AdapterClass, entry_point.load())
    raise UnknownAdapterError(kind, names())


def _entry_points() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {entry_point.name: entry_point for entry_point in entry_points(group=GROUP)}
