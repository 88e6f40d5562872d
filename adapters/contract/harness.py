"""What the contract tests need of a platform: a person who writes, a chat to look at, and ways to fail.

``Harness`` is what every platform has. The other protocols are for what only some can do: a harness that has their
methods gets their tests. One that hasn't is passed over, or fails where the adapter's capabilities say that it can.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from adapters.adapter import Adapter
from adapters.message import Address

Trouble: TypeAlias = Literal["rejected", "formatting", "flood", "unreachable", "ambiguous", "auth"]
"""How a send can fail: each is one error of ``adapters.errors``, ``formatting`` a Rejected that plain text may pass.
``flood`` asks for 3 seconds. ``ambiguous`` is Unreachable where the platform tells a repetition by its key."""


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file in the chat. ``name`` is "" where the platform shows none, ``caption`` what stands below it."""

    kind: str
    name: str
    data: bytes
    caption: str = ""


class Harness(Protocol):
    """A platform with one account of ours and one person. A new one is made for each test."""

    troubles: frozenset[Trouble]
    """Those that this platform knows."""
    redelivers: bool
    """Whether the platform keeps a message until it is acknowledged, also while no adapter runs."""
    secrets: tuple[str, ...]
    """What must not be seen in any error, health or log."""

    async def start(self) -> None:
        """Bring the platform up."""

    async def stop(self) -> None:
        """Take it down; nothing of it is left. May be called twice."""

    def open(self) -> Adapter:
        """An adapter for the account, not yet running; its pauses after trouble take no time."""

    async def ready(self, adapter: Adapter) -> Address:
        """Where the person is: returns once a running ``adapter`` can send there."""

    async def says(self, text: str) -> None:
        """The person writes, in the same chat."""

    def shown(self) -> list[str]:
        """Our messages as the person sees them now, oldest first, without markup; drafts are none."""

    def fail_next_send(self, trouble: Trouble) -> None:
        """The next send, and only that, meets ``trouble``; ``ambiguous`` shows the message all the same."""

    def attach(self, data: bytes) -> str | None:
        """A file as the ``ref`` of an attachment; None where the platform has no files."""


@runtime_checkable
class StallHarness(Protocol):
    """A platform that may take its time to answer."""

    def stall_next_send(self) -> None:
        """The next send is not answered while the test lasts."""

    async def stalled(self) -> None:
        """Returns once that send has arrived."""


@runtime_checkable
class FileHarness(Protocol):
    """A platform that shows our files (``capabilities.file_limit``)."""

    def files(self) -> list[SeenFile]:
        """All our files in the chat, oldest first."""


@runtime_checkable
class UploadHarness(Protocol):
    """A platform where people send files."""

    async def shares(self, data: bytes, name: str, caption: str) -> None:
        """The person sends a document."""

    def lose_files(self) -> None:
        """No file of the person can be had from the platform any more."""


@runtime_checkable
class ButtonHarness(Protocol):
    """A platform that shows buttons (``capabilities.buttons``)."""

    async def presses(self, label: str) -> None:
        """The person presses the button of that label below our newest message."""


@runtime_checkable
class DeletionHarness(Protocol):
    """A platform that lets us change our messages (``capabilities.edits``)."""

    def delete(self, message_id: str) -> None:
        """Our message is deleted, by whomever."""


@runtime_checkable
class EditHarness(Protocol):
    """A platform where people can change what they said."""

    async def changes(self, text: str) -> None:
        """The person changes their newest message to ``text``."""


@runtime_checkable
class OutageHarness(Protocol):
    """A platform that can be away while the adapter runs."""

    async def vanish(self) -> None:
        """From now on it can't be reached; what it holds, it keeps."""

    async def reappear(self) -> None:
        """It is there again, where it was."""
