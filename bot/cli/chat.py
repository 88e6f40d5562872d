"""``limpet chat``: talk to an agent here. Attaches to a running hub, or is one itself for as long as it lasts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli import output
from bot.cli.options import AgentOption, JsonOption
from bot.cli.spared import without_rich
from bot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapters.terminal import Dial, Terminal
    from bot.home import Home
    from bot.settings import Settings

_READING = 'Reading standard input to its end. To leave it out: limpet "a question" </dev/null'


@dataclass(frozen=True, slots=True)
class _Talk:
    """What is wanted: ``once`` is a single question and ``piped`` what came with it, None and "" a conversation."""

    terminal: Terminal
    home: Home
    agent: str | None
    as_json: bool
    once: str | None
    piped: str

    async def over(self, dial: Dial, delays: Sequence[float] | None = None) -> int:
        from adapters.terminal import chat

        return await chat(
            dial,
            self.terminal,
            once=self.once,
            piped=self.piped,
            agent=self.agent,
            history=self.home.state / "chat_history",
            as_json=self.as_json,
            delays=delays,
        )


def command(
    ctx: typer.Context,
    once: Annotated[
        str | None,
        typer.Option(
            "--once", help="Answer this and leave; what is piped in comes with it. - reads it all from there."
        ),
    ] = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> int:
    """Talk here. Without a terminal each line of standard input is a message, answered before the next is read."""
    from adapters.terminal import Terminal
    from bot.config import load

    home: Home = ctx.obj
    settings = load(home)
    if agent is not None and agent not in settings.agents:
        from bot.spelling import did_you_mean

        raise UsageError(f"no agent is called {agent!r}", did_you_mean(agent, settings.agents))
    terminal = Terminal.of_process()
    question, piped = _input(terminal, once)
    return asyncio.run(_chat(settings, _Talk(terminal, home, agent, json, question, piped)))


def _input(terminal: Terminal, once: str | None) -> tuple[str | None, str]:
    """The single question (None for a conversation), and what standard input brings beside it."""
    from adapters.terminal import InputTooLarge, piped_input, whole_input

    if once is None:
        return None, ""
    try:
        if once != "-":
            return once, piped_input(terminal.stdin, lambda: output.note(_READING))
        text = whole_input(terminal.stdin)
    except InputTooLarge as error:
        raise UsageError(str(error), "pipe a part of it: head -c 200000 FILE | limpet …") from error
    if not text.strip():
        raise UsageError("standard input is empty", 'say something: limpet "a question"')
    return text, ""


async def _chat(settings: Settings, talk: _Talk) -> int:
    from adapters.terminal import to_socket
    from bot.lock import Lock

    if Lock(talk.home.lock).holder() is not None:
        return await talk.over(to_socket(talk.home.socket))
    return await _alone(settings, talk)


async def _alone(settings: Settings, talk: _Talk) -> int:
    """Be a hub with this one terminal until the conversation ends."""
    import socket

    without_rich()
    from adapters.terminal import to_peer
    from bot.app import Hub
    from bot.logs import configure
    from bot.terminal import TerminalDoor

    configure(talk.home)
    ours, theirs = socket.socketpair()
    door = TerminalDoor(talk.home, connected=ours)
    async with Hub.open(settings, talk.home, [door.adapter]) as hub:
        door.attach(hub)
        serving = asyncio.create_task(hub.run(), name="hub")
        talking = asyncio.create_task(talk.over(to_peer(theirs), delays=()), name="console")  # it never comes back
        try:
            await asyncio.wait([serving, talking], return_when=asyncio.FIRST_COMPLETED)
            if serving.done() and not serving.cancelled() and (error := serving.exception()):
                raise error  # nobody is left to answer
            return await talking
        finally:
            for task in (talking, serving):
                task.cancel()
            await asyncio.gather(talking, serving, return_exceptions=True)
