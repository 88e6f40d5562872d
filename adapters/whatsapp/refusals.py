"""What the library's words for a failure mean: one error of ``adapters.errors`` for each.

It says them in a string, and has no codes for them; WhatsApp's own code, where there is one, stands in it. What is not
known here may have had its effect. Pure.
"""

from __future__ import annotations

import re

from adapters.errors import AdapterError, Ambiguous, AuthFailed, RateLimited, Rejected, Unreachable
from adapters.whatsapp.session import LOGIN

_LONGEST_QUOTE = 200
_WAIT = 60.0
"""Seconds until the next try, after WhatsApp said that it was too much: it names no time."""

_CODE = re.compile(r"(?:server returned error|status code|returned status) (\d{3})")
_NUMBERS = re.compile(r"\d{5,}")

_NOT_LINKED = ("doesn't contain a device JID", "not-authorized")
_NOT_SENT = (
    *("websocket not connected", "client is nil", "websocket disconnected before info query", "info query timed out"),
    *("failed to get device list", "failed to get user info", "failed to send usync", "dial tcp", "no such host"),
    *("failed to refresh media connections", "failed to upload", "upload failed", "connection refused"),
)
"""Said before anything of the message left."""
_REFUSED = {
    "you're not participating in that group": "the account is not in that group: add it there",
    "that group does not exist": "there is no such group, or the account was never in it",
    "can't send message to unknown server": "it is no chat that can be written to",
    "message recipient must be": "it is no chat that can be written to",
}
_CODES = {
    401: "the account may not write there: it is not in the group, or only administrators may write",
    403: "the account may not write there: it is not in the group, or only administrators may write",
    404: "there is no such chat any more",
    463: "WhatsApp lets the account write to nobody new for a while: they have to write first",
}
"""What WhatsApp answers a message with, and what somebody can do about it."""

_GONE = frozenset({403, 404, 410})
_TOO_MUCH = frozenset({420, 429, 479})


def of_send(said: str) -> AdapterError:
    """For a message that was to be sent."""
    code = _code(said)
    quoted = quote(said)
    if any(words in said for words in _NOT_LINKED):
        return AuthFailed(f"WhatsApp knows the link no more ({quoted}): {LOGIN}")
    if code in _TOO_MUCH or "rate-overlimit" in said:
        return RateLimited(f"WhatsApp takes no more messages for now ({quoted})", _WAIT)
    for words, why in _REFUSED.items():
        if words in said:
            return Rejected(f"{why} ({quoted})")
    if any(words in said for words in _NOT_SENT):
        return Unreachable(f"WhatsApp can't be reached ({quoted})")
    if code is None:
        return Ambiguous(f"nobody knows whether it arrived ({quoted})")
    if code >= 500:
        return Unreachable(f"WhatsApp could not take it now ({quoted})")
    return Rejected(f"WhatsApp refused it ({quoted})" + (f": {_CODES[code]}" if code in _CODES else ""))


def of_upload(said: str) -> AdapterError:
    """For a file on its way there, which nobody sees yet: that may always be done again."""
    error = of_send(said)
    return Unreachable(f"the file could not be handed over ({quote(said)})") if isinstance(error, Ambiguous) else error


def of_download(said: str) -> AdapterError:
    """For a file that somebody sent."""
    code = _code(said)
    if code in _GONE:
        return Rejected("WhatsApp has the file no more: ask for it again")
    if "doesn't match" in said or "hmac" in said or "no url present" in said or "file too short" in said:
        return Rejected(f"the file that WhatsApp has is not the one that was sent ({quote(said)})")
    return Unreachable(f"the file can't be had now ({quote(said)})")


def of_connect(said: str) -> AdapterError:
    """For a connection that was to be made."""
    if "is not a database" in said or "malformed" in said or "readonly" in said or "unable to open" in said:
        return AuthFailed(f"the session file can't be used ({quote(said)}): move it away, and link again: {LOGIN}")
    return Unreachable(f"WhatsApp can't be reached ({quote(said)})")


def of_pair(said: str) -> AdapterError:
    """For a code that was asked for with a phone number."""
    code = _code(said)
    if code in _TOO_MUCH or "rate-overlimit" in said:
        return RateLimited(f"WhatsApp gives that number no more codes for now ({quote(said)}): wait an hour", _WAIT)
    if code is not None and 400 <= code < 500:
        return AuthFailed(
            f"WhatsApp gives that number no code ({quote(said)}): is it the account's, and written whole?"
        )
    return of_connect(said)


def quote(said: str) -> str:
    """For people to look up, without the numbers of other people."""
    return _NUMBERS.sub("…", " ".join(said.split()))[:_LONGEST_QUOTE]


def _code(said: str) -> int | None:
    found = _CODE.search(said)
    return int(found[1]) if found else None
