"""What survives a power cut, and what may be said only then. The disk is a real one; when it is done is the test's."""

from __future__ import annotations

import asyncio
import errno
import shutil
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.message import Address, Message, Part, Sender
from adapters.text import FormattedText
from bot import state as state_module
from bot.inbox import SqliteInbox
from bot.outbox import SqliteOutbox
from bot.pairing import Pairing
from bot.people import People
from bot.state import State
from tests.bot.conftest import Clock, people_of
from tests.fakes.adapter import FakeAdapter
from workspaces import disk
from workspaces.database import connect
from workspaces.scope import Level

CHAT = Address("fake", "fake", "7", "direct")


class Disk:
    """Flushes when it is let, and fails with ``error`` when there is one."""

    def __init__(self) -> None:
        self.begun = 0
        self.ended = 0
        self.error: OSError | None = None
        self.free = threading.Event()
        self.free.set()

    def __call__(self, descriptor: int) -> None:
        self.begun += 1
        assert self.free.wait(20)
        if self.error is not None:
            raise self.error
        disk.flush(descriptor)
        self.ended += 1

    async def reached(self, flushes: int) -> None:
        while self.begun < flushes:
            await asyncio.sleep(0.001)


@pytest.fixture
def flushes() -> Disk:
    return Disk()


@pytest.fixture
async def held(tmp_path: Path, flushes: Disk) -> AsyncIterator[State]:
    """A state with nothing left to flush, on a disk that is not done until it is let."""
    async with State.open(tmp_path / "limpet.sqlite", flush=flushes) as opened:
        await opened.durable()
        flushes.begun = flushes.ended = 0
        flushes.free.clear()
        yield opened
        flushes.free.set()


async def write(state: State, chat: str) -> None:
    async with state.transaction() as db:
        await db.execute("INSERT INTO moved VALUES ('c', 'a', ?, 'x')", (chat,))


def run(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    """Another process, to its end."""
    return subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)


