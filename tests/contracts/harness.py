"""What the contract suite needs of a platform: a person who writes, a chat to look at, and ways to fail.

One implementation stands beside each adapter, in this folder, and is named in ``conftest.py``.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

from adapters.adapter import Adapter
from adapters.message import Address

Trouble: TypeAlias = Literal["rejected", "formatting", "flood", "unreachable", "ambiguous", "auth"]
"""How a send can fail: each is one error of ``adapters.errors``, ``formatting`` a Rejected that plain text may pass."""


class Harness(Protocol):
    """A platform with one account of ours and one person. A new one is made for each test."""

    troubles: frozenset[Trouble]
    """Those that this platform knows."""
    redelivers: bool
    """Whether the platform keeps a message until it is acknowledged, also while no adapter runs."""
    secrets: tuple[str, ...]
    """What must not be seen in any error or health."""

    async def start(self) -> None:
        """Bring the platform up."""

    async def stop(self) -> None:
        """Take it down; nothing of it is left."""

    def open(self) -> Adapter:
        """An adapter for the account, not yet running; its pauses after trouble take no time."""

    async def ready(self, adapter: Adapter) -> Address:
        """Where the person is: returns once a running ``adapter`` can send there."""

    async def says(self, text: str) -> None:
        """The person writes, in the same chat."""

    def shown(self) -> list[str]:
        """Our messages as the person sees them now, oldest first, without markup."""

    def fail_next_send(self, trouble: Trouble) -> None:
        """The next send, and only that, meets ``trouble``; ``ambiguous`` shows the message all the same."""

    def stall_next_send(self) -> None:
        """The next send is not answered while the test lasts."""

    async def stalled(self) -> None:
        """Returns once that send has arrived."""

    def attach(self, data: bytes) -> str | None:
        """A file as the ``ref`` of an attachment; None where the platform has no files."""
