"""``limpet pairing``: let people in who wrote to the bot. Works beside a running hub."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeVar

import typer

from bot.cli import output
from bot.cli.options import JsonOption

if TYPE_CHECKING:
    from bot.home import Home
    from bot.pairing import Pairing, PairingRequest

app = typer.Typer(help="Let people in who wrote to the bot and got a pairing code.")

CodeArgument = Annotated[str, typer.Argument(help="The code, as the person saw it.")]
Result = TypeVar("Result")


@app.command("list")
def list_codes(ctx: typer.Context, json: JsonOption = False) -> None:
    """The codes that wait for approval."""
    waiting = _with(ctx.obj, lambda pairing: pairing.waiting())
    now = datetime.now(UTC)
    rows = [
        (r.code, r.account, _who(r), f"{max(0, int((r.expires_at - now).total_seconds() // 60))} min left")
        for r in waiting
    ]
    if not waiting and not json:
        output.note("Nobody waits. Whoever writes to the bot first gets a code to show you.")
    text = output.table(rows) if rows else ""
    output.result(text, {"waiting": [_shown(request) for request in waiting]}, as_json=json)


@app.command()
def approve(
    ctx: typer.Context,
    code: CodeArgument,
    owner: Annotated[
        bool, typer.Option("--owner", help="It is you: this account shares the home memory and every right.")
    ] = False,
    guest: Annotated[bool, typer.Option("--guest", help="Someone else; nothing is asked.")] = False,
    json: JsonOption = False,
) -> None:
    """Let the person with this code in: as a guest with a memory of their own, or as you (--owner)."""
    from bot.errors import UsageError
    from workspaces.scope import Level

    if owner and guest:
        raise UsageError("--owner and --guest exclude each other", "say one of them")
    if not (owner or guest or json) and output.is_interactive():
        waiting = next((r for r in _with(ctx.obj, lambda p: p.waiting()) if r.code == code.strip().upper()), None)
        if waiting is None:
            _unknown(code)
        owner = output.confirm(f"Is {_who(waiting)} on {waiting.account} you, the owner?")
    level = Level.OWNER if owner else Level.GUEST
    request = _with(ctx.obj, lambda pairing: pairing.approve(code, level))
    if request is None:
        _unknown(code)
    text = f"{_who(request)} on {request.account} is {'you: the owner' if owner else 'a guest'} now."
    output.result(text, {**_shown(request), "level": level.name.lower()}, as_json=json)


@app.command()
def deny(ctx: typer.Context, code: CodeArgument, json: JsonOption = False) -> None:
    """Forget a code. Its asker may ask again."""
    request = _with(ctx.obj, lambda pairing: pairing.deny(code))
    if request is None:
        _unknown(code)
    output.result(f"The code of {_who(request)} is void.", _shown(request), as_json=json)


def _unknown(code: str) -> NoReturn:
    output.fail(f"no code {code!r} waits", "see those that do: limpet pairing list")


def _with(home: Home, use: Callable[[Pairing], Awaitable[Result]]) -> Result:
    """Use the pairing table of ``home``, a running hub or none."""
    from bot.app import now
    from bot.pairing import Pairing
    from bot.people import People
    from bot.state import State

    async def run() -> Result:
        async with State.open(home.database) as state:
            people = People(state, owners=(), identities={}, clock=now)
            return await use(Pairing(state, people, clock=now))

    return asyncio.run(run())


def _who(request: PairingRequest) -> str:
    """The name, in one harmless line, and the id: names are chosen by whoever asks, ids are not."""
    from agents.quoting import one_line

    name = one_line(request.name, 40)
    sender = one_line(request.sender, 40)
    return f"{name} (id {sender})" if name else f"id {sender}"


def _shown(request: PairingRequest) -> dict[str, str]:
    return {
        "code": request.code,
        "channel": request.channel,
        "account": request.account,
        "sender": request.sender,
        "name": request.name,
        "expires_at": request.expires_at.isoformat(),
    }
