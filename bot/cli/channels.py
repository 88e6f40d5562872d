"""``limpet channels``: connect the bot to Telegram and the like."""

from __future__ import annotations

import asyncio
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli import output
from bot.cli.linking import linked
from bot.cli.options import JsonOption, YesOption
from bot.cli.proving import Secret, with_secrets, without_secret
from bot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bot.config import Draft
    from bot.home import Home
    from bot.toml_positions import Key

app = typer.Typer(help="Connect the bot to Telegram and the like.")

NameArgument = Annotated[
    str, typer.Argument(help="discord, slack, telegram, webhook, whatsapp, or your own name with --kind.")
]


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
    home: Home = ctx.obj
    new = _Planned.of(home, name, kind, extra or ())
    if token is not None and not new.asked:
        raise UsageError(f"a channel of the kind {new.kind!r} has no token", "leave --token out")
    if new.asked:
        draft, identity = with_secrets(home, name, new.changes, new.asked, token)
    elif new.is_linked:
        draft, identity = linked(home, name, new.changes, None)
    else:
        draft, identity = without_secret(home, name, new.changes)
    _keep(home, new, draft, identity, json=json)


@app.command()
def login(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="whatsapp, or your own name with --kind.")],
    kind: Annotated[str | None, typer.Option(help="The platform, where the name is another.")] = None,
    phone: Annotated[
        str | None,
        typer.Option(help="The account's number: for a code that you type on the phone, instead of the QR code."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Link an account to its phone, once or after it was logged out: WhatsApp.

    A QR code is shown here, and as a picture, until the phone has taken it. Then the channel is added.
    """
    home: Home = ctx.obj
    new = _Planned.of(home, name, kind, ())
    if not new.is_linked:
        raise UsageError(f"a channel of the kind {new.kind!r} has no phone", f"add it: limpet channels add {name}")
    draft, identity = linked(home, name, new.changes, phone)
    _keep(home, new, draft, identity, json=json)


@dataclass(frozen=True, slots=True)
class _Planned:
    """A channel to be added, or changed: what is to be set, and which secrets it has to be asked for."""

    name: str
    kind: str
    changes: dict[Key, Any]
    asked: Sequence[Secret]
    is_linked: bool

    @classmethod
    def of(cls, home: Home, name: str, kind: str | None, extra: Sequence[str]) -> _Planned:
        """``extra`` are further settings, KEY=VALUE. Raises UsageError and ConfigError."""
        from adapters import registry
        from adapters.errors import MissingExtra
        from bot.config import build, secret_variable
        from bot.config_file import read
        from bot.environment import Environment
        from bot.spelling import did_you_mean

        file = read(home.config)
        build(file, Environment.of(home))  # a file that is wrong elsewhere is told of first
        written = file.data.get("channels", {})
        platform = kind or written.get(name, {}).get("kind", name)
        if platform not in registry.names():
            raise UsageError(f"no channel is called {platform!r}", did_you_mean(platform, registry.names()))
        sections = {"channels": {**written, name: {"kind": platform}}}
        own = dict(_setting(text) for text in extra)
        sections["channels"][name] = {**written.get(name, {}), "kind": platform, **own}
        for key in own:
            if secret_variable(("channels", name, key), sections):
                raise UsageError(f"--set {key} would put a secret into the settings", "leave it out: it is asked for")
        asked = Secret.needed(name, sections)
        try:
            is_linked = registry.is_linked(platform)
        except (MissingExtra, registry.BrokenAdapterError):  # which is told of when the settings are made
            is_linked = False
        return cls(name, platform, _changes(name, platform, written, own, asked), asked, is_linked)


def _keep(home: Home, new: _Planned, draft: Draft, identity: Any, *, json: bool) -> None:
    from bot.start_record import advice

    draft.write()
    who = f"@{identity.username}" if identity.username else identity.name
    where = "".join(f"; its {one.field} is {one.variable}" for one in new.asked)
    lines = [f"{who} is connected as channels.{new.name}{where}.", f"Write to it: {identity.link}"]
    lines.append(advice(home) or "It answers while this runs: limpet run")
    lines.append("It will give you a code; then: limpet pairing approve CODE --owner")
    data = {"name": new.name, "kind": new.kind, "username": identity.username, "link": identity.link}
    output.result("\n".join(lines), data, as_json=json)


def _changes(
    name: str, platform: str, written: Mapping[str, Any], extra: Mapping[str, Any], asked: Sequence[Secret]
) -> dict[Key, Any]:
    """What is set in the file: a new section, or only what differs in one that is there."""
    own = {**({"kind": platform} if platform != name else {}), **extra}
    if name not in written:
        return {("channels", name): own}
    own |= {one.field: f"${{{one.variable}}}" for one in asked if one.field in written[name]}
    return {("channels", name, key): value for key, value in own.items()}


def _setting(text: str) -> tuple[str, Any]:
    """One ``KEY=VALUE``, the value as in TOML or just a text."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise UsageError(f"--set {text!r} is not KEY=VALUE", "for example: --set direct=allowlist")
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key, value


@app.command()
def remove(ctx: typer.Context, name: NameArgument, yes: YesOption = False, json: JsonOption = False) -> None:
    """Take an account out of the settings. Its token stays in .env, or its link with a phone in the home."""
    from bot.config import change
    from bot.config_file import read
    from bot.start_record import advice

    home: Home = ctx.obj
    section = read(home.config).data.get("channels", {}).get(name)
    if section is None:
        raise UsageError(f"no channel is called {name!r}", "see: limpet channels list")
    if not output.confirm(f"Remove channels.{name} from {home.config}?", yes=yes):
        output.fail("nothing was changed")
    change(home, {("channels", name): None})
    output.result(f"channels.{name} is removed.", {"removed": name}, as_json=json)
    folder = home.channel(section.get("kind", name), name)
    if folder.exists():
        output.note(f"What it kept is still there: unlink it on the phone, then delete {folder}")
    if word := advice(home):
        output.note(word)
