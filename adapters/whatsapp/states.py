"""What WhatsApp says of the link itself, and what a person can do about it. Pure, but for the library's protobuf."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from adapters.errors import AdapterError, AuthFailed, RateLimited, Unreachable
from adapters.whatsapp.refusals import quote
from adapters.whatsapp.session import LOGIN

_BANS = {
    "SEND_TO_TOO_MANY_PEOPLE": "it wrote to too many people who don't have it in their address books",
    "BLOCKED_BY_USERS": "too many people blocked it",
    "CREATED_TOO_MANY_GROUPS": "it made too many groups",
    "SENT_TOO_MANY_SAME_MESSAGE": "it sent the same message to too many people",
    "BROADCAST_LIST": "it sent too much to a list of recipients",
}
_BAN_WITHOUT_TIME = 3600.0
_NANOSECONDS = 100_000_000
"""From here on a time of a ban is not in seconds."""

_OUTDATED = "WhatsApp takes this version of its client (neonize) no more: a newer one comes with an update of Limpet"
_FAILURES = {
    "LOGGED_OUT": f"the account unlinked this device: link it again: {LOGIN}",
    "MAIN_DEVICE_GONE": "WhatsApp has locked the account, or its phone was changed: look at WhatsApp on the phone, "
    f"then link again: {LOGIN}",
    "UNKNOWN_LOGOUT": "WhatsApp has banned the account, or logged it out: look at WhatsApp on the phone. "
    f"If it works there, link again: {LOGIN}",
    "CLIENT_OUTDATED": _OUTDATED,
    "BAD_USER_AGENT": _OUTDATED,
}
REPLACED = (
    "another program uses this link: stop the other one, and restart limpet. A copy of the session file can't be used "
    f"twice; to have both, link one of them anew: {LOGIN}"
)
LOST = "the connection to WhatsApp was lost: it is made again"
SILENT = "WhatsApp doesn't answer: the connection is made again if that goes on"


def trouble_of(kind: str, event: Any, now: datetime) -> AdapterError | None:
    """What the end of a connection means; None for an event that ends none. AuthFailed where a person has to act."""
    match kind:
        case "LoggedOut":
            return failure(_name(event, "Reason")) if event.OnConnect else AuthFailed(_FAILURES["LOGGED_OUT"])
        case "StreamReplaced":
            return AuthFailed(REPLACED)
        case "ClientOutdated":
            return AuthFailed(_OUTDATED)
        case "TemporaryBan":
            return _ban(event, now)
        case "ConnectFailure":
            return failure(_name(event, "Reason"), event.Message)
    return None


def failure(reason: str, words: str = "") -> AdapterError:
    """For a connection that WhatsApp refused."""
    if why := _FAILURES.get(reason):
        return AuthFailed(why)
    return Unreachable(f"WhatsApp refuses the connection for now ({quote(f'{reason} {words}')})")


def _ban(event: Any, now: datetime) -> RateLimited:
    seconds = event.Expire / 1e9 if event.Expire >= _NANOSECONDS else float(event.Expire)
    why = _BANS.get(_name(event, "Code"), "it may have broken its terms")
    what = f"WhatsApp has banned the account for a while: {why}"
    mend = "It goes on by itself then; write less, and only to people who wrote first"
    if seconds <= 0:
        return RateLimited(f"{what}. {mend}", _BAN_WITHOUT_TIME)
    until = (now + timedelta(seconds=seconds)).astimezone()
    return RateLimited(f"{what}, until {until:%Y-%m-%d %H:%M %Z}. {mend}", seconds)


def _name(event: Any, field: str) -> str:
    values = event.DESCRIPTOR.fields_by_name[field].enum_type.values_by_number
    found = values.get(getattr(event, field))
    return str(found.name) if found else ""