async def settled() -> None:
    """Everything that can go on without the disk has gone on."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_who_waits_at_one_time_shares_a_flush_that_began_after_their_commits(held: State, flushes: Disk) -> None:
    ended: list[str] = []

    async def kept(chat: str) -> None:
        await write(held, chat)
        await held.durable()
        ended.append(chat)

    first = asyncio.create_task(kept("first"))
    await flushes.reached(1)
    others = [asyncio.create_task(kept(str(number))) for number in range(50)]
    await settled()
    assert len(await held.rows("SELECT * FROM moved")) == 51, "a commit waits for no flush"
    assert ended == []
    flushes.free.set()
    await asyncio.gather(first, *others)
    assert ended[0] == "first"
    assert flushes.ended == 2


async def test_a_flush_that_began_before_a_commit_does_not_count_for_it(held: State, flushes: Disk) -> None:
    await write(held, "1")
    first = asyncio.create_task(held.durable())
    await flushes.reached(1)
    await write(held, "2")
    second = asyncio.create_task(held.durable())
    await settled()
    turn = threading.Event()
    flushes.free, held_back = turn, flushes.free
    held_back.set()
    await first
    await flushes.reached(2)
    await settled()
    assert not second.done()
    turn.set()
    await second


async def test_nothing_is_waited_for_where_nothing_was_committed_since(held: State, flushes: Disk) -> None:
    flushes.free.set()
    await write(held, "1")
    for _ in range(3):
        await held.durable()
    async with held.transaction() as db:
        await db.execute("DELETE FROM moved WHERE chat = 'none of them'")
    await held.durable()
    assert flushes.ended == 1


async def test_a_cancelled_wait_cancels_nobody_elses(held: State, flushes: Disk) -> None:
    await write(held, "1")
    waits = [asyncio.create_task(held.durable()) for _ in range(3)]
    await flushes.reached(1)
    waits[0].cancel()
    await settled()
    flushes.free.set()
    results = await asyncio.gather(*waits, return_exceptions=True)
    assert [type(result) for result in results] == [asyncio.CancelledError, type(None), type(None)]
    assert flushes.ended == 1


async def test_a_flush_after_the_other_never_sticks(tmp_path: Path) -> None:
    """The end of one and the wait for the next meet in every order."""
    async with State.open(tmp_path / "limpet.sqlite", flush=lambda _: None) as state, asyncio.timeout(30):

        async def kept(name: str) -> None:
            for number in range(100):
                await write(state, f"{name}/{number}")
                await state.durable()

        await asyncio.gather(*(kept(str(task)) for task in range(8)))


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
async def test_a_flush_that_fails_is_told_to_all_and_never_forgotten(
    tmp_path: Path, flushes: Disk, number: int
) -> None:
    """The system drops what it could not write, and the next flush succeeds: without what was lost."""

    async def broken() -> None:
        async with State.open(tmp_path / "limpet.sqlite", flush=flushes) as state:
            await state.durable()
            keeping = asyncio.create_task(state.keep(sleep=lambda _: asyncio.sleep(0)))
            flushes.free.clear()
            flushes.error = OSError(number, "no more")
            await write(state, "1")
            waits = [asyncio.create_task(state.durable())]
            await flushes.reached(2)
            await write(state, "2")
            waits += [asyncio.create_task(state.durable()) for _ in range(3)]
            await settled()
            flushes.free.set()
            results = await asyncio.gather(*waits, keeping, return_exceptions=True)
            assert [getattr(result, "errno", None) for result in results] == [number] * 5
            flushes.error = None
            for _ in range(2):
                with pytest.raises(OSError, match="no more"):
                    await state.durable()
            assert len(await state.rows("SELECT * FROM moved")) == 2, "the process itself still has it"

    with pytest.raises(OSError, match="no more") as at_the_end:
        await broken()
    assert at_the_end.value.errno == number
    async with State.open(tmp_path / "limpet.sqlite", flush=flushes) as state:
        await state.durable()


async def test_what_nobody_waits_for_is_flushed_soon_and_at_the_end(tmp_path: Path, flushes: Disk) -> None:
    naps: asyncio.Queue[float] = asyncio.Queue()
    wake = asyncio.Event()

    async def sleep(seconds: float) -> None:
        naps.put_nowait(seconds)
        await wake.wait()
        wake.clear()

    async with State.open(tmp_path / "limpet.sqlite", flush=flushes) as state:
        keeping = asyncio.create_task(state.keep(sleep))
        await settled()
        assert naps.empty(), "an idle one has no timer"
        for number in range(3):
            await write(state, str(number))
        assert await naps.get() == state_module.SOON_SECONDS
        assert flushes.begun == 0
        wake.set()
        while flushes.ended < 1:
            await asyncio.sleep(0.001)
        keeping.cancel()
        await write(state, "at the end")
    assert flushes.ended == 2


async def test_what_a_dead_process_left_is_flushed_before_anything_is_said_of_it(tmp_path: Path, clock: Clock) -> None:
    """A replay is acknowledged, though the process that stored it died between its commit and the flush."""
    died = (
        "import asyncio, os, sys\nfrom pathlib import Path\nfrom bot.state import State\n"
        "async def main():\n    async with State.open(Path(sys.argv[1])) as state:\n"
        "        async with state.transaction() as db:\n"
        "            await db.execute(\"INSERT INTO moved VALUES ('c', 'a', '1', 'x')\")\n"
        "        os._exit(9)\nasyncio.run(main())\n"
    )
    path, flushes = tmp_path / "limpet.sqlite", Disk()
    assert run(died, path).returncode == 9
    async with State.open(path, flush=flushes) as state:
        assert len(await state.rows("SELECT * FROM moved")) == 1, "it died, the machine did not"
        await state.durable()
        assert flushes.ended == 1


async def test_a_power_cut_at_any_moment_takes_nothing_that_was_called_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the disk is what was there at the end of the last flush; the log begins anew several times meanwhile."""
    monkeypatch.setattr(state_module, "LONGEST_LOG", 20)
    path, on_disk = tmp_path / "limpet.sqlite", [tmp_path]
    logs = set[bytes]()

    def flush(descriptor: int) -> None:
        """In the thread that also copies the log into the database, so never in the middle of that."""
        kept = tmp_path / f"disk-{len(on_disk)}"
        kept.mkdir()
        for name in (path.name, f"{path.name}-wal"):
            shutil.copyfile(tmp_path / name, kept / name)
        logs.add((kept / f"{path.name}-wal").read_bytes()[16:24])
        on_disk.append(kept)

    async with State.open(path, flush=flush) as state:
        keeping = asyncio.create_task(state.keep(sleep=lambda _: asyncio.sleep(0.001)))

        async def kept(name: str) -> None:
            for number in range(25):
                await write(state, f"{name}/{number}")
                await state.durable()
                after = shutil.copytree(on_disk[-1], tmp_path / f"after-{name}-{number}")
                database = connect(after / path.name)
                found = database.execute("SELECT count(*) FROM moved WHERE chat LIKE ?", (f"{name}/%",)).fetchone()
                database.close()
                assert found == (number + 1,)

        await asyncio.gather(*(kept(str(task)) for task in range(6)))
        keeping.cancel()
    assert len(logs) > 3


