"""An account is linked by a code that a phone scans, or by one that is typed there."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters.errors import AuthFailed, RateLimited, Unreachable
from adapters.linking import PairingCode, QrCode, Shown
from adapters.whatsapp import WhatsAppAdapter, WhatsAppSettings
from adapters.whatsapp.linking import link
from tests.adapters.work import Naps, Received, running, until
from tests.fakes.whatsapp_events import BOT, event
from tests.fakes.whatsapp_seam import CODES, PAIRING_CODE, Seam


@pytest.fixture
async def seam() -> AsyncIterator[Seam]:
    """Nobody is linked."""
    seam = await Seam().start()
    yield seam
    await seam.stop()
    assert seam.crashes == []


def settings(seam: Seam) -> WhatsAppSettings:
    return WhatsAppSettings(proxy_url=seam.proxy_url)


async def test_each_code_is_shown_until_one_is_scanned(seam: Seam, folder: Path) -> None:
    shown: list[Shown] = []
    linking = asyncio.create_task(link(settings(seam), phone=None, show=shown.append, folder=folder))
    await until(lambda: len(shown) == len(CODES))
    assert [code.text for code in shown if isinstance(code, QrCode)] == list(CODES)
    assert all("Linked devices" in code.how for code in shown)
    seam.scanned.set()
    me = await asyncio.wait_for(linking, 10)
    assert (me.id, me.name) == (f"+{BOT['phone']}", "Limpet")
    assert not seam.is_connected
    assert stat.S_IMODE((folder / "session.db").stat().st_mode) == 0o600


@pytest.mark.parametrize("phone", ["+1 555 000-0001", "0015550000001", "https://wa.me/15550000001"])
async def test_a_code_to_type_is_asked_for_once(seam: Seam, folder: Path, phone: str) -> None:
    shown: list[Shown] = []
    linking = asyncio.create_task(link(settings(seam), phone=phone, show=shown.append, folder=folder))
    await until(lambda: bool(shown))
    seam.scanned.set()
    await asyncio.wait_for(linking, 10)
    assert [(type(code), code.text) for code in shown] == [(PairingCode, PAIRING_CODE)]
    assert seam.pairing_of == "15550000001"


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        ("info query returned status 400: bad-request", AuthFailed, "is it the account's"),
        ("info query returned status 429: rate-overlimit", RateLimited, "wait an hour"),
        ("info query timed out", Unreachable, "can't be reached"),
    ],
)
async def test_a_number_that_gets_no_code_is_told_why(
    seam: Seam, folder: Path, said: str, error: type[Exception], words: str
) -> None:
    seam.pairing_error = said
    with pytest.raises(error, match=words):
        await link(settings(seam), phone="+15550000001", show=_never, folder=folder)


@pytest.mark.parametrize("phone", ["ann", "+12", "100000000000002@lid", "120363000000000001@g.us"])
async def test_what_is_no_phone_number_is_refused_at_once(seam: Seam, folder: Path, phone: str) -> None:
    with pytest.raises(AuthFailed, match=r"\+15550001234"):
        await link(settings(seam), phone=phone, show=_never, folder=folder)
    assert seam.starts == 0


async def test_an_account_that_is_linked_stays_so(seam: Seam, folder: Path) -> None:
    seam.link(folder)
    me = await link(settings(seam), phone=None, show=_never, folder=folder)
    assert me.id == f"+{BOT['phone']}"
    assert seam.starts == 0


async def test_one_process_at_a_time_uses_a_link(seam: Seam, folder: Path) -> None:
    """Two clients would throw each other out, and a person had to mend it."""
    shown: list[Shown] = []
    linking = asyncio.create_task(link(settings(seam), phone=None, show=shown.append, folder=folder))
    await until(lambda: bool(shown))
    with pytest.raises(AuthFailed, match="a running hub uses this account"):
        await link(settings(seam), phone=None, show=_never, folder=folder)
    seam.link(folder)
    adapter = WhatsAppAdapter("main", settings(seam), folder, sleep=Naps())
    async with running(adapter, Received().accept):
        await until(lambda: "another process uses this link" in adapter.health.detail)
        linking.cancel()
        await asyncio.wait([linking])
        adapter = WhatsAppAdapter("main", settings(seam), folder)
    async with running(adapter, Received().accept):
        await until(lambda: adapter.health.state == "connected")
    await adapter.close()


async def test_who_takes_too_long_may_begin_again(seam: Seam, folder: Path) -> None:
    with pytest.raises(AuthFailed, match="start again"):  # nothing is wrong with the network
        await link(settings(seam), phone=None, show=lambda _: None, folder=folder, seconds=0.2)
    await until(lambda: not seam._clients)


@pytest.mark.parametrize("is_there", [True, False])
async def test_where_nobody_answers_it_says_so(seam: Seam, folder: Path, unused_tcp_port: int, is_there: bool) -> None:
    seam.vanish()
    where = settings(seam) if is_there else WhatsAppSettings(proxy_url=f"http://127.0.0.1:{unused_tcp_port}")
    with pytest.raises(Unreachable, match="can't be reached"):
        await link(where, phone=None, show=_never, folder=folder)
    assert folder.exists() is is_there, "nothing is laid down before it is tried"


async def test_a_phone_that_refuses_is_heard(seam: Seam, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    linking = asyncio.create_task(link(settings(seam), phone=None, show=lambda _: None, folder=folder))
    await until(lambda: bool(seam._clients))
    status = {"ID": {"User": "1", "Server": "s.whatsapp.net"}, "Status": "ERROR", "Error": "bad signature"}
    (running,) = seam._clients.values()
    running.report(2, event(status, "PairStatus").SerializeToString())
    monkeypatch.setattr(seam, "link", lambda _: None)
    monkeypatch.setattr(seam, "_connect", lambda _: None)
    seam.scanned.set()
    with pytest.raises(AuthFailed, match="bad signature"):
        await asyncio.wait_for(linking, 10)


def test_the_hub_finds_it_by_the_adapter() -> None:
    assert WhatsAppAdapter.link is link
    assert WhatsAppAdapter.keeps_folder


def _never(shown: Shown) -> None:
    raise AssertionError(shown)
