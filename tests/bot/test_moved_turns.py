"""A message whose sender's level changed while it waited: it has another session then, and goes there to be answered.

Another process holds the locks of the sessions (a terminal chat beside the hub), so that the test says who goes when.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bot.home import Home
from bot.lock import Lock
from bot.people import People
from bot.scope import scope_of
from bot.session_key import session_key
from bot.state import State
from tests.bot.conftest import Clock, Serve, people_of
from tests.fakes.adapter import FakeAdapter
from tests.fakes.model_server import ModelServer, Recorded, Reply
from workspaces.names import portable_name
from workspaces.scope import Level


def echo(request: Recorded) -> Reply:
    return Reply("re: " + request.messages[-1]["content"].rpartition("] ")[2])


class Waiting:
    """The inbox of a hub as seen from beside it, and the locks of the sessions of 7, held until ``let_go``."""

    def __init__(self, home: Home, door: FakeAdapter, state: State, people: People) -> None:
        self._home = home
        self._door = door
        self._people = people
        self.state = state
        self._locks: dict[Level, Lock] = {}

    def session(self, level: Level) -> str:
        message = self._door.message("x")
        scope = scope_of(message.address, message.sender.id, level, None)
        return session_key("main", message.address, message.sender.id, scope, None)

    async def hold(self, *levels: Level) -> None:
        for level in levels:
            self._locks[level] = Lock(self._home.state / "sessions" / f"{portable_name(self.session(level))}.lock")
            await self._locks[level].wait()

    def let_go(self, level: Level) -> None:
        self._locks.pop(level).release()

    async def become(self, level: Level | None) -> None:
        if level is None:
            await self._people.take_away("telegram", "7")
        else:
            await self._people.give("telegram", "7", level, "Ann")

    async def until(self, *rows: tuple[Level, int]) -> None:
        """Until just that waits, in the order in which it was said: the session of this level, and the tries of it."""
        wanted = [(self.session(level), tries) for level, tries in rows]
        async with asyncio.timeout(10):
            while wanted != await self.state.rows("SELECT session, tries FROM inbox WHERE NOT done ORDER BY id"):
                await asyncio.sleep(0.01)


@asynccontextmanager
async def beside(home: Home, door: FakeAdapter, clock: Clock) -> AsyncIterator[Waiting]:
    async with State.open(home.database) as state:
        waiting = Waiting(home, door, state, people_of(state, clock))
        try:
            yield waiting
        finally:
            for lock in waiting._locks.values():
                lock.release()


async def test_whoever_is_sent_away_before_the_turn_begins_gets_none(
    serve: Serve, door: FakeAdapter, home: Home, clock: Clock
) -> None:
    """A promotion moved the message to the owner's session, and the pairing was revoked while it waited there."""
    async with ModelServer(echo) as server, serve(server, ""), beside(home, door, clock) as waiting:
        await waiting.become(Level.GUEST)
        await waiting.hold(Level.GUEST, Level.OWNER)
        await door.says(door.message("what is in the safe?"))
        await waiting.become(Level.OWNER)
        waiting.let_go(Level.GUEST)
        await waiting.until((Level.OWNER, 0))
        await waiting.become(None)
        waiting.let_go(Level.OWNER)
        await waiting.until()
        assert (server.requests, door.sent) == ([], [])


async def test_levels_that_cross_block_nobody_and_keep_the_order(
    serve: Serve, door: FakeAdapter, home: Home, clock: Clock
) -> None:
    """One message leaves a session for another while one leaves that for the first: neither waits for the other."""
    async with ModelServer(echo) as server, serve(server, ""), beside(home, door, clock) as waiting:
        await waiting.hold(Level.GUEST, Level.OWNER)
        await waiting.become(Level.OWNER)
        await door.says(door.message("first"))
        await waiting.become(Level.GUEST)
        await door.says(door.message("second"))
        await waiting.until((Level.OWNER, 0), (Level.GUEST, 0))
        waiting.let_go(Level.OWNER)
        await waiting.until((Level.GUEST, 0), (Level.GUEST, 0))
        await waiting.become(Level.OWNER)
        waiting.let_go(Level.GUEST)
        assert [sent.text for sent in await door.wait_sent(2)] == ["re: first", "re: second"]
        assert await waiting.state.rows("SELECT DISTINCT tries FROM inbox") == [(1,)]
    assert len(server.requests) == 2
    (transcript,) = home.sessions("main").glob("*.jsonl")
    assert transcript.stem == portable_name(waiting.session(Level.OWNER))


@pytest.mark.parametrize("command", ["/undo", "/help"])
async def test_a_command_moves_as_any_message(
    serve: Serve, door: FakeAdapter, home: Home, clock: Clock, command: str
) -> None:
    """Also one that doesn't wait behind the turns of its session: it stays beside the one that it comes to."""
    async with ModelServer(echo) as server, serve(server, ""), beside(home, door, clock) as waiting:
        await waiting.become(Level.GUEST)
        aside = "/aside" if command == "/help" else ""
        lock = Lock(home.state / "sessions" / f"{portable_name(waiting.session(Level.GUEST) + aside)}.lock")
        await lock.wait()
        await door.says(door.message(command))
        await waiting.become(Level.OWNER)
        lock.release()
        assert len(await door.wait_sent(1)) == 1
        rows = await waiting.state.rows("SELECT session, tries FROM inbox")
        assert rows == [(waiting.session(Level.OWNER) + aside, 1)]


@pytest.mark.parametrize("has_moved", [False, True])
async def test_a_crash_before_or_after_the_move_answers_once(
    serve: Serve, door: FakeAdapter, home: Home, clock: Clock, monkeypatch: pytest.MonkeyPatch, has_moved: bool
) -> None:
    monkeypatch.setattr("bot.app.DRAIN_SECONDS", 0)
    async with ModelServer(echo) as server:
        async with serve(server, ""), beside(home, door, clock) as waiting:
            await waiting.become(Level.GUEST)
            await waiting.hold(Level.GUEST, Level.OWNER)
            await door.says(door.message("are you there?", message_id="77"))
            await waiting.become(Level.OWNER)
            if has_moved:
                waiting.let_go(Level.GUEST)
            await waiting.until((Level.OWNER if has_moved else Level.GUEST, 0))
        async with serve(server, ""):
            await door.wait_sent(1)
            await door.says(door.message("are you there?", message_id="77"))
            await door.says(door.message("and now"))
            sent = await door.wait_sent(2)
    assert [one.text for one in sent] == ["re: are you there?", "re: and now"]
    (transcript,) = home.sessions("main").glob("*.jsonl")
    assert transcript.stem == portable_name(waiting.session(Level.OWNER))


async def test_a_message_is_stopped_where_it_moved_to(
    serve: Serve, door: FakeAdapter, home: Home, clock: Clock
) -> None:
    async with ModelServer(echo) as server, serve(server, ""), beside(home, door, clock) as waiting:
        await waiting.become(Level.GUEST)
        await waiting.hold(Level.GUEST, Level.OWNER)
        await door.says(door.message("a question"))
        await waiting.become(Level.OWNER)
        waiting.let_go(Level.GUEST)
        await waiting.until((Level.OWNER, 0))
        await door.says(door.message("/stop"))
        assert [sent.text for sent in await door.wait_sent(1)] == ["Stopped."]
        waiting.let_go(Level.OWNER)
        await waiting.until()
    assert server.requests == []
