"""What an answer of Discord's means: one error of ``adapters.errors`` for each that is no success, and each close code.

Discord's own words are quoted, because they are what a person can look up. Knows no library and no token.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from adapters.errors import AdapterError, Ambiguous, AuthFailed, RateLimited, Rejected, Unreachable

_DEFAULT_WAIT = 5.0
"""Seconds, for a server (or a proxy before it) that says "too many requests" and not how long to wait."""

_LONGEST_QUOTE = 300

_UNKNOWN_MESSAGE = 10008
_NOT_OURS = 50005
THREAD_EXISTS = 160004

_IN_CHANNEL = "Server Settings, Roles, or the channel's own permissions"
_MENDS = {
    10003: "the channel or thread was deleted, or the bot can't see it",
    30046: "a message older than an hour can be changed a few times only",
    40005: "Discord takes files of up to 10 MB from a bot, on a boosted server more",
    50001: f"the bot can't see the channel: give it View Channels there ({_IN_CHANNEL})",
    50007: "that person takes no direct messages from it: they have to share a server with it and allow them",
    50008: "this is no text channel",
    50013: "give the bot Send Messages, Send Messages in Threads, Attach Files, Read Message History and Add Reactions "
    f"there ({_IN_CHANNEL})",
    50083: "the thread is archived: somebody has to open it again",
    160002: f"the bot can't reply there without Read Message History ({_IN_CHANNEL})",
    160005: "the thread is locked",
    240000: "the server's AutoMod blocked the message",
    200000: "the server's AutoMod blocked the message",
}
"""What to do about a refusal that somebody can do something about, by Discord's code for it."""

_PORTAL = "https://discord.com/developers/applications"

_CLOSED = {
    4004: f"the token is wrong or was reset. Make a new one: {_PORTAL}, the application, Bot, Reset Token",
    4010: "Discord takes no such shard: report it, this is a fault in the program",
    4011: "the bot is on so many servers that it needs several connections, which this program doesn't make",
    4012: "Discord speaks another version of its gateway: update discord.py",
    4013: "Discord knows no such intents: update discord.py",
    4014: "the Message Content Intent is not switched on, without which a bot can't read what is said. Switch it on: "
    f"{_PORTAL}, the application, Bot, Privileged Gateway Intents, Message Content Intent, Save Changes",
}
"""Close codes of the gateway after which connecting again is pointless until a person has done something."""


class Refused(Rejected):
    """``code`` is Discord's number for the reason, 0 where it gave none."""

    def __init__(self, reason: str, code: int, *, gone: bool = False) -> None:
        super().__init__(reason, gone=gone)
        self.code = code


class GlobalLimit(RateLimited):
    """Too many requests altogether: none of any kind is taken before ``retry_after``."""


def closed(code: int | None) -> AuthFailed | None:
    """What a close code of the gateway asks a person to do; None where connecting again may help."""
    mend = _CLOSED.get(code or 0)
    return AuthFailed(f"Discord closed the connection with {code}: {mend}") if mend else None


def refusal(method: str, path: str, status: int, headers: Mapping[str, str], body: bytes) -> AdapterError:
    """What to raise for the answer to a call; ``path`` is without the server."""
    answer = _answer(body)
    what = f"{method} {_named(path)}"
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        wait = _seconds(answer.get("retry_after"), headers.get("Retry-After"))
        is_global = answer.get("global") is True or headers.get("X-RateLimit-Scope") == "global"
        kind = GlobalLimit if is_global else RateLimited
        return kind(f"Discord takes no more {what} for {wait:g} s", wait)
    said = _said(status, answer)
    match status:
        case HTTPStatus.UNAUTHORIZED:
            return AuthFailed(said)
        case HTTPStatus.NOT_FOUND if not answer:
            return Unreachable(f"{what}: {said}: is the server a Discord API server?")
        case HTTPStatus.REQUEST_TIMEOUT | HTTPStatus.GATEWAY_TIMEOUT | 524:
            return Ambiguous(f"{what}: {said}")
        case _ if status >= HTTPStatus.INTERNAL_SERVER_ERROR or (not answer and status < HTTPStatus.BAD_REQUEST):
            return Unreachable(f"{what}: {said}")
    code = answer.get("code")
    code = code if isinstance(code, int) else 0
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        code = code or 40005
    mend = f" ({_MENDS[code]})" if code in _MENDS else ""
    return Refused(f"{what}: {said}{mend}", code, gone=method == "PATCH" and code in (_UNKNOWN_MESSAGE, _NOT_OURS))


def _named(path: str) -> str:
    """A path without what is secret in it: an interaction's token."""
    parts = path.split("/")
    if len(parts) > 3 and parts[1] in ("interactions", "webhooks"):
        parts[3] = "…"
    return "/".join(parts)


def _seconds(*given: object) -> float:
    for wait in given:
        try:
            return max(0.0, float(str(wait)))
        except ValueError:
            continue
    return _DEFAULT_WAIT


def _said(status: int, answer: dict[str, Any]) -> str:
    words = answer.get("message")
    if not isinstance(words, str) or not words.strip():
        try:
            words = HTTPStatus(status).phrase
        except ValueError:
            words = "an unknown status"
    code = f", code {answer['code']}" if answer.get("code") else ""
    details = "; ".join(_details(answer.get("errors"), ()))
    return f"Discord says {status}{code}: {words.strip()}{f' ({details})' if details else ''}"[:_LONGEST_QUOTE]


def _details(errors: object, place: tuple[str, ...]) -> Iterator[str]:
    """What is wrong with which field, from the tree of a 50035."""
    if not isinstance(errors, dict):
        return
    for name, inner in errors.items():
        if name == "_errors" and isinstance(inner, list):
            for one in inner:
                if isinstance(one, dict):
                    yield f"{'.'.join(place)}: {one.get('message', one.get('code', ''))}"
        else:
            yield from _details(inner, (*place, str(name)))


def _answer(body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}
