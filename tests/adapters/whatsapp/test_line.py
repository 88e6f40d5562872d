"""The connection: how it is made and lost, what a person is told, and that no end hangs or loses what was said."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adapters.errors import Ambiguous, AuthFailed, Unreachable
from adapters.message import Message
from adapters.whatsapp import WhatsAppAdapter, check_link
from adapters.whatsapp.calls import in_thread
from adapters.whatsapp.library import load
from adapters.whatsapp.notebook import Notebook
from adapters.whatsapp.session import session_of
from adapters.whatsapp.settings import WhatsAppSettings
from tests.adapters.whatsapp.conftest import IN_GROUP, Open, part
from tests.adapters.work import Naps, Received, running, until
from tests.fakes.whatsapp_events import BOT, event, update
from tests.fakes.whatsapp_seam import Fault, Seam


def connected(adapter: WhatsAppAdapter) -> Callable[[], bool]:
    return lambda: adapter.health.state == "connected"


# States ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "content", "words"),
    [
        ("LoggedOut", {"OnConnect": False, "Reason": "LOGGED_OUT"}, "limpet channels login main"),
        ("LoggedOut", {"OnConnect": True, "Reason": "LOGGED_OUT"}, "limpet channels login main"),
        ("LoggedOut", {"OnConnect": True, "Reason": "MAIN_DEVICE_GONE"}, "look at WhatsApp on the phone"),
        ("LoggedOut", {"OnConnect": True, "Reason": "UNKNOWN_LOGOUT"}, "banned the account"),
        ("StreamReplaced", {}, "another program uses this link"),
        ("ClientOutdated", {}, "comes with an update of Limpet"),
        ("ConnectFailure", {"Reason": "BAD_USER_AGENT", "Message": ""}, "comes with an update of Limpet"),
    ],
)
async def test_what_only_a_person_can_mend_ends_the_run_and_says_how(
    seam: Seam, adapter: WhatsAppAdapter, kind: str, content: dict[str, Any], words: str
) -> None:
    run = asyncio.create_task(adapter.run(Received().accept))
    await until(connected(adapter))
    seam.report(kind, event(content, kind))
    with pytest.raises(AuthFailed, match=words):
        await asyncio.wait_for(run, 10)
    assert adapter.health.state == "failed"
    assert words in adapter.health.detail
    with pytest.raises(Unreachable):
        await adapter.send(part(), "key")


@pytest.mark.parametrize(("expire", "seconds"), [(7200, 7200.0), (7_200_000_000_000, 7200.0), (0, 3600.0)])
async def test_a_ban_for_a_while_is_waited_for(
    seam: Seam, adapter: WhatsAppAdapter, naps: Naps, expire: int, seconds: float
) -> None:
    naps.limit = 1
    async with running(adapter, Received().accept):
        await until(connected(adapter))
        ban = {"Code": "SENT_TOO_MANY_SAME_MESSAGE", "Expire": expire}
        seam.report("TemporaryBan", event(ban, "TemporaryBan"))
        await until(lambda: adapter.health.state == "retrying")
        assert "the same message to too many people" in adapter.health.detail
        assert ("until 20" in adapter.health.detail) is (expire > 0)
        await until(lambda: naps.taken == [seconds])
        assert not seam.is_connected


@pytest.mark.parametrize("reason", ["GENERIC", "INTERNAL_SERVER_ERROR", "SERVICE_UNAVAILABLE", "EXPERIMENTAL"])
async def test_what_may_pass_is_tried_again(seam: Seam, adapter: WhatsAppAdapter, reason: str) -> None:
    async with running(adapter, Received().accept):
        await until(connected(adapter))
        seam.report("ConnectFailure", event({"Reason": reason, "Message": "later"}, "ConnectFailure"))
        await until(lambda: seam.starts == 2 and adapter.health.state == "connected")
        assert adapter.health.reconnects == 1


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("Disconnected", {"status": True}),
        ("KeepAliveTimeout", {"ErrorCount": 1, "LastSuccess": 1}),
        ("StreamError", {"Code": "503"}),
    ],
)
async def test_a_lost_connection_is_told_and_found_again(
    seam: Seam, adapter: WhatsAppAdapter, kind: str, content: dict[str, Any]
) -> None:
    async with running(adapter, Received().accept):
        await until(connected(adapter))
        seam.report(kind, event(content, kind))
        await until(lambda: adapter.health.state == "retrying")
        assert "made again" in adapter.health.detail
        if kind == "KeepAliveTimeout":
            seam.report("KeepAliveRestored", event({}, "KeepAliveRestored"))
        else:
            seam.report("KeepAliveRestored", event({}, "KeepAliveRestored"))  # told late
            await asyncio.to_thread(seam.all_reported)
            assert adapter.health.state == "retrying"
            seam.report("Connected", event({"status": True}, "Connected"))
        await until(connected(adapter))
        assert seam.starts == 1, "the library does it by itself"


async def test_where_nobody_is_there_the_library_is_not_started(
    seam: Seam, opened: Open, naps: Naps, unused_tcp_port: int
) -> None:
    """G-OPS-16: each of its starts that fails leaves a file open for good."""
    adapter = opened(proxy_url=f"http://127.0.0.1:{unused_tcp_port}")
    naps.limit = 5
    async with running(adapter, Received().accept):
        await until(lambda: len(naps.taken) == 5)
        assert adapter.health.state == "retrying"
        assert "proxy_url can't be reached (Connection refused)" in adapter.health.detail
    assert seam.starts == 0


async def test_a_first_connection_that_fails_is_tried_again(seam: Seam, adapter: WhatsAppAdapter) -> None:
    seam.vanish()
    async with running(adapter, Received().accept):
        await until(lambda: seam.starts > 1)
        assert "connection refused" in adapter.health.detail
        seam.reappear()
        await until(connected(adapter))


async def test_a_connection_that_stays_lost_is_begun_anew(
    seam: Seam, adapter: WhatsAppAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library waits longer each time, without end."""
    monkeypatch.setattr("adapters.whatsapp.line._BEAT_SECONDS", 0.01)
    monkeypatch.setattr("adapters.whatsapp.line._PATIENCE_SECONDS", 0.05)
    async with running(adapter, Received().accept):
        await until(connected(adapter))
        heard = adapter.health.heard_at
        await until(lambda: adapter.health.heard_at != heard)  # silence is told from a connection that is lost
        seam.vanish()
        await until(lambda: seam.starts > 1)
        seam.reappear()
        await until(connected(adapter))


