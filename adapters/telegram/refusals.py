"""What an answer of the Bot API means: one error of ``adapters.errors`` for every answer that is no success.

The server's own description is quoted, because it is what a person can look up. Knows no library and no token.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from adapters.errors import AdapterError, Ambiguous, AuthFailed, ChatMoved, RateLimited, Rejected, Unreachable

_DEFAULT_WAIT = 5.0
"""Seconds, for a server (or a proxy before it) that says "too many requests" and not how long to wait."""

_LONGEST_QUOTE = 200

_GONE = ("message to edit not found", "message can't be edited", "message_id_invalid", "message_edit_time_expired")

_MENDS = (
    ("bot was blocked by the user", "it can write there again once they unblock it"),
    ("bot was kicked", "add it to the chat again"),
    ("bot is not a member", "add it to the chat"),
    ("chat not found", "a bot can't be the first to write: somebody has to write to it, or add it to the chat"),
    ("not enough rights", "let the bot do that in the chat's permissions, or make it an administrator"),
    ("have no rights to send", "let the bot do that in the chat's permissions, or make it an administrator"),
    ("chat_write_forbidden", "let the bot do that in the chat's permissions, or make it an administrator"),
    ("message thread not found", "the topic was deleted"),
    ("topic_closed", "open the topic again, or make the bot an administrator"),
    ("bad webhook", "webhook_url has to be an https address on port 443, 80, 88 or 8443 that leads here"),
    ("file is too big", "Telegram hands out files of up to 20 MB to a bot"),
)
"""What to do about a refusal that somebody can do something about, by a piece of its description."""


class Conflict(Unreachable):
    """409: somebody else takes the updates of this bot; ``webhook`` when Telegram itself pushes them to a URL."""

    def __init__(self, reason: str, *, webhook: bool) -> None:
        super().__init__(reason)
        self.webhook = webhook


class UnknownMethod(Rejected):
    """404: the server is older than the method."""


def true_status(status: int, body: bytes) -> int:
    """The status that the body means: a server may say 200 to what it refused."""
    if status >= 300 or body.startswith(b'{"ok":true'):
        return status
    answer = _answer(body)
    if answer.get("ok") is True:
        return status
    code = answer.get("error_code")
    return code if isinstance(code, int) and code >= 300 else 500 if answer else 0


def refusal(method: str, status: int, body: bytes) -> AdapterError:
    """What to raise for the answer to a call of ``method``; ``status`` 0 stands for one that can't be read."""
    answer = _answer(body)
    said = _said(status, answer)
    parameters = answer.get("parameters")
    parameters = parameters if isinstance(parameters, dict) else {}
    retry_after = parameters.get("retry_after")
    if status in (420, HTTPStatus.TOO_MANY_REQUESTS) or isinstance(retry_after, int | float):
        wait = float(retry_after) if isinstance(retry_after, int | float) else _DEFAULT_WAIT
        return RateLimited(f"Telegram takes no more {method} for {wait:g} s", wait)
    match status:
        case 0:
            return Ambiguous(f"the answer to {method} could not be read: is the server a Bot API server?")
        case HTTPStatus.UNAUTHORIZED:
            return AuthFailed(said)
        case HTTPStatus.NOT_FOUND if method == "getMe":
            return AuthFailed(f"{said} (no such bot; or, where base_url is set, no Bot API server)")
        case HTTPStatus.CONFLICT:
            return _conflict(said)
        case HTTPStatus.GATEWAY_TIMEOUT:
            return Ambiguous(f"{method}: {said}")
        case _ if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return Unreachable(f"{method}: {said}")
    if status == HTTPStatus.NOT_FOUND:
        return UnknownMethod(f"{method}: {said}")
    if moved := parameters.get("migrate_to_chat_id"):
        return ChatMoved(f"{method}: {said}; the chat is now {moved}", str(moved))
    # The server's words for formatting it can't take all hold this stem: "can't parse entities", "entity URL … is
    # invalid", ENTITY_TEXT_INVALID.
    words = said.lower()
    formatting = status == HTTPStatus.BAD_REQUEST and "entit" in words
    gone = method.startswith("edit") and any(stem in words for stem in _GONE)
    mend = next((f" ({mend})" for stem, mend in _MENDS if stem in words), "")
    return Rejected(f"{method}: {said}{mend}", formatting=formatting, gone=gone)


def _conflict(said: str) -> Conflict:
    if "webhook" in said.lower():
        return Conflict("the bot's messages go to a webhook: it is taken away, so that they come here", webhook=True)
    return Conflict(
        "another program reads this bot's messages with the same token: stop it, or give it a bot of its own",
        webhook=False,
    )


def _said(status: int, answer: dict[str, Any]) -> str:
    description = answer.get("description")
    if not isinstance(description, str) or not description.strip():
        try:
            description = HTTPStatus(status).phrase
        except ValueError:
            description = "an unknown status"
    return f"Telegram says {status}: {description.strip()[:_LONGEST_QUOTE]}"


def _answer(body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}
