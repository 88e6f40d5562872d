"""``limpet channels``: connect the bot to Telegram and the like."""

from __future__ import annotations

import asyncio
import os
import tomllib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli import output
from bot.cli.options import JsonOption, YesOption
from bot.errors import BotError, UsageError

if TYPE_CHECKING:
    from bot.home import Home

app = typer.Typer(help="Connect the bot to Telegram and the like.")

NameArgument = Annotated[str, typer.Argument(help="telegram, or a name of your own with --kind.")]


@app.command("list")
def list_channels(ctx: typer.Context, json: JsonOption = False) -> None:
    """The configured channels and how they fare."""
    from bot.cli.status import channel_rows, gather

    state = asyncio.run(gather(ctx.obj))
    if not state.channels and not json:
        output.note("No channel is configured. Add one: limpet channels add telegram")
    text = output.table(channel_rows(state)) if state.channels else ""
    output.result(text, {"channels": [channel.as_dict() for channel in state.channels]}, as_json=json)


@app.command()
def add(
    ctx: typer.Context,
    name: NameArgument,
    kind: Annotated[str | None, typer.Option(help="The platform, where the name is another.")] = None,
    token: Annotated[
        str | None,
        typer.Option(help="The bot's token; better left out: it is asked for, or taken from the environment."),
    ] = None,
    extra: Annotated[
        list[str] | None, typer.Option("--set", help="A further setting of the channel, KEY=VALUE; may be repeated.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Add an account: its token is tried before anything is saved, and kept in .env, not in the settings."""
    from adapters import registry
    from bot.config import change, secret_variable
    from bot.config_file import read
    from bot.environment import Environment, store
    from bot.spelling import did_you_mean

    home: Home = ctx.obj
    platform = kind or name
    if platform not in registry.names():
        raise UsageError(f"no channel is called {platform!r}", did_you_mean(platform, registry.names()))
    section: dict[str, Any] = {"kind": platform} if platform != name else {}
    section |= dict(_setting(text) for text in extra or ())
    data = {"channels": {**read(home.config).data.get("channels", {}), name: section}}
    variable = secret_variable(("channels", name, "token"), data)
    assert variable is not None, "every platform of today has a token"
    environment = Environment.of(home)
    secret = token or environment.get(variable) or output.ask(f"Token of the bot ({variable})", secret=True)
    if not secret:
        raise UsageError("no token was given", "Telegram's @BotFather gives one: /newbot")
    identity = asyncio.run(_check(platform, secret, section))
    change(home, {("channels", name): section}, {**os.environ, variable: secret})
    if environment.get(variable) != secret:
        store(home.env_file, variable, secret)
    link = f"https://t.me/{identity.username}"
    text = "\n".join(
        (
            f"@{identity.username} is connected as channels.{name}; its token is {variable}.",
            f"Write to it: {link}",
            "It answers while this runs (a hub that runs already has to be stopped first): limpet run",
            "It will give you a code; then: limpet pairing approve CODE --owner",
        )
    )
    output.result(text, {"name": name, "kind": platform, "username": identity.username, "link": link}, as_json=json)


def _setting(text: str) -> tuple[str, Any]:
    """One ``KEY=VALUE``, the value as in TOML or just a text."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise UsageError(f"--set {text!r} is not KEY=VALUE", "for example: --set direct=allowlist")
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key, value


async def _check(platform: str, secret: str, section: dict[str, Any]) -> Any:
    """Ask the platform who the token belongs to. Raises BotError with the platform's word."""
    from adapters import registry
    from adapters.errors import AdapterError, AuthFailed, Unreachable
    from bot.errors import Unavailable

    model = registry.settings_model(platform)
    own = {key: value for key, value in section.items() if key in model.model_fields}
    options = model.model_validate({**own, "token": secret})
    try:
        return await registry.check(platform, options)
    except AuthFailed as error:
        raise BotError(str(error)) from error
    except Unreachable as error:
        raise Unavailable(str(error), "nothing was saved; try again when the network is there") from error
    except AdapterError as error:
        raise BotError(str(error)) from error


@app.command()
def remove(ctx: typer.Context, name: NameArgument, yes: YesOption = False, json: JsonOption = False) -> None:
    """Take an account out of the settings. Its token stays in .env until you delete it there."""
    from bot.config import change
    from bot.config_file import read

    home: Home = ctx.obj
    if name not in read(home.config).data.get("channels", {}):
        raise UsageError(f"no channel is called {name!r}", "see: limpet channels list")
    if not output.confirm(f"Remove channels.{name} from {home.config}?", yes=yes):
        output.fail("nothing was changed")
    change(home, {("channels", name): None})
    output.result(f"channels.{name} is removed.", {"removed": name}, as_json=json)