async def test_an_account_that_is_not_linked_is_not_run(seam: Seam, folder: Path, adapter: WhatsAppAdapter) -> None:
    seam.unlink(folder)
    with pytest.raises(AuthFailed, match="not linked to an account: limpet channels login main"):
        await adapter.run(Received().accept)
    assert seam.starts == 0


# Ends -----------------------------------------------------------------------------------------------------------------


async def test_it_can_be_stopped_and_run_again(seam: Seam, adapter: WhatsAppAdapter) -> None:
    received = Received()
    for number in range(3):
        async with running(adapter, received.accept):
            await until(connected(adapter))
            seam.says(f"{number}")
            await until(lambda: received.texts[-1:] == [f"{number}"])  # noqa: B023  # it is over before the next
        assert adapter.health.state == "stopped"
    await adapter.close()
    assert not seam.is_connected
    assert list(dict.fromkeys(received.texts)) == ["0", "1", "2"], "the newest may come twice: that is a replay"


async def test_what_is_ready_at_a_stop_still_leaves(seam: Seam, opened: Open) -> None:
    """The hub receives nothing more, and sends the answers that it has; what is said meanwhile waits on the disk."""
    adapter = opened()
    received = Received()
    async with running(adapter, received.accept):
        await until(connected(adapter))
        seam.says("hello")
        await until(lambda: received.texts == ["hello"])
    seam.says("one more thing")
    await adapter.send(part("good night"), "key")
    assert [sent.text for sent in seam.sent] == ["good night"]
    await adapter.close()
    with pytest.raises(Unreachable):
        await adapter.send(part("too late"), "key")
    assert received.texts == ["hello"]
    again = opened()
    async with running(again, received.accept):
        await until(lambda: received.texts[-1] == "one more thing")


