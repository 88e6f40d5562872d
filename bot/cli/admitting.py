"""What ``limpet allow`` and ``limpet deny`` have in common: how accounts and groups are named, and their tables."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

import typer

from bot.errors import UsageError
from bot.spelling import did_you_mean

if TYPE_CHECKING:
    from bot.groups import Groups
    from bot.home import Home
    from bot.people import People

WhoArgument: TypeAlias = Annotated[
    str | None, typer.Argument(metavar="[WHO]", help="An account: telegram:123456789.", show_default=False)
]
GroupOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--group", metavar="ACCOUNT:CHAT", help="A group, by the section of [channels] and its id."),
]
Result = TypeVar("Result")


def account_of(who: str) -> tuple[str, str]:
    """Channel and sender. Raises UsageError for what is no account."""
    from bot.tables import channel_names

    channel, _, sender = who.partition(":")
    if not sender or sender.startswith("@"):
        raise UsageError(f"{who!r} is no account", 'write channel and id: "telegram:123456789"')
    if channel not in channel_names():
        raise UsageError(f"{who!r} names no channel", did_you_mean(channel, channel_names()))
    return channel, sender_of(channel, sender)


def sender_of(channel: str, written: str) -> str:
    """The id of a sender as the channel's events have it. Raises UsageError for what can't be one."""
    from adapters.registry import canonical_id
    from bot.tables import TERMINAL

    try:
        return written if channel == TERMINAL else canonical_id(channel, written)
    except ValueError as error:
        what, _, mend = str(error).partition(": ")
        raise UsageError(what, mend or None) from error


def group_of(text: str, home: Home) -> tuple[str, str, str]:
    """Channel, account and chat. Raises UsageError for what names none."""
    from bot.config import load

    account, _, chat = text.partition(":")
    sections = load(home).channels
    if not chat:
        raise UsageError(f"{text!r} is no group", "write the section and the id: --group telegram:-1001234567890")
    if account not in sections:
        raise UsageError(f"no section of [channels] is called {account!r}", did_you_mean(account, sections))
    return sections[account].kind, account, chat


def people(home: Home, use: Callable[[People], Awaitable[Result]]) -> Result:
    """Use the table of people."""
    from bot.clock import now
    from bot.people import People
    from bot.state import State

    async def run() -> Result:
        async with State.open(home.database) as state:
            return await use(People(state, owners=(), identities={}, clock=now))

    return asyncio.run(run())


def groups(home: Home, use: Callable[[Groups], Awaitable[Result]]) -> Result:
    """Use the table of groups."""
    from bot.clock import now
    from bot.groups import Groups
    from bot.state import State

    async def run() -> Result:
        async with State.open(home.database) as state:
            return await use(Groups(state, clock=now))

    return asyncio.run(run())
