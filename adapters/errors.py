"""What can go wrong on the way to or from a platform.

AdapterError
├── Rejected         the platform refused this very send: sending the same again is refused again
│   └── ChatMoved    the chat has another id now: the same may be sent there
├── RateLimited      not now: sending again after ``retry_after`` seconds is safe
├── Unreachable      nothing left this machine, or nothing arrived: sending again is safe
│   └── Absent       nobody is there to take it: the adapter says when somebody is
├── Ambiguous        it may have arrived (the answer was lost): sending again may show it twice
├── AuthFailed       the token is wrong or revoked: nothing works until a person mends it
└── MissingExtra     the package that this adapter needs is not installed

Every message names what failed and the mend; no message holds a token.
"""

from __future__ import annotations


class AdapterError(Exception):
    """The root of the tree; never raised itself."""

    may_retry = False
    """Whether sending the same part again can do no harm."""


class Rejected(AdapterError):
    """Refused for good. ``formatting`` is true when the plain text of the same part may still be taken.

    ``gone``: the message that was to be edited is no longer there, or can't be edited any more.
    """

    def __init__(self, reason: str, *, formatting: bool = False, gone: bool = False) -> None:
        super().__init__(reason)
        self.formatting = formatting
        self.gone = gone


class ChatMoved(Rejected):
    """Nothing was sent; ``to_chat`` is the id of the chat from now on (a Telegram group that became a supergroup)."""

    def __init__(self, reason: str, to_chat: str) -> None:
        super().__init__(reason)
        self.to_chat = to_chat


class RateLimited(AdapterError):
    """``retry_after`` is in seconds, as the platform said."""

    may_retry = True

    def __init__(self, reason: str, retry_after: float) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class Unreachable(AdapterError):
    """A connection that was never made, or a server that said it did nothing (5xx before the work)."""

    may_retry = True


class Absent(Unreachable):
    """Nobody is connected (the terminal). The part can wait without a timer: the adapter tells of each arrival."""


class Ambiguous(AdapterError):
    """The request left, its answer did not come back."""


class AuthFailed(AdapterError):
    """401: wrong, revoked or for another service."""


class MissingExtra(AdapterError):
    """An optional package is not installed: what ``extra`` of this program brings. How to get it the hub says."""

    def __init__(self, channel: str, extra: str) -> None:
        super().__init__(f"{channel} needs the extra {extra!r}")
        self.extra = extra