async def test_the_log_begins_anew_before_it_grows_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "LONGEST_LOG", 50)
    path = tmp_path / "limpet.sqlite"
    async with State.open(path) as state:
        keeping = asyncio.create_task(state.keep(sleep=lambda _: asyncio.sleep(0)))
        for number in range(1000):
            await write(state, str(number))
            await asyncio.sleep(0)
            if number % 50 == 0:
                await state.durable()
        keeping.cancel()
        await asyncio.wait([keeping])
        size = Path(f"{path}-wal").stat().st_size
        assert len(await state.rows("SELECT * FROM moved")) == 1000
    assert size < 1_500_000, "a thousand commits of three pages each would be twelve million"


async def test_nothing_is_closed_while_the_log_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread would go on with a connection that is gone, and take the process with it."""
    monkeypatch.setattr(state_module, "LONGEST_LOG", 1)
    begun, free, ended = threading.Event(), threading.Event(), threading.Event()
    checkpoint = State._checkpoint

    def slow(state: State) -> None:
        begun.set()
        assert free.wait(20)
        checkpoint(state)
        ended.set()

    monkeypatch.setattr(State, "_checkpoint", slow)
    async with State.open(tmp_path / "limpet.sqlite") as state:
        keeping = asyncio.create_task(state.keep(sleep=lambda _: asyncio.sleep(0)))
        await write(state, "1")
        while not begun.is_set():
            await asyncio.sleep(0.001)
        keeping.cancel()
        threading.Timer(0.1, free.set).start()
    assert ended.is_set()


async def test_a_copy_that_finds_no_room_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process that reads holds it up; whatever it is, the next one comes."""
    monkeypatch.setattr(state_module, "LONGEST_LOG", 1)
    path = tmp_path / "limpet.sqlite"
    async with State.open(path) as state:
        other = connect(path)
        other.execute("PRAGMA busy_timeout = 0")
        keeping = asyncio.create_task(state.keep(sleep=lambda _: asyncio.sleep(0)))
        for number in range(20):
            await write(state, str(number))
            other.execute("BEGIN IMMEDIATE")
            await asyncio.sleep(0.005)
            other.execute("COMMIT")
        assert not keeping.done()
        keeping.cancel()
        other.close()
        assert len(await state.rows("SELECT * FROM moved")) == 20


async def test_a_flush_and_its_end_let_go_of_no_lock(tmp_path: Path) -> None:
    """The system drops all of a process's locks on a file when any descriptor of it is closed: the log has none."""
    path = tmp_path / "limpet.sqlite"
    begin = (
        "import sys\nfrom pathlib import Path\nfrom workspaces.database import connect\n"
        "other = connect(Path(sys.argv[1]))\nother.execute('PRAGMA busy_timeout = 0')\n"
        "try:\n    other.execute('BEGIN IMMEDIATE')\n    print('taken')\n"
        "except Exception as error:\n    print(error)\n"
    )
    async with State.open(path) as state:
        beside = AsyncExitStack()
        await write(await beside.enter_async_context(State.open(path)), "1")
        log = Path(f"{path}-wal").stat()
        async with state.transaction() as db:
            await db.execute("INSERT INTO moved VALUES ('c', 'a', '2', 'x')")
            await state.durable()
            await beside.aclose()
            assert run(begin, path).stdout == "database is locked\n"
        await state.durable()
        assert Path(f"{path}-wal").stat().st_ino == log.st_ino, "and nobody takes the log away meanwhile"
        assert len(await state.rows("SELECT * FROM moved")) == 2


@dataclass(frozen=True)
class Parts:
    """What writes into one state. A message, a person and a code are there."""

    inbox: SqliteInbox
    outbox: SqliteOutbox
    people: People
    pairing: Pairing


def said(number: str = "1") -> Message:
    return Message(number, CHAT, Sender("7", "Ann"), "hi", datetime(2026, 11, 30, tzinfo=UTC))


