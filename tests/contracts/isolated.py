"""The fake door in a process of its own: what the suite does to it goes there, and from there to the platform here."""

from __future__ import annotations

import tempfile
from pathlib import Path

from adapters.adapter import Adapter
from adapters.isolated.host import isolated
from tests.contracts.fake import FakeHarness
from tests.fakes.remote import Counter, RemoteSettings


class IsolatedHarness(FakeHarness):
    """The platform outlives each process."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._socket = Path(self._folder.name) / "door"
        self._counter = Counter(super().open())

    async def start(self) -> None:
        await self._counter.open(self._socket)

    async def stop(self) -> None:
        await self._counter.close()
        self._folder.cleanup()

    def open(self) -> Adapter:
        settings = RemoteSettings(socket=self._socket, capabilities=super().open().capabilities)
        return isolated("tests.fakes.remote:RemoteDoor", "fake", settings)
