"""Adapters in a process of their own: real processes, which are killed, hang, and say what makes no sense."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import get_args

import pytest
from pydantic import SecretStr

from adapters import adapter as contract
from adapters import errors
from adapters.adapter import (
    Adapter,
    Backfiller,
    Drafter,
    Eraser,
    Leaver,
    Menu,
    Narrator,
    Offered,
    Reactor,
    Settler,
)
from adapters.errors import Ambiguous, AuthFailed, Rejected, Unreachable
from adapters.isolated.host import AdapterFault, Times, isolated
from adapters.message import Inbound, Message, Part
from adapters.text import FormattedText
from tests.contracts.telegram import TelegramHarness
from tests.fakes.isolated import ERRORS, EVENTS, NOON, PANIC, PLACE, PuppetSettings

SECRET = "s3cret-of-the-puppet"


@dataclass
class Hub:
    """Where the events go. ``troubles`` are raised by the next of them; each waits for ``open``."""

    events: list[Inbound] = field(default_factory=list)
    troubles: list[Exception] = field(default_factory=list)
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    open: asyncio.Event = field(default_factory=asyncio.Event)
    given_up: bool = False

    def __post_init__(self) -> None:
        self.open.set()

    async def accept(self, event: Inbound) -> None:
        self.reached.set()
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.given_up = True
            raise
        if self.troubles:
            raise self.troubles.pop(0)
        self.events.append(event)


@dataclass
class Pauses:
    """Those after a death, in seconds; they take no time."""

    taken: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.taken.append(seconds)
        await asyncio.sleep(0)


def part(text: str) -> Part:
    return Part(PLACE, FormattedText(text))


def puppet(
    folder: Path, kind: str = "Puppet", *, patience: float = 20, pauses: Pauses | None = None, **settings: object
) -> Adapter:
    times = Times(sleep=(pauses or Pauses()).sleep, random=lambda: 0.5, patience=patience)
    chosen = PuppetSettings.model_validate(settings)
    return isolated(f"tests.fakes.isolated:{kind}", "main", chosen, {"folder": folder}, times)


@asynccontextmanager
async def at_work(adapter: Adapter, hub: Hub) -> AsyncIterator[None]:
    run = asyncio.create_task(adapter.run(hub.accept))
    try:
        await until(lambda: adapter.health.state == "connected")
        yield
    finally:
        run.cancel()
        await asyncio.wait([run])
        await adapter.close()
    assert run.cancelled()
    assert adapter.health.state == "stopped"


@asynccontextmanager
async def running(adapter: Adapter, hub: Hub | None = None) -> AsyncIterator[int]:
    """At work; gives the id of the process. Nothing of it is left afterwards."""
    async with at_work(adapter, hub or Hub()):
        yield (pid := await pid_of(adapter))
    assert is_gone(pid)


async def says(adapter: Adapter, text: str) -> str:
    return (await adapter.send(part(text), "key")).message_id or ""


async def pid_of(adapter: Adapter) -> int:
    return int(await says(adapter, "pid"))


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(15):
        while not is_so():
            await asyncio.sleep(0.01)


def ps(*arguments: str) -> str:
    return subprocess.run(["ps", *arguments], capture_output=True, text=True, check=False).stdout


def is_gone(pid: int) -> bool:
    state = ps("-o", "stat=", "-p", str(pid))
    return not state.strip() or state.startswith("Z")


async def fails(asked: Awaitable[object], kind: type[Exception]) -> str:
    with pytest.raises(kind) as caught:
        await asked
    assert type(caught.value) is kind
    return str(caught.value)


async def dies(adapter: Adapter, what: str, kind: type[Exception] = Ambiguous) -> str:
    """Says ``what``, of which the process dies. Returns the error once the next process is at work."""
    before = adapter.health.reconnects
    reason = await fails(adapter.send(part(what), "key"), kind)
    await until(lambda: adapter.health.reconnects == before + 1)
    assert adapter.health.state == "connected"
    assert await says(adapter, "hello") == "key hello"
    return reason


# What goes over the pipe


async def test_every_event_arrives_as_it_was_said(tmp_path: Path) -> None:
    assert {type(event) for event in EVENTS.values()} == {*get_args(Inbound)}
    hub, adapter = Hub(), puppet(tmp_path)
    async with running(adapter, hub):
        for name in EVENTS:
            assert await says(adapter, f"say {name}") == "stored"
    assert hub.events == [*EVENTS.values()]


async def test_every_error_arrives_as_it_was_raised(tmp_path: Path) -> None:
    assert {type(error) for error in ERRORS.values()} == {
        kind for kind in vars(errors).values() if isinstance(kind, type) and kind is not errors.AdapterError
    }
    adapter = puppet(tmp_path)
    async with running(adapter):
        for name, error in ERRORS.items():
            with pytest.raises(type(error)) as caught:
                await says(adapter, f"raise {name}")
            assert type(caught.value) is type(error)
            assert (str(caught.value), vars(caught.value)) == (str(error), vars(error))


async def test_what_an_adapter_never_should_raise_may_have_sent_something(tmp_path: Path) -> None:
    adapter = puppet(tmp_path)
    async with running(adapter):
        assert "KeyError" in await fails(says(adapter, "fault x"), Ambiguous)
        assert await says(adapter, "hello") == "key hello"


async def test_what_could_not_be_stored_is_an_error_over_there(tmp_path: Path) -> None:
    """G-DLV-07"""
    hub, adapter = Hub(troubles=[OSError("disk full")]), puppet(tmp_path)
    async with running(adapter, hub):
        assert await says(adapter, "say bare") == "NotStored: OSError: disk full"
        assert hub.events == []
        assert await says(adapter, "say bare") == "stored"


async def test_an_event_is_stored_before_the_adapter_goes_on(tmp_path: Path) -> None:
    """G-DLV-06"""
    hub, adapter = Hub(), puppet(tmp_path)
    hub.open.clear()
    async with running(adapter, hub):
        saying = asyncio.create_task(says(adapter, "say bare"))
        await hub.reached.wait()
        assert await says(adapter, "hello") == "key hello", "nothing else waits for it"
        assert not saying.done()
        hub.open.set()
        assert await saying == "stored"


async def test_who_gives_up_waiting_takes_it_back_on_the_other_side(tmp_path: Path) -> None:
    hub, adapter = Hub(), puppet(tmp_path)
    hub.open.clear()
    async with running(adapter, hub):
        assert await says(adapter, "hurry") == "gave up"
        await until(lambda: hub.given_up)
        sending = asyncio.create_task(says(adapter, "wait"))
        await until((tmp_path / "waiting").exists)
        sending.cancel()
        await fails(sending, asyncio.CancelledError)  # type: ignore[arg-type]
        await until((tmp_path / "cancelled").exists)


async def test_what_is_too_large_or_no_text_is_refused_and_harms_nobody(tmp_path: Path) -> None:
    adapter = puppet(tmp_path)
    async with running(adapter) as pid:
        for text in ("x" * (5 << 20), "\ud800"):
            await fails(says(adapter, text), Rejected)
        assert await pid_of(adapter) == pid


def test_it_can_what_the_adapter_can(tmp_path: Path) -> None:
    optional = [kind for kind in vars(contract).values() if getattr(kind, "_is_runtime_protocol", False)]
    optional.remove(Narrator)
    assert {Backfiller, Drafter, Eraser, Leaver, Menu, Reactor, Settler} <= {*optional}
    plain, full = puppet(tmp_path), puppet(tmp_path, "Marionette")
    assert [kind for kind in (*optional, Narrator) if isinstance(plain, kind)] == []
    assert [kind for kind in (*optional, Narrator) if isinstance(full, kind)] == optional
    assert (plain.channel, plain.account, plain.capabilities.text_limit) == ("puppet", "main", 100)
    assert plain.measure(FormattedText("abc")) == 6


async def test_what_an_adapter_can_besides(tmp_path: Path) -> None:
    adapter = puppet(tmp_path, "Marionette")
    assert isinstance(adapter, Drafter)
    assert isinstance(adapter, Reactor)
    assert isinstance(adapter, Eraser)
    assert isinstance(adapter, Leaver)
    assert isinstance(adapter, Settler)
    await adapter.react(PLACE, "m", "x")
    assert not (tmp_path / "react").exists(), "nothing is started for what is only shown"
    async with running(adapter):
        assert adapter.drafts(PLACE) == 0.5
        await adapter.draft(part("hel"), "turn")
        assert adapter.drafts(PLACE) is None, "as the platform said meanwhile"
        await adapter.react(PLACE, "m", "👀")
        await adapter.erase(PLACE, "m")
        await adapter.leave(PLACE)
        marks = {name: (tmp_path / name).read_text() for name in ("draft", "react", "erase", "leave")}
        assert marks == {"draft": "turn", "react": "m👀", "erase": "m", "leave": "7"}
        receipt = await adapter.settle(part("a"), "known", NOON)
        assert receipt is not None
        assert receipt.message_id == NOON.isoformat()
        assert await adapter.settle(part("a"), "unknown", NOON) is None


async def test_a_new_process_goes_on_where_the_last_one_was(tmp_path: Path) -> None:
    """What was said between the two is read up, and not all since the start of the hub."""
    adapter = puppet(tmp_path, "Marionette")
    assert isinstance(adapter, Backfiller)
    assert isinstance(adapter, Menu)
    adapter.resume({"7": "a", "8": "b"}, NOON - timedelta(days=1))
    adapter.offer([Offered("new", "Start afresh")])
    async with running(adapter) as pid:
        assert (tmp_path / "resume").read_text() == f"{{'7': 'a', '8': 'b'}} {NOON - timedelta(days=1)}"
        await says(adapter, "say message")
        (tmp_path / "offer").unlink()
        os.kill(pid, signal.SIGKILL)
        await until(lambda: adapter.health.reconnects == 1)
        assert (tmp_path / "resume").read_text() == f"{{'7': 'm', '8': 'b'}} {NOON}"
        assert (tmp_path / "offer").read_text() == "new"


async def test_a_real_library_works_there(caplog: pytest.LogCaptureFixture) -> None:
    """Telegram, whose library logs its token with every call."""
    caplog.set_level(logging.DEBUG)
    harness, hub = TelegramHarness(), Hub()
    await harness.start()
    adapter = isolated("adapters.telegram:TelegramAdapter", "main", harness._settings())
    async with at_work(adapter, hub):
        await harness.says("hello")
        await until(lambda: [event.text for event in hub.events if isinstance(event, Message)] == ["hello"])
        receipt = await adapter.send(Part(await harness.ready(adapter), FormattedText("hi")), "key")
        assert receipt.message_id
        assert harness.shown() == ["hi"]
    await harness.stop()
    assert not any(secret in caplog.text for secret in harness.secrets)


# Files


async def test_a_file_comes_piece_by_piece_as_it_is_read(tmp_path: Path) -> None:
    adapter = puppet(tmp_path)
    async with running(adapter):
        assert b"".join([piece async for piece in adapter.fetch("20", 2_000_000)]) == b"".join(
            bytes([number]) * 100_000 for number in range(20)
        )
        stream = adapter.fetch("100000", 10**12)
        for _ in range(5):
            await anext(stream)
        assert await says(adapter, "hello") == "key hello"
        assert int((tmp_path / "fetched").read_text()) <= 5, "it reads ahead of who asks"
        (tmp_path / "let go").unlink()
        del stream
        await until((tmp_path / "let go").exists)


async def test_a_limit_holds_whatever_the_adapter_does(tmp_path: Path) -> None:
    adapter = puppet(tmp_path)
    async with running(adapter):
        with pytest.raises(Rejected):
            [piece async for piece in adapter.fetch("1000", 199_999)]
        await until((tmp_path / "let go").exists)
        assert int((tmp_path / "fetched").read_text()) < 5
        with pytest.raises(Unreachable):
            [piece async for piece in adapter.fetch("no number", 9)]


async def test_a_process_that_dies_cuts_a_file_off(tmp_path: Path) -> None:
    adapter = puppet(tmp_path)
    async with running(adapter) as pid:
        stream = adapter.fetch("100000", 10**12)
        await anext(stream)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(Unreachable):
            [piece async for piece in stream]


# Deaths


@pytest.mark.parametrize("idempotent", [False, True])
async def test_a_send_that_had_begun_may_have_arrived(tmp_path: Path, idempotent: bool) -> None:
    """G-DLV-11"""
    adapter = puppet(tmp_path, idempotent=idempotent)
    async with running(adapter) as pid:
        sending = asyncio.create_task(says(adapter, "wait"))
        await until((tmp_path / "waiting").exists)
        os.kill(pid, signal.SIGKILL)
        assert "SIGKILL" in await fails(sending, Unreachable if idempotent else Ambiguous)
        await until(lambda: adapter.health.reconnects == 1)


async def test_a_send_that_is_begun_is_told_first(tmp_path: Path) -> None:
    """Be the hub so busy that it reads nothing: what nobody was told of would be sent a second time."""
    adapter = puppet(tmp_path)
    async with running(adapter):
        sending = [asyncio.create_task(says(adapter, text)) for text in ("flood", "panic")]
        await asyncio.sleep(0.01)
        time.sleep(0.5)  # noqa: ASYNC251 - nothing is read meanwhile
        await fails(sending[1], Ambiguous)
        await asyncio.wait(sending)
        assert await sending[0] == "key flood"


async def test_a_send_that_had_not_begun_did_not_arrive(tmp_path: Path) -> None:
    adapter = puppet(tmp_path)
    async with running(adapter) as pid:
        os.kill(pid, signal.SIGSTOP)
        sending = [asyncio.create_task(says(adapter, "hello")) for _ in range(3)]
        await asyncio.sleep(0.05)
        os.kill(pid, signal.SIGKILL)
        for each in sending:
            await fails(each, Unreachable)


async def test_a_death_at_rest_is_told_and_outlived(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pauses, waiting = Pauses(), asyncio.Event()

    async def sleep(seconds: float) -> None:
        pauses.taken.append(seconds)
        await waiting.wait()

    adapter = isolated(
        "tests.fakes.isolated:Puppet", "main", PuppetSettings(), {"folder": tmp_path}, Times(sleep, random=lambda: 0.5)
    )
    async with running(adapter) as pid:
        os.kill(pid, signal.SIGKILL)
        await until(lambda: adapter.health.state == "retrying")
        assert "SIGKILL" in adapter.health.detail
        assert adapter.health.heard_at == NOON
        assert "SIGKILL" in await fails(says(adapter, "hello"), Unreachable)
        assert pauses.taken == [1.0], "a send starts none while run waits"
        waiting.set()
        await until(lambda: adapter.health.state == "connected")
        assert adapter.health.reconnects == 1
        assert await pid_of(adapter) != pid
    assert [record.levelname for record in caplog.records if "SIGKILL" in record.getMessage()] == ["WARNING"]


async def test_what_was_said_by_a_dying_process_is_stored(tmp_path: Path) -> None:
    """G-DLV-07: a platform that brings nothing twice has brought it."""
    hub, adapter = Hub(), puppet(tmp_path)
    hub.open.clear()
    async with running(adapter, hub) as pid:
        saying = asyncio.create_task(says(adapter, "say bare"))
        await hub.reached.wait()
        os.kill(pid, signal.SIGKILL)
        await fails(saying, Ambiguous)
        hub.open.set()
        await until(lambda: hub.events == [EVENTS["bare"]])
        await until(lambda: adapter.health.reconnects == 1)
        assert await says(adapter, "say message") == "stored"


async def test_a_panic_of_a_foreign_runtime_is_one_entry_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    adapter = puppet(tmp_path)
    async with running(adapter):
        helper = int(await says(adapter, "child"))
        assert "exit code 2" in await dies(adapter, "panic")
        assert is_gone(helper), "and what it started"
        (entry,) = [text for record in caplog.records if "panic:" in (text := record.getMessage())]
        assert PANIC.strip() in entry
        assert "any key" not in entry, "that is said each time, and says nothing"
        assert "SIGABRT" in await dies(adapter, "abort")
    assert SECRET not in caplog.text


@pytest.mark.parametrize("how", ["hang", "spin"])
async def test_a_process_that_hangs_is_killed(tmp_path: Path, how: str) -> None:
    adapter = puppet(tmp_path, patience=2)
    async with running(adapter) as pid:
        assert "did not answer for 2 seconds" in await dies(adapter, how)
        assert is_gone(pid)


@pytest.mark.parametrize(
    "raw",
    [
        "47455420",  # the length of "GET ", 1.2 GB
        "00000005" + b"hello".hex(),
        "00000008" + b"0 Begin\n".hex(),
        "0000000d" + b"0 Signal\n{\x00\xff}".hex(),
        "00000018" + b'0 Signal\n{"word":"halt"}'.hex(),  # ours to say
        "0000000b" + "3939393939393939393920",
    ],
)
async def test_nonsense_is_the_end_of_who_says_it(tmp_path: Path, raw: str) -> None:
    adapter = puppet(tmp_path)
    async with running(adapter):
        assert "makes no sense" in await dies(adapter, f"raw {raw}")


@pytest.mark.parametrize("what", ["channel", "account"])
async def test_nobody_speaks_for_another_channel(tmp_path: Path, what: str) -> None:
    """A process that was taken over must not be the owner at the terminal."""
    hub, adapter = Hub(), puppet(tmp_path)
    async with running(adapter, hub):
        assert "another channel" in await dies(adapter, f"forge {what}")
    assert hub.events == []


async def test_a_process_that_dies_at_once_is_started_ever_more_seldom(tmp_path: Path) -> None:
    pauses = Pauses()
    adapter = puppet(tmp_path, pauses=pauses)
    (tmp_path / "die").touch()
    run = asyncio.create_task(adapter.run(Hub().accept))
    await until(lambda: len(pauses.taken) >= 8)
    (tmp_path / "die").unlink()
    await until(lambda: adapter.health.state == "connected")
    assert pauses.taken[:8] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert adapter.health.reconnects == 0, "it never was there before"
    run.cancel()
    await asyncio.wait([run])
    await adapter.close()


async def test_what_a_person_has_to_mend_ends_the_run(tmp_path: Path) -> None:
    adapter = puppet(tmp_path)
    (tmp_path / "refuse").touch()
    assert await fails(adapter.run(Hub().accept), AuthFailed) == "401"
    assert adapter.health.state == "failed"
    (tmp_path / "refuse").rename(tmp_path / "fault")
    assert "KeyError" in await fails(adapter.run(Hub().accept), AdapterFault)
    (tmp_path / "fault").unlink()
    async with running(adapter):
        """It may be run again."""


# Ends


async def test_answers_leave_after_the_run_until_it_is_closed(tmp_path: Path) -> None:
    """The hub ends what comes in, lets the turns end, sends their answers, and closes the doors."""
    adapter = puppet(tmp_path)
    pid = await pid_of(adapter)
    run = asyncio.create_task(adapter.run(Hub().accept))
    await until(lambda: adapter.health.state == "connected")
    run.cancel()
    await asyncio.wait([run])
    assert await pid_of(adapter) == pid
    sending = asyncio.create_task(says(adapter, "wait"))
    await until((tmp_path / "waiting").exists)
    await adapter.close()
    assert is_gone(pid)
    await fails(sending, Ambiguous)
    await fails(says(adapter, "hello"), Unreachable)


async def test_who_does_not_obey_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.isolated.process._GRACE_SECONDS", 0.3)
    adapter = puppet(tmp_path)
    (tmp_path / "disobey").touch()
    async with running(adapter):
        helper = int(await says(adapter, "child"))
    await until(lambda: is_gone(helper))


async def test_a_run_that_is_cancelled_twice_leaves_nothing(tmp_path: Path) -> None:
    adapter = puppet(tmp_path)
    (tmp_path / "disobey").touch()
    run = asyncio.create_task(adapter.run(Hub().accept))
    await until(lambda: adapter.health.state == "connected")
    pid = await pid_of(adapter)
    run.cancel()
    await asyncio.sleep(0.05)
    run.cancel()
    await asyncio.wait([run], timeout=2)
    assert run.cancelled()
    await until(lambda: is_gone(pid))
    await adapter.close()


async def test_a_signal_for_the_whole_program_waits_for_the_hub(tmp_path: Path) -> None:
    adapter = puppet(tmp_path)
    async with running(adapter) as pid:
        for number in (signal.SIGINT, signal.SIGTERM):
            assert await says(adapter, f"signal {number.value}")
        assert os.getpgid(pid) != os.getpgid(0), "Ctrl-C reaches a group"
        assert await pid_of(adapter) == pid


_PROGRAM = """
import asyncio, pathlib, sys
from tests.adapters.test_isolated import part, puppet
async def main():
    adapter = puppet(pathlib.Path(sys.argv[1]))
    for what in ("pid", "child"):
        print((await adapter.send(part(what), "key")).message_id, flush=True)
    await adapter.send(part(sys.argv[2]), "key")
