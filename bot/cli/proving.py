"""A new channel is tried before it is kept: its settings as a whole, its secrets, and whose account it is."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bot.cli import output
from bot.errors import BotError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bot.config import Draft
    from bot.home import Home
    from bot.tables import ChannelSettings
    from bot.toml_positions import Key


@dataclass(frozen=True, slots=True)
class Secret:
    """The setting without which a channel can't be: its key, its usual variable, and where it is from, in words."""

    field: str
    variable: str
    description: str

    @classmethod
    def needed(cls, name: str, sections: Mapping[str, Any]) -> list[Secret]:
        """The secrets that a channel is asked for: those that its settings' ``asked`` names, else its first."""
        from adapters.errors import AdapterError
        from adapters.registry import settings_model
        from bot.config import secret_variable
        from bot.config_keys import field_at, secret_fields

        section = sections["channels"][name]
        try:
            asked = getattr(settings_model(section["kind"]), "asked", None)
        except AdapterError:  # its package is missing, which is told of when the settings are made
            return []
        found = []
        for field in asked(section) if asked else secret_fields(name, sections)[:1]:
            key = ("channels", name, field)
            variable, setting = secret_variable(key, sections), field_at(key, sections)
            if variable is not None and setting is not None:
                found.append(cls(field, variable, setting.description or ""))
        return found

    @property
    def label(self) -> str:
        return self.field.replace("_", " ").capitalize()


def drafted(home: Home, name: str, changes: Mapping[Key, Any], secrets: Mapping[str, str]) -> Draft:
    """The file with the channel, checked as a whole. Raises BotError where the channel could not be started."""
    from bot.config import Draft

    draft = Draft.of(home, changes, {**os.environ, **secrets})
    if problem := draft.settings.degraded.get(name):
        raise BotError(problem.message, problem.mend)
    return draft


def without_secret(home: Home, name: str, changes: Mapping[Key, Any]) -> tuple[Draft, Any]:
    """The checked settings, and whose the account is."""
    from adapters.errors import AuthFailed

    draft = drafted(home, name, changes, {})
    try:
        return draft, asyncio.run(_identity(draft.settings.channels[name], home, name))
    except AuthFailed as error:
        raise BotError(str(error)) from error


def with_secrets(
    home: Home, name: str, changes: Mapping[Key, Any], asked: Sequence[Secret], given: str | None
) -> tuple[Draft, Any]:
    """The same, with secrets that were tried and are kept in .env; ``given`` is the first of them."""
    from bot.environment import Environment, store

    environment = Environment.of(home)
    known = {one.variable: environment.get(one.variable) for one in asked}
    known[asked[0].variable] = given or known[asked[0].variable]
    rest = {variable: secret or "not asked for yet" for variable, secret in known.items()}
    drafted(home, name, changes, rest)  # what is wrong with the rest comes first
    secrets, identity = _proven(home, name, changes, asked, known, is_given=given is not None)
    draft = drafted(home, name, changes, secrets)
    for variable, secret in secrets.items():
        if environment.get(variable) != secret:
            store(home.env_file, variable, secret)
        if os.environ.get(variable) not in (None, "", secret):
            output.note(f"The environment has another {variable}, and that wins.")
    return draft, identity


def _proven(
    home: Home,
    name: str,
    changes: Mapping[Key, Any],
    asked: Sequence[Secret],
    known: Mapping[str, str | None],
    *,
    is_given: bool,
) -> tuple[dict[str, str], Any]:
    """The secrets and whose they are, by the platform's word. A person is asked, and again where one is refused."""
    from adapters.errors import AuthFailed

    place = "" if is_given else _places(home, [variable for variable, secret in known.items() if secret])
    while True:
        secrets = {one.variable: known.get(one.variable) or _asked(one) for one in asked}
        section = drafted(home, name, changes, secrets).settings.channels[name]
        try:
            return secrets, asyncio.run(_identity(section, home, name))
        except AuthFailed as error:
            if is_given or not output.is_interactive():
                raise BotError(f"{error}{place}") from error
            output.note(f"{error}{place}")
            known, place = {}, ""


def _asked(secret: Secret) -> str:
    if answer := output.ask(f"{secret.label} of the bot ({secret.variable})", secret=True):
        return answer
    raise UsageError(f"no {secret.field} was given", secret.description)


def _places(home: Home, variables: Sequence[str]) -> str:
    """Where secrets that nobody typed were found, in brackets; "" for none."""
    from bot.environment import Environment

    environment = Environment.of(home)
    found = [f"{variable} of {environment.place(variable)}" for variable in variables]
    verb = "it is" if len(found) == 1 else "they are"
    return f" ({verb} {' and '.join(found)})" if found else ""


async def _identity(section: ChannelSettings[Any], home: Home, name: str) -> Any:
    """Ask the platform whose the account is. Raises AuthFailed, and BotError with the platform's word."""
    from adapters import registry
    from adapters.errors import AdapterError, Ambiguous, AuthFailed
    from bot.errors import Unavailable

    try:
        return await registry.check(section.kind, section.options, home.channel(section.kind, name))
    except AuthFailed:
        raise
    except AdapterError as error:
        if error.may_retry or isinstance(error, Ambiguous):
            raise Unavailable(str(error), "nothing was saved; try again when the network is there") from error
        raise BotError(str(error)) from error
