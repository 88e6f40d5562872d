"""``limpet channels``: connect the bot to Telegram and the like."""

from __future__ import annotations

import asyncio
import os
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli import output
from bot.cli.options import JsonOption, YesOption
from bot.errors import BotError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bot.config import Draft
    from bot.home import Home
    from bot.tables import ChannelSettings
    from bot.toml_positions import Key

app = typer.Typer(help="Connect the bot to Telegram and the like.")

NameArgument = Annotated[str, typer.Argument(help="discord, slack, telegram, webhook, or your own name with --kind.")]


@app.command("list")
def list_channels(ctx: typer.Context, json: JsonOption = False) -> None:
    """The configured channels and how they fare."""
    from bot.cli.status import channel_rows, gather

    channels = asyncio.run(gather(ctx.obj)).channels
    if not channels and not json:
        output.note("No channel is configured. Add one: limpet channels add telegram")
    text = output.table(channel_rows(channels))
    output.result(text, {"channels": [channel.as_dict() for channel in channels]}, as_json=json)


@app.command()
def add(
    ctx: typer.Context,
    name: NameArgument,
    kind: Annotated[str | None, typer.Option(help="The platform, where the name is another.")] = None,
    token: Annotated[
        str | None,
        typer.Option(
            help="The bot's token or secret; better left out: it is asked for, or taken from the environment."
        ),
    ] = None,
    extra: Annotated[
        list[str] | None, typer.Option("--set", help="A further setting of the channel, KEY=VALUE; may be repeated.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Add an account, or give one a new token or setting. All is tried before anything is saved.

    Its tokens (of a webhook: the secret) are kept in .env, not in the settings.
    """
    from adapters import registry
    from bot.config import build, secret_variable
    from bot.config_file import read
    from bot.environment import Environment
    from bot.spelling import did_you_mean
    from bot.start_record import advice

    home: Home = ctx.obj
    file = read(home.config)
    build(file, Environment.of(home))  # a file that is wrong elsewhere is told of first
    written = file.data.get("channels", {})
    platform = kind or written.get(name, {}).get("kind", name)
    if platform not in registry.names():
        raise UsageError(f"no channel is called {platform!r}", did_you_mean(platform, registry.names()))
    sections = {"channels": {**written, name: {"kind": platform}}}
    own = dict(_setting(text) for text in extra or ())
    sections["channels"][name] = {**written.get(name, {}), "kind": platform, **own}
    for key in own:
        if secret_variable(("channels", name, key), sections):
            raise UsageError(f"--set {key} would put a secret into the settings", "leave it out: it is asked for")
    asked = _Secret.needed(name, sections)
    changes = _changes(name, platform, written, own, asked)
    if asked:
        draft, identity = _with_secrets(home, name, changes, asked, token)
    elif token is not None:
        raise UsageError(f"a channel of the kind {platform!r} has no token", "leave --token out")
    else:
        draft, identity = _without_secret(home, name, changes)
    draft.write()
    who = f"@{identity.username}" if identity.username else identity.name
    where = "".join(f"; its {one.field} is {one.variable}" for one in asked)
    lines = [f"{who} is connected as channels.{name}{where}.", f"Write to it: {identity.link}"]
    lines.append(advice(home) or "It answers while this runs: limpet run")
    lines.append("It will give you a code; then: limpet pairing approve CODE --owner")
    data = {"name": name, "kind": platform, "username": identity.username, "link": identity.link}
    output.result("\n".join(lines), data, as_json=json)


@dataclass(frozen=True, slots=True)
class _Secret:
    """The setting without which a channel can't be: its key, its usual variable, and where it is from, in words."""

    field: str
    variable: str
    description: str

    @classmethod
    def needed(cls, name: str, sections: Mapping[str, Any]) -> list[_Secret]:
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


def _setting(text: str) -> tuple[str, Any]:
    """One ``KEY=VALUE``, the value as in TOML or just a text."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise UsageError(f"--set {text!r} is not KEY=VALUE", "for example: --set direct=allowlist")
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key, value


def _changes(
    name: str, platform: str, written: Mapping[str, Any], extra: Mapping[str, Any], asked: Sequence[_Secret]
) -> dict[Key, Any]:
    """What is set in the file: a new section, or only what differs in one that is there."""
    own = {**({"kind": platform} if platform != name else {}), **extra}
    if name not in written:
        return {("channels", name): own}
    own |= {one.field: f"${{{one.variable}}}" for one in asked if one.field in written[name]}
    return {("channels", name, key): value for key, value in own.items()}


def _drafted(home: Home, name: str, changes: Mapping[Key, Any], secrets: Mapping[str, str]) -> Draft:
    """The file with the channel, checked as a whole. Raises BotError where the channel could not be started."""
    from bot.config import Draft

    draft = Draft.of(home, changes, {**os.environ, **secrets})
    if problem := draft.settings.degraded.get(name):
        raise BotError(problem.message, problem.mend)
    return draft


def _without_secret(home: Home, name: str, changes: Mapping[Key, Any]) -> tuple[Draft, Any]:
    """The checked settings, and whose the account is."""
    from adapters.errors import AuthFailed

    draft = _drafted(home, name, changes, {})
    try:
        return draft, asyncio.run(_identity(draft.settings.channels[name]))
    except AuthFailed as error:
        raise BotError(str(error)) from error


def _with_secrets(
    home: Home, name: str, changes: Mapping[Key, Any], asked: Sequence[_Secret], given: str | None
) -> tuple[Draft, Any]:
    """The same, with secrets that were tried and are kept in .env; ``given`` is the first of them."""
    from bot.environment import Environment, store

    environment = Environment.of(home)
    known = {one.variable: environment.get(one.variable) for one in asked}
    known[asked[0].variable] = given or known[asked[0].variable]
    rest = {variable: secret or "not asked for yet" for variable, secret in known.items()}
    _drafted(home, name, changes, rest)  # what is wrong with the rest comes first
    secrets, identity = _proven(home, name, changes, asked, known, is_given=given is not None)
    draft = _drafted(home, name, changes, secrets)
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
    asked: Sequence[_Secret],
    known: Mapping[str, str | None],
    *,
    is_given: bool,
) -> tuple[dict[str, str], Any]:
    """The secrets and whose they are, by the platform's word. A person is asked, and again where one is refused."""
    from adapters.errors import AuthFailed

    place = "" if is_given else _places(home, [variable for variable, secret in known.items() if secret])
    while True:
        secrets = {one.variable: known.get(one.variable) or _asked(one) for one in asked}
        section = _drafted(home, name, changes, secrets).settings.channels[name]
        try:
            return secrets, asyncio.run(_identity(section))
        except AuthFailed as error:
            if is_given or not output.is_interactive():
                raise BotError(f"{error}{place}") from error
            output.note(f"{error}{place}")
            known, place = {}, ""


def _asked(secret: _Secret) -> str:
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


async def _identity(section: ChannelSettings[Any]) -> Any:
    """Ask the platform whose the account is. Raises AuthFailed, and BotError with the platform's word."""
    from adapters import registry
    from adapters.errors import AdapterError, Ambiguous, AuthFailed
    from bot.errors import Unavailable

    try:
        return await registry.check(section.kind, section.options)
    except AuthFailed:
        raise
    except AdapterError as error:
        if error.may_retry or isinstance(error, Ambiguous):
            raise Unavailable(str(error), "nothing was saved; try again when the network is there") from error
        raise BotError(str(error)) from error


@app.command()
def remove(ctx: typer.Context, name: NameArgument, yes: YesOption = False, json: JsonOption = False) -> None:
    """Take an account out of the settings. Its token stays in .env until you delete it there."""
    from bot.config import change
    from bot.config_file import read
    from bot.start_record import advice

    home: Home = ctx.obj
    if name not in read(home.config).data.get("channels", {}):
        raise UsageError(f"no channel is called {name!r}", "see: limpet channels list")
    if not output.confirm(f"Remove channels.{name} from {home.config}?", yes=yes):
        output.fail("nothing was changed")
    change(home, {("channels", name): None})
    output.result(f"channels.{name} is removed.", {"removed": name}, as_json=json)
    if word := advice(home):
        output.note(word)