CALLS: dict[str, Callable[[Parts], Awaitable[object]]] = {
    "a message is accepted": lambda parts: parts.inbox.put(said("2"), "s"),
    "a message is given up": lambda parts: parts.inbox.give_up("s", None),
    "a code is sent": lambda parts: parts.outbox.put("t", [Part(CHAT, FormattedText("code"))]),
    "a person is let in": lambda parts: parts.pairing.approve("ABCDEFGH", Level.GUEST),
    "a code is ended": lambda parts: parts.pairing.deny("ABCDEFGH"),
    "a level is given": lambda parts: parts.people.give("fake", "8", Level.GUEST, "Bob"),
    "a person is sent away": lambda parts: parts.people.take_away("fake", "8"),
    "a chat has moved": lambda parts: parts.people.move(CHAT, "70"),
}


@pytest.fixture
async def parts(held: State, flushes: Disk, clock: Clock) -> Parts:
    people, adapter = people_of(held, clock), FakeAdapter()
    outbox = SqliteOutbox(held, {("fake", "fake"): adapter}, "me", people=people, clock=clock)
    made = Parts(
        SqliteInbox(held, outbox, "me", clock),
        outbox,
        people,
        Pairing(held, people, clock=clock, code=lambda: "ABCDEFGH"),
    )
    flushes.free.set()
    await made.inbox.put(said("1"), "s")
    await made.people.give("fake", "8", Level.MEMBER, "Bob")
    assert await made.pairing.ask(said())
    await held.durable()
    flushes.begun = 0
    flushes.free.clear()
    return made


@pytest.mark.parametrize("what", CALLS)
async def test_it_is_done_when_it_is_on_the_disk(what: str, parts: Parts, flushes: Disk) -> None:
    call = asyncio.ensure_future(CALLS[what](parts))
    await flushes.reached(1)
    await settled()
    assert not call.done()
    flushes.free.set()
    await call


async def test_a_replay_is_acknowledged_when_what_it_repeats_is_on_the_disk(parts: Parts, flushes: Disk) -> None:
    first, second = (asyncio.create_task(parts.inbox.put(said("2"), "s")) for _ in range(2))
    await flushes.reached(1)
    await settled()
    assert not first.done()
    assert not second.done()
    flushes.free.set()
    assert (await first, await second) == (True, False)


async def test_no_part_leaves_before_its_mark_is_on_the_disk(held: State, parts: Parts, flushes: Disk) -> None:
    """And with the mark all before it: that the message is answered, and what is to be sent."""
    adapter = FakeAdapter()
    outbox = SqliteOutbox(held, {("fake", "fake"): adapter}, "me", people=parts.people, clock=Clock())
    inbox = SqliteInbox(held, outbox, "me", Clock())
    item = await inbox.claim("s")
    assert item is not None
    answer = [Part(CHAT, FormattedText("an answer"))]
    assert await inbox.done(item, answer)
    await outbox.wake(answer)
    await flushes.reached(1)
    await settled()
    assert await held.rows("SELECT state FROM outbox") == [("attempting",)]
    assert adapter.sent == []
    assert flushes.begun == 1
    flushes.free.set()
    await outbox.idle()
    assert [sent.text for sent in adapter.sent] == ["an answer"]


async def test_a_part_whose_mark_was_not_kept_is_not_called_half_sent(
    tmp_path: Path, clock: Clock, flushes: Disk
) -> None:
    """The next process sends it, and has nothing to say of it."""
    adapter, path = FakeAdapter(), tmp_path / "limpet.sqlite"

    def outbox_of(state: State, owner: str) -> SqliteOutbox:
        return SqliteOutbox(state, {("fake", "fake"): adapter}, owner, people=people_of(state, clock), clock=clock)

    async def broken() -> None:
        async with State.open(path, flush=flushes) as state:
            outbox = outbox_of(state, "broken")
            await outbox.put("t", [Part(CHAT, FormattedText("an answer"))])
            flushes.error = OSError(errno.EIO, "no more")
            while not await state.rows("SELECT 1 FROM outbox WHERE error IS NOT NULL"):
                await asyncio.sleep(0.001)
            await outbox.close(0)

    with pytest.raises(OSError, match="no more"):
        await broken()
    assert adapter.sent == []
    flushes.error = None
    async with State.open(path, flush=flushes) as state:
        outbox = outbox_of(state, "next")
        assert await outbox.recover(lambda _: False) == 1
        await outbox.idle()
    assert [sent.text for sent in adapter.sent] == ["an answer"]


async def test_a_flush_that_can_not_be_begun_keeps_nobody_waiting(tmp_path: Path) -> None:
    """As when the process is about to end: whoever asks, and asks again, is told."""
    async with State.open(tmp_path / "limpet.sqlite") as state:
        pass
    state._committed += 1
    for _ in range(2):
        with pytest.raises(RuntimeError):
            await asyncio.wait_for(state.durable(), 5)
