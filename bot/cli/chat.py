"""``limpet chat``: talk to an agent here. Attaches to a running hub, or is one itself for as long as it lasts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.options import AgentOption, JsonOption
from bot.errors import UsageError

if TYPE_CHECKING:
    from adapters.terminal import Dial, Terminal
    from bot.home import Home
    from bot.settings import Settings


def command(
    ctx: typer.Context,
    once: Annotated[
        str | None, typer.Option("--once", help="Answer this and leave; - reads it from standard input.")
    ] = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> int:
    """Talk here. Without a terminal each line of standard input is a message, answered before the next is read."""
    from bot.config import load

    home: Home = ctx.obj
    settings = load(home)
    if agent is not None and agent not in settings.agents:
        from bot.spelling import did_you_mean

        raise UsageError(f"no agent is called {agent!r}", did_you_mean(agent, settings.agents))
    return asyncio.run(_chat(settings, home, once=once, agent=agent, as_json=json))


async def _chat(settings: Settings, home: Home, *, once: str | None, agent: str | None, as_json: bool) -> int:
    from adapters.terminal import Terminal, to_socket, whole_input
    from bot.lock import Lock

    terminal = Terminal.of_process()
    if once == "-":
        once = whole_input(terminal.stdin)
        if not once.strip():
            raise UsageError("standard input is empty", 'say something: limpet "a question"')
    if Lock(home.lock).holder() is not None:
        return await _talk(to_socket(home.socket), terminal, home, once=once, agent=agent, as_json=as_json)
    return await _alone(settings, home, terminal, once=once, agent=agent, as_json=as_json)


async def _alone(
    settings: Settings, home: Home, terminal: Terminal, *, once: str | None, agent: str | None, as_json: bool
) -> int:
    """Be a hub with this one terminal until the conversation ends."""
    import socket

    from adapters.terminal import to_peer
    from bot.app import Hub
    from bot.logs import configure
    from bot.terminal import terminal_door

    configure(home)
    ours, theirs = socket.socketpair()
    door = terminal_door(connected=ours)
    async with Hub.open(settings, home, [door.adapter]) as hub:
        door.attach(hub)
        serving = asyncio.create_task(hub.run(), name="hub")
        talking = asyncio.create_task(
            _talk(to_peer(theirs), terminal, home, once=once, agent=agent, as_json=as_json), name="console"
        )
        try:
            await asyncio.wait([serving, talking], return_when=asyncio.FIRST_COMPLETED)
            if serving.done() and not serving.cancelled() and (error := serving.exception()):
                raise error  # nobody is left to answer
            return await talking
        finally:
            for task in (talking, serving):
                task.cancel()
            await asyncio.gather(talking, serving, return_exceptions=True)


async def _talk(
    dial: Dial, terminal: Terminal, home: Home, *, once: str | None, agent: str | None, as_json: bool
) -> int:
    from adapters.terminal import chat

    history = home.state / "chat_history"
    return await chat(dial, terminal, once=once, agent=agent, history=history, as_json=as_json)
