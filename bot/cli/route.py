"""``limpet route``: why a message goes to which agent. Asks nobody and changes nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli import output
from bot.cli.admitting import sender_of
from bot.cli.options import JsonOption
from bot.errors import UsageError

if TYPE_CHECKING:
    from adapters.message import Message
    from bot.access import Verdict
    from bot.home import Home
    from bot.router import Explanation
    from bot.settings import Settings

app = typer.Typer(help="Why a message goes to which agent.")


@app.command()
def explain(
    ctx: typer.Context,
    channel: Annotated[str, typer.Option(help="The platform: telegram, terminal, …")] = "terminal",
    account: Annotated[
        str | None, typer.Option(help="The section of [channels]; the platform's own name if one.")
    ] = None,
    chat: Annotated[str | None, typer.Option(help="The chat's id; the sender's in a direct chat.")] = None,
    sender: Annotated[str, typer.Option(help="The sender's id.")] = "local",
    space: Annotated[str | None, typer.Option(help="The guild or team.")] = None,
    parent: Annotated[str | None, typer.Option(help="The chat that a thread belongs to.")] = None,
    thread: Annotated[str | None, typer.Option(help="The thread's or topic's id.")] = None,
    role: Annotated[list[str] | None, typer.Option(help="A role of the sender; may be given several times.")] = None,
    group: Annotated[bool, typer.Option("--group", help="A group, not a direct chat.")] = False,
    mention: Annotated[bool, typer.Option("--mention", help="The message addresses us.")] = False,
    json: JsonOption = False,
) -> int:
    """Say whether such a message would be answered, by whom, with which session, scope and level, and why."""
    from datetime import UTC, datetime

    from adapters.message import Address, Kind, Message, Sender
    from bot.config import load

    home: Home = ctx.obj
    settings = load(home)
    _check(settings, channel, account)
    sender = sender_of(channel, sender)
    name = account or _account(settings, channel)
    kind: Kind = "group" if group or thread or space else "direct"
    address = Address(channel, name, chat or sender, kind, space, parent, thread)
    who = Sender(sender, roles=tuple(role or ()))
    message = Message("explain", address, who, "", datetime.now(UTC), mentions_me=mention)
    verdict, explanation = asyncio.run(_judge(settings, home, message))
    text, data = _told(verdict, explanation)
    output.result(text, data, as_json=json)
    return 0 if explanation else 1


def _check(settings: Settings, channel: str, account: str | None) -> None:
    """Refuse names that lead nowhere: the answer to a mistyped question would mislead."""
    from bot.spelling import did_you_mean
    from bot.tables import channel_names

    if channel not in channel_names():
        raise UsageError(f"no channel is called {channel!r}", did_you_mean(channel, channel_names()))
    kinds = {"terminal": "terminal", **{name: section.kind for name, section in settings.channels.items()}}
    accounts = [name for name, kind in kinds.items() if kind == channel]
    if account is not None and account not in (*accounts, *settings.degraded):
        raise UsageError(f"no account of {channel} is called {account!r}", did_you_mean(account, accounts))
    if not accounts:
        output.note(f"No channel of the kind {channel} can be started: what is said here goes by its defaults.")


def _account(settings: Settings, channel: str) -> str:
    accounts = [name for name, section in settings.channels.items() if section.kind == channel]
    if channel == "terminal":
        return "terminal"
    if len(accounts) > 1:
        raise UsageError(f"{channel} has several accounts: {', '.join(accounts)}", "say one: --account NAME")
    return accounts[0] if accounts else channel


async def _judge(settings: Settings, home: Home, message: Message) -> tuple[Verdict, Explanation | None]:
    from bot.access import Decision
    from bot.clock import now
    from bot.gate import Gate
    from bot.state import State

    async with State.open(home.database) as state:
        gate = Gate.of(settings, state, now)
        verdict = await gate.judge(message)
        explanation = await gate.explain(message, verdict) if verdict.decision is Decision.ALLOW else None
        return verdict, explanation


def _told(verdict: Verdict, explanation: Explanation | None) -> tuple[str, dict[str, object]]:
    access = {"decision": verdict.decision.name.lower(), "reason": verdict.reason}
    if explanation is None:
        words = {"PAIR": "gets a pairing code", "OVERHEAR": "is not answered, but known to the next answer there"}
        word = words.get(verdict.decision.name, "is not answered")
        return f"The message {word}: {verdict.reason}.", {"access": access, "route": None, "bindings": []}
    route = explanation.route
    rows = [
        ("agent", route.agent),
        ("session", route.session),
        ("scope", route.scope.area),
        ("level", route.scope.level.name.lower()),
        ("access", verdict.reason),
    ]
    for considered in explanation.considered:
        word = "won" if considered.won else "lost"
        rows.append((word, f"{considered.binding.origin} → {considered.binding.goes_to}: {considered.reason}"))
    if not any(considered.won for considered in explanation.considered):
        rows.append(("won", f"no binding matches: the default agent, {route.agent}"))
    bindings = [
        {"origin": c.binding.origin, "agent": c.binding.agent, "per": c.binding.per, "won": c.won, "reason": c.reason}
        for c in explanation.considered
    ]
    data: dict[str, object] = {
        "access": access,
        "route": {
            "agent": route.agent,
            "session": route.session,
            "scope": route.scope.area,
            "level": route.scope.level.name.lower(),
        },
        "bindings": bindings,
    }
    return output.table(rows), data