async def test_an_end_before_the_connection_is_made_leaves_none_behind(seam: Seam, adapter: WhatsAppAdapter) -> None:
    for _ in range(5):
        run = asyncio.create_task(adapter.run(Received().accept))
        await until(lambda: seam.starts > 0)
        run.cancel()
        await asyncio.wait([run])
        seam.starts = 0
        await adapter.close()
        assert not seam.is_connected


async def test_an_end_before_the_library_has_begun_leaves_no_connection_behind(
    seam: Seam, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told to end before it is there, it would begin all the same, and take the connection of the next run away."""
    monkeypatch.setattr("adapters.whatsapp.client._END_SECONDS", 0.2)
    adapter = opened(write_first=True)
    seam.may_begin.clear()
    async with running(adapter, Received().accept):
        await until(lambda: seam.starts == 1)
        with pytest.raises(Unreachable, match="no connection"):
            await adapter.send(part(), "key")  # Go would fall over a client that is not there
        await adapter.typing(part().address)
    closing = asyncio.create_task(adapter.close())
    await until(lambda: bool(seam._stopped))
    seam.may_begin.set()
    await closing
    assert not seam.is_connected
    assert seam._clients == {}


async def test_an_end_while_the_library_hangs_does_not_hang(
    seam: Seam, adapter: WhatsAppAdapter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever Go's threads do, the program ends, and can begin anew."""
    hung = threading.Event()
    monkeypatch.setattr("adapters.whatsapp.client._END_SECONDS", 0.02)
    monkeypatch.setattr(seam, "Stop", lambda name: hung.wait(20))
    async with running(adapter, Received().accept):
        await until(connected(adapter))
    async with asyncio.timeout(2):
        await adapter.close()
    assert "left to itself" in caplog.text
    hung.set()
    monkeypatch.undo()
    async with running(adapter, Received().accept):
        await until(connected(adapter))


async def test_a_call_that_hangs_holds_nobody_up(seam: Seam, opened: Open) -> None:
    """Neither the event loop nor the threads that the program shares nor an end of it."""
    adapter = opened(answer_seconds=0.02, write_first=True)
    async with running(adapter, Received().accept):
        await until(connected(adapter))
        for number in range(40):  # more than there are shared threads
            seam.faults.append(Fault(stalls=True))
            with pytest.raises(Ambiguous, match="did not say"):
                await adapter.send(part(), f"{number}")
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 5) == "free"


async def test_a_call_goes_on_after_its_caller_has_gone() -> None:
    """And what comes of it is nobody's trouble."""
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def call() -> None:
        begun.set()
        may_end.wait(10)
        ended.set()
        raise ValueError("nobody hears this")

    task = asyncio.create_task(in_thread(call))
    await until(begun.is_set)
    task.cancel()
    await asyncio.wait([task])
    may_end.set()
    await until(ended.is_set)
    with pytest.raises(ValueError, match="heard"):
        await in_thread(_fails)