asyncio.run(main())
"""


@pytest.mark.parametrize("what", ["wait", "hang", "spin"])
async def test_nothing_outlives_a_hub_that_is_killed(tmp_path: Path, what: str) -> None:
    """Be its event loop blocked or not."""
    command = (sys.executable, "-c", _PROGRAM, str(tmp_path), what)
    program = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    assert program.stdout is not None
    pids = [int(await program.stdout.readline()) for _ in range(2)]
    await until(lambda: (tmp_path / "waiting").exists() or (tmp_path / "hung").exists())
    program.kill()
    await program.wait()
    await until(lambda: all(map(is_gone, pids)))


# What it is given, and what it may see


async def test_settings_arrive_with_their_secrets_and_nobody_else_sees_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("PUPPET_TOKEN", SECRET)
    monkeypatch.setenv("GOOGLE_API_KEY", "of another")
    adapter = puppet(tmp_path, others={"a": SecretStr("ötherwise"), "b": None})
    async with running(adapter) as pid:
        assert await says(adapter, "settings") == f"{SECRET} ötherwise"
        seen = await says(adapter, "environ")
        seen += ps("-ww", "-o", "command=", "-p", str(pid))
        assert "adapters.isolated.child" in seen
        assert SECRET not in seen
        assert "of another" not in seen
        await says(adapter, "log 30")
        await until(lambda: "a line, ***" in caplog.text)
    assert SECRET not in caplog.text


async def test_its_log_is_ours(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    adapter = puppet(tmp_path)
    async with running(adapter):
        for level in (logging.DEBUG, logging.INFO, logging.ERROR):
            await says(adapter, f"log {level}")
        await until(lambda: "ERROR" in caplog.text)
        await fails(says(adapter, "fault x"), Ambiguous)
    lines = [(record.name, record.levelname) for record in caplog.records if "a line" in record.getMessage()]
    assert lines == [("adapters.puppet", "INFO"), ("adapters.puppet", "ERROR")]
    assert "puppet/main: a line" in caplog.text
    assert "raise KeyError(rest)" in caplog.text, "a traceback comes along"
    assert "adapters.puppet" not in logging.root.manager.loggerDict, "a process makes no loggers here"


async def test_only_adapters_are_in_there(tmp_path: Path) -> None:
    adapter = puppet(tmp_path)
    modules = (await says(adapter, "modules")).split()
    await adapter.close()
    assert "adapters.isolated.child" not in modules, "it is __main__, and once"
    heavy = {"bot", "agents", "workspaces", "numpy", "httpx", "aiohttp", "telegram", "adapters.isolated.host", "pytest"}
    assert heavy.isdisjoint(modules)


def test_a_terminal_is_not_isolated(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="can't be isolated"):
        isolated("tests.fakes.isolated:Teller", "main", PuppetSettings(), {"folder": tmp_path})
