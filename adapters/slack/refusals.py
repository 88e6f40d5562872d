"""What an answer of Slack's Web API means: one error of ``adapters.errors`` for every answer that is no success.

Slack's own word for it is quoted, because it is what a person can look up. Knows no library and no token.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from adapters.errors import AdapterError, AuthFailed, RateLimited, Rejected, Unreachable

_DEFAULT_WAIT = 5.0
"""Seconds, for an answer that says "too many requests" and not how long to wait."""

_LONGEST_QUOTE = 200

_AUTH = {
    "invalid_auth": "the token is wrong",
    "not_authed": "there is no token",
    "token_revoked": "the token was revoked",
    "token_expired": "the token has expired",
    "account_inactive": "the app was removed from the workspace, or its bot was deactivated",
    "not_allowed_token_type": "it is the other kind of token: the bot's begins with xoxb-, the app's with xapp-",
    "no_permission": "the workspace doesn't let the app do that",
    "org_login_required": "the workspace is being moved into an organisation",
    "ekm_access_denied": "the workspace's administrators have suspended access",
    "team_access_not_granted": "the app may not work in that workspace",
    "socket_mode_is_disabled": "Socket Mode is off",
    "link_disabled": "Socket Mode was switched off",
}
"""Nothing works until a person mends it."""

_AUTH_MENDS = {
    "account_inactive": "install it again: api.slack.com/apps, the app, OAuth & Permissions, and take the new token",
    "link_disabled": "switch it on again: api.slack.com/apps, the app, Socket Mode",
    "socket_mode_is_disabled": "switch it on: api.slack.com/apps, the app, Socket Mode",
}

_MENDS = {
    "not_in_channel": "invite the bot there: /invite and its name",
    "channel_not_found": "there is no such channel, or it is private and the bot is not in it: invite it there",
    "is_archived": "the channel is archived",
    "restricted_action": "the channel lets only some people write: allow the bot in its posting permissions",
    "restricted_action_thread_only_channel": "the channel takes new messages in threads only",
    "restricted_action_read_only_channel": "the channel is read-only",
    "messages_tab_disabled": "let people write to it: api.slack.com/apps, the app, App Home, Messages Tab",
    "cannot_dm_bot": "another bot can't be written to",
    "user_disabled": "that person's account was deactivated",
    "msg_too_long": "it is longer than Slack takes",
    "msg_blocks_too_long": "it is longer than Slack takes",
    "file_not_found": "the file was deleted",
    "storage_limit_reached": "the workspace's storage is full",
}
"""What to do about a refusal that somebody can do something about."""

_FORMATTING = frozenset({"invalid_blocks", "invalid_blocks_format"})
_GONE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed", "is_inactive"})

_NOTHING_DONE = frozenset({"service_unavailable", "team_added_to_org", "accesslimited"})
_MAYBE_DONE = frozenset({"fatal_error", "internal_error", "request_timeout"})
"""Slack says of these that some of it may have been done."""


class Lost(Unreachable):
    """The call may have had its effect: nobody knows, until what was said is read back."""


class MissingScope(Rejected):
    """The bot may not do that; ``scopes`` are what it needs, as Slack names them."""

    def __init__(self, reason: str, scopes: tuple[str, ...]) -> None:
        super().__init__(reason)
        self.scopes = scopes


class NotModified(Rejected):
    """What is to be set is so already."""


def refusal(method: str, status: int, answer: object, headers: Mapping[str, str]) -> AdapterError:
    """What to raise for the answer to a call of ``method``."""
    said = answer if isinstance(answer, dict) else {}
    code = said.get("error")
    code = code[:_LONGEST_QUOTE] if isinstance(code, str) else ""
    if status == HTTPStatus.TOO_MANY_REQUESTS or code in ("ratelimited", "rate_limited"):
        wait = _seconds(headers)
        return RateLimited(f"Slack takes no more {method} for {wait:g} s", wait)
    if not code:
        return _wordless(method, status)
    if code in _AUTH:
        return AuthFailed(f"Slack says {code} to {method}: {_AUTH[code]}. {_auth_mend(method, code)}")
    if code == "missing_scope":
        return _missing_scope(method, said)
    if code in _MAYBE_DONE:
        return Lost(f"{method}: Slack says {code}")
    if code in _NOTHING_DONE:
        return Unreachable(f"{method}: Slack says {code}")
    if code in ("already_reacted", "no_reaction"):
        return NotModified(f"{method}: Slack says {code}")
    mend = f" ({_MENDS[code]})" if code in _MENDS else _details(said)
    gone = method == "chat.update" and code in _GONE
    return Rejected(f"{method}: Slack says {code}{mend}", formatting=code in _FORMATTING, gone=gone)


def _wordless(method: str, status: int) -> AdapterError:
    """For an answer that is none of Slack's own, such as a proxy's."""
    match status:
        case HTTPStatus.BAD_GATEWAY | HTTPStatus.SERVICE_UNAVAILABLE:
            return Unreachable(f"{method}: Slack says {status} {HTTPStatus(status).phrase}")
        case _ if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return Lost(f"{method}: Slack says {status}")
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
            return AuthFailed(f"{method}: Slack says {status}. {_auth_mend(method, '')}")
        case _ if status >= HTTPStatus.BAD_REQUEST:
            return Rejected(f"{method}: Slack says {status}: is base_url right?")
    return Lost(f"the answer to {method} could not be read: is base_url right?")


def _auth_mend(method: str, code: str) -> str:
    if code in _AUTH_MENDS:
        return _AUTH_MENDS[code][:1].upper() + _AUTH_MENDS[code][1:]
    if method == "apps.connections.open":
        return (
            "Make a new app token with connections:write (api.slack.com/apps, the app, Basic Information, "
            "App-Level Tokens) and set app_token"
        )
    return "Copy the bot's token again (api.slack.com/apps, the app, OAuth & Permissions) and set token"


def _missing_scope(method: str, said: Mapping[str, Any]) -> AdapterError:
    needed = said.get("needed")
    scopes = tuple(scope.strip() for scope in needed.split(",") if scope.strip()) if isinstance(needed, str) else ()
    names = " or ".join(scopes) or "a scope"
    where = "api.slack.com/apps, the app, OAuth & Permissions, Scopes; then install it again"
    if method == "apps.connections.open":
        return AuthFailed(f"the app token lacks {names}: make one that has it (Basic Information, App-Level Tokens)")
    return MissingScope(f"{method} needs the scope {names}, which the bot lacks: add it ({where})", scopes)


def _details(said: Mapping[str, Any]) -> str:
    """Slack's own words, for a message that it finds malformed."""
    errors = said.get("errors")
    metadata = said.get("response_metadata")
    messages = metadata.get("messages") if isinstance(metadata, dict) else None
    words = [one for one in (errors or messages or ()) if isinstance(one, str)]
    return f" ({'; '.join(words)[:_LONGEST_QUOTE]})" if words else ""


def _seconds(headers: Mapping[str, str]) -> float:
    said = headers.get("Retry-After", "")
    return float(said) if said.isdecimal() and len(said) < 7 else _DEFAULT_WAIT