def test_a_call_that_hangs_does_not_keep_the_program_from_ending() -> None:
    program = (
        "import asyncio, threading\n"
        "from adapters.whatsapp.calls import in_thread\n"
        "async def main():\n"
        "    try:\n"
        "        async with asyncio.timeout(0.05):\n"
        "            await in_thread(threading.Event().wait)\n"
        "    except TimeoutError:\n"
        "        print('ended')\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout == "ended\n"


def _fails() -> None:
    raise ValueError("heard")


# What was said at an end ----------------------------------------------------------------------------------------------


async def test_what_the_library_holds_at_an_end_comes_to_the_next_run(
    seam: Seam, adapter: WhatsAppAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    """G-DLV-07, G-DLV-21: WhatsApp has its receipt for all of them, and brings none again."""
    begun = asyncio.Event()

    async def never_stores(_: object) -> None:
        begun.set()
        await asyncio.Event().wait()

    async with running(adapter, never_stores):
        await until(connected(adapter))
        for number in range(30):
            seam.says(f"{number}")
        await asyncio.wait_for(begun.wait(), 10)
    received = Received()
    async with running(adapter, received.accept):
        await until(lambda: len(received.messages) >= 30)
    assert received.texts == [f"{number}" for number in range(30)]


async def test_a_process_that_is_killed_before_it_has_stored_goes_on_from_its_note(
    seam: Seam, adapter: WhatsAppAdapter, folder: Path
) -> None:
    """G-DLV-07: the note is on the disk before the hub hears of the message, and gone once that has stored it."""
    noted: list[int] = []

    async def looks(_: object) -> None:
        noted.append(_noted(folder))

    async with running(adapter, looks):
        await until(connected(adapter))
        seam.says("one")
        seam.says("two")
        await until(lambda: len(noted) == 2)
        assert noted == [1, 1]
        await until(lambda: _noted(folder) == 0)


def _noted(folder: Path) -> int:
    with closing(sqlite3.connect(f"file:{folder / 'notebook.db'}?mode=ro", uri=True)) as file:
        return int(file.execute("SELECT count(*) FROM reported").fetchone()[0])


async def test_what_the_journal_can_not_take_is_stored_all_the_same(
    seam: Seam, adapter: WhatsAppAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("adapters.whatsapp.notebook.Notebook.keep", full)
    received = Received()
    async with running(adapter, received.accept):
        await until(connected(adapter))
        seam.says("one")
        await until(lambda: received.texts == ["one"])


async def test_what_was_said_while_away_is_answered_and_what_is_old_is_only_noted(
    seam: Seam, opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    seam.says("long ago", at=int(time.time()) - 2 * 3600)
    seam.says("just now", at=int(time.time()) - 1800)
    received = Received()
    with caplog.at_level(logging.INFO):
        async with running(opened(history_hours=1), received.accept):
            await until(lambda: received.texts == ["just now"])
            await until(lambda: "older than history_hours, and not answered: 1" in caplog.text)
    assert "long ago" not in caplog.text


async def test_without_history_only_what_is_said_from_now_on_is_answered(seam: Seam, opened: Open) -> None:
    seam.says("an hour ago", at=int(time.time()) - 3600)
    received = Received()
    async with running(opened(history_hours=0), received.accept):
        seam.says("now")
        await until(lambda: "now" in received.texts)
    assert received.texts == ["now"]


# The folder -----------------------------------------------------------------------------------------------------------


async def test_nobody_else_can_read_what_is_kept(seam: Seam, adapter: WhatsAppAdapter, folder: Path) -> None:
    """Whoever has the session is the account."""
    received = Received()
    session_of(folder).chmod(0o644)
    folder.chmod(0o755)
    before = os.umask(0)
    try:
        async with running(adapter, received.accept):
            await until(connected(adapter))
            seam.says("hello")
            await until(lambda: received.texts == ["hello"])
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    finally:
        os.umask(before)
    assert {"session.db", "notebook.db", "people.json"} <= modes.keys()
    assert set(modes.values()) == {0o600}, modes
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


async def test_a_check_says_whose_the_account_is(seam: Seam, folder: Path) -> None:
    me = await check_link(WhatsAppSettings(), folder)
    assert (me.id, me.name, me.lid, me.device) == (f"+{BOT['phone']}", "Limpet", f"{BOT['lid']}@lid", 7)
    assert me.link == f"https://wa.me/{BOT['phone']}"
    seam.unlink(folder)
    with pytest.raises(AuthFailed, match="not linked"):
        await check_link(WhatsAppSettings(), folder)
    with pytest.raises(AuthFailed, match="not linked"):
        await check_link(WhatsAppSettings(), folder / "elsewhere")
    (folder / "session.db").write_bytes(b"this is no database, and long enough to be seen as none" * 40)
    with pytest.raises(AuthFailed, match="move it away, and link again"):
        await check_link(WhatsAppSettings(), folder)


async def test_the_hidden_id_of_the_account_is_looked_up_once_it_is_there(
    seam: Seam, folder: Path, adapter: WhatsAppAdapter
) -> None:
    """WhatsApp may say it only after the account was linked; a mention of it is one of us."""
    seam.unlink(folder)
    seam.link(folder, lid="")
    received = Received()
    async with running(adapter, received.accept):
        await until(connected(adapter))
        seam.unlink(folder)
        seam.link(folder)
        seam.report("Connected", event({"status": True}, "Connected"))
        context = {"mentionedJID": [f"{BOT['lid']}@lid"]}
        seam.reports_message({"extendedTextMessage": {"text": f"@{BOT['lid']} hi", "contextInfo": context}}, **IN_GROUP)
        await until(lambda: bool(received.messages))
    assert received.messages[0].mentions_me


async def test_a_session_that_was_being_written_when_the_process_was_killed_is_read(seam: Seam, folder: Path) -> None:
    """What was half written is undone by whoever opens it first."""
    path = session_of(folder)
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA cache_size = 1")
        file.execute("CREATE TABLE keys (data BLOB)")
        file.execute("BEGIN")
        for _ in range(200):
            file.execute("INSERT INTO keys VALUES (randomblob(4000))")
        file.execute("DELETE FROM whatsmeow_device")
        killed = {name: (folder / name).read_bytes() for name in (path.name, f"{path.name}-journal")}
        file.rollback()
    for name, data in killed.items():
        (folder / name).write_bytes(data)
    me = await check_link(WhatsAppSettings(), folder)
    assert me.id == f"+{BOT['phone']}"


async def test_a_session_that_is_being_written_is_waited_for(
    seam: Seam, folder: Path, adapter: WhatsAppAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.whatsapp.session._BUSY_SECONDS", 0.01)
    with closing(sqlite3.connect(session_of(folder))) as file:
        file.execute("BEGIN EXCLUSIVE")
        async with running(adapter, Received().accept):
            await until(lambda: adapter.health.state == "retrying")
            assert "is being written to" in adapter.health.detail
            file.rollback()
            await until(connected(adapter))


def _of_an_earlier_run(folder: Path) -> Notebook:
    notebook = Notebook(folder)
    notebook.belongs_to(f"+{BOT['phone']}")
    return notebook


async def test_a_note_that_can_not_be_read_holds_up_nothing(seam: Seam, folder: Path, adapter: WhatsAppAdapter) -> None:
    """It may be of an older release."""
    notebook = _of_an_earlier_run(folder)
    notebook.keep(17, b"\xff\xff no event")
    notebook.keep(99, b"")
    notebook.close()
    received = Received()
    async with running(adapter, received.accept):
        seam.says("hello")
        await until(lambda: received.texts == ["hello"])
        await until(lambda: _noted(folder) == 0)


async def test_a_note_on_which_the_process_dies_is_skipped_in_the_end(
    seam: Seam, folder: Path, adapter: WhatsAppAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    """Else one message would keep the channel from ever starting again."""
    notebook = _of_an_earlier_run(folder)
    said = load().events.Message.FromString(event(update({"conversation": "a bomb"})).SerializeToString())
    number = notebook.keep(17, said.SerializeToString())
    assert [notebook.tried(number) for _ in range(3)] == [True] * 3  # three processes died on it
    notebook.close()
    received = Received()
    async with running(adapter, received.accept):
        seam.says("hello")
        await until(lambda: received.texts == ["hello"])
        await until(lambda: _noted(folder) == 0)
    assert "an event was skipped" in caplog.text
    assert "bomb" not in caplog.text


async def test_a_note_that_can_not_be_stored_is_tried_for_as_long_as_it_takes(
    folder: Path, adapter: WhatsAppAdapter, naps: Naps
) -> None:
    """A full disk is no fault of the message's."""
    notebook = _of_an_earlier_run(folder)
    notebook.keep(17, event(update({"conversation": "hello"})).SerializeToString())
    notebook.close()
    received = Received(troubles=[OSError("full")] * 6)
    async with running(adapter, received.accept):
        await until(lambda: received.texts == ["hello"])
    assert len(naps.taken) >= 6


async def test_a_broken_notebook_is_explained(seam: Seam, adapter: WhatsAppAdapter, folder: Path) -> None:
    (folder / "notebook.db").write_bytes(b"this is no database, and long enough to be seen as none" * 40)
    with pytest.raises(AuthFailed, match=r"notebook\.db"):
        await adapter.run(Received().accept)


def test_the_library_keeps_the_account_where_we_look_for_it(tmp_path: Path) -> None:
    """By its real Go side: a release that moves it fails here."""
    load()
    from neonize._binder import func_callback_bytes2, gocode

    assert gocode.GetAllDevices(str(session_of(tmp_path)).encode(), func_callback_bytes2(lambda *_: None)) == b""
    with closing(sqlite3.connect(session_of(tmp_path))) as file:
        columns = {row[1] for row in file.execute("PRAGMA table_info(whatsmeow_device)")}
    assert {"jid", "lid", "push_name"} <= columns


async def test_nothing_that_a_person_said_is_logged(
    seam: Seam, adapter: WhatsAppAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    """One that can't be read is skipped by itself, and named without its words."""
    received = Received()
    with caplog.at_level(logging.DEBUG):
        async with running(adapter, received.accept):
            await until(connected(adapter))
            seam.says("a secret", at=10**17)
            broken = event({"Info": {"ID": "3AX", "Pushname": "a secret"}})
            broken.Info.MessageSource.Chat.User = "15550000002"
            broken.Info.MessageSource.Chat.Server = "s.whatsapp.net"
            broken.Message.extendedTextMessage.text = "a secret"
            broken.Message.extendedTextMessage.contextInfo.participant = "\x00"
            seam.report("Message", broken)
            seam.report("UndecryptableMessage", event({"IsUnavailable": False}, "UndecryptableMessage"))
            seam.says("after it")
            await until(lambda: "after it" in [message.text for message in received.of(Message)])
    assert "a secret" not in caplog.text
    assert "could not be decrypted" in caplog.text


async def test_nothing_is_written_before_all_that_was_written_meanwhile_has_come(seam: Seam, opened: Open) -> None:
    """Who writes while it reads uses a key twice now and then, and what it wrote is lost without a word."""
    received, adapter = Received(), opened(write_first=True)
    async with running(adapter, received.accept):
        await until(connected(adapter))
        await adapter.send(part(), "1")
        seam.report("Disconnected", event({"status": True}, "Disconnected"))
        await until(lambda: adapter.health.state == "retrying")
        with pytest.raises(Unreachable, match="no connection"):
            await adapter.send(part(), "2")
        seam.report("Connected", event({"status": True}, "Connected"))
        await until(connected(adapter))
        sending = asyncio.create_task(adapter.send(part(), "2"))
        seam.reports_message({"conversation": "are you there?"})
        await until(lambda: received.texts == ["are you there?"])
        assert not sending.done()
        assert len(seam.sent) == 1
        seam.report("OfflineSyncCompleted", event({"Count": 1}, "OfflineSyncCompleted"))
        await sending
        assert len(seam.sent) == 2


async def test_what_has_come_before_the_connection_is_told_holds_nothing_up(seam: Seam, opened: Open) -> None:
    """The library uploads keys before it says that it is connected; else each first answer would wait for 20 s."""
    adapter = opened(write_first=True)
    received = Received()
    async with running(adapter, received.accept):
        await until(connected(adapter))
        for _ in range(2):
            seam.report("Disconnected", event({"status": True}, "Disconnected"))
            await until(lambda: adapter.health.state == "retrying")
            seam.report("OfflineSyncCompleted", event({"Count": 0}, "OfflineSyncCompleted"))
            seam.report("Connected", event({"status": True}, "Connected"))
            await until(connected(adapter))
            async with asyncio.timeout(5):
                await adapter.send(part(), "1")
        seam.report("Disconnected", event({"status": True}, "Disconnected"))
        seam.report("Connected", event({"status": True}, "Connected"))
        await asyncio.to_thread(seam.all_reported)
        sending = asyncio.create_task(adapter.send(part(), "2"))
        await asyncio.sleep(0.1)
        assert not sending.done(), "that was another connection's"
        seam.report("OfflineSyncCompleted", event({"Count": 0}, "OfflineSyncCompleted"))
        await sending
