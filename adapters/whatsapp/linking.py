"""Links an account: this program becomes a device of it, by a code that a phone scans, or one that is typed there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from adapters.errors import AuthFailed, Unreachable
from adapters.linking import PairingCode, QrCode, Shown
from adapters.whatsapp import session, states
from adapters.whatsapp.client import Client, probe
from adapters.whatsapp.identity import normalized
from adapters.whatsapp.settings import BotIdentity, WhatsAppSettings

_SECONDS = 175.0
"""WhatsApp gives six codes to scan, which are good for 160 s together."""

_WHERE = "On the phone: WhatsApp, Settings (on Android behind ⋮), Linked devices, Link a device"
_IN_USE = "a running hub uses this account: stop limpet run, link it, and start it again"
_SCAN = f"{_WHERE}; then point the phone at this."
_TYPE = f"{_WHERE}, Link with phone number instead; then type this."


async def link(
    settings: WhatsAppSettings,
    *,
    phone: str | None,
    show: Callable[[Shown], None],
    folder: Path,
    seconds: float = _SECONDS,
) -> BotIdentity:
    """Who was linked, or was linked already. ``phone`` asks for a code to type instead of those to scan.

    No hub may run with ``folder``. Raises Unreachable, after which it may be tried again, and AuthFailed.
    """
    number = _number(phone) if phone else None
    try:
        linked = await asyncio.to_thread(session.identity, folder)
    except AuthFailed:
        await probe(settings.proxy_url)
        path = await asyncio.to_thread(session.prepare, folder)
        with session.held(folder, AuthFailed(_IN_USE)):
            await _link(_Pairing(Client(path, settings.proxy_url, settings.answer_seconds), number, show), seconds)
        return await asyncio.to_thread(session.identity, folder)
    if number and linked.id != f"+{number}":
        raise AuthFailed(f"{linked.id} is linked here already: for another number give the channel another name")
    return linked


async def _link(pairing: _Pairing, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await pairing.done()
    except TimeoutError:
        raise AuthFailed("nobody linked the account in time: start again, and have the phone at hand") from None
    finally:
        await asyncio.shield(asyncio.ensure_future(pairing.client.stop()))


def _number(phone: str) -> str:
    try:
        found = normalized(phone)
    except ValueError as error:
        raise AuthFailed(str(error)) from None
    if not found.startswith("+"):
        raise AuthFailed(f"{phone!r} is no phone number: write it with its country code, such as +15550001234")
    return found[1:]


class _Pairing:
    def __init__(self, client: Client, number: str | None, show: Callable[[Shown], None]) -> None:
        self.client = client
        self._number = number
        self._show = show
        self._has_code = False
        self._paired: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def done(self) -> None:
        running = await self.client.start(self._take, self._failed, show=self._scan)
        await asyncio.wait({running, self._paired}, return_when="FIRST_COMPLETED")
        if not self._paired.done():
            running.result()
            raise Unreachable("WhatsApp ended the connection before the account was linked: start again")
        self._paired.result()

    async def _scan(self, code: str) -> None:
        try:
            if self._number is None:
                self._show(QrCode(code, _SCAN))
            elif not self._has_code:
                self._has_code = True
                self._show(PairingCode(await self.client.pair(self._number), _TYPE))
        except Exception as error:
            self._failed(error)

    async def _take(self, kind: str, event: Any) -> None:
        trouble = states.trouble_of(kind, event, datetime.now(UTC))
        if kind == "PairStatus" and event.Error:
            trouble = AuthFailed(f"the phone did not link it ({event.Error}): start again")
        if trouble is not None:
            self._failed(trouble)
        elif kind == "Connected" and not self._paired.done():
            self._paired.set_result(None)

    def _failed(self, error: Exception) -> None:
        if not self._paired.done():
            self._paired.set_exception(error)
