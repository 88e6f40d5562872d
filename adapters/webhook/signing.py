"""Who may write: a request carries the time and an HMAC-SHA256 of time and body under the shared secret.

What the secret's holder says of a sender is believed. Knows no HTTP library and no event.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import datetime

from adapters.webhook.refusal import Refusal

TIME_HEADER = "X-Limpet-Timestamp"
SIGNATURE_HEADER = "X-Limpet-Signature"

TOLERANCE_SECONDS = 300
"""How far two clocks may be apart, and for how long a request that was overheard can be sent again (in vain, since its
id is known by then)."""


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """HMAC-SHA256 over ``timestamp``, "." and ``body``, in hex. ``timestamp`` is in whole seconds since 1970."""
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def signed(secret: str, body: bytes, now: datetime) -> dict[str, str]:
    """The headers that sign ``body``."""
    timestamp = str(int(now.timestamp()))
    return {TIME_HEADER: timestamp, SIGNATURE_HEADER: signature(secret, timestamp, body)}


def verify(secret: str, headers: Mapping[str, str], body: bytes, now: datetime) -> None:
    """Raises Refusal unless whoever sent ``body`` knows the secret and signed it just now."""
    timestamp, given = headers.get(TIME_HEADER, ""), headers.get(SIGNATURE_HEADER, "")
    if not re.fullmatch(r"[0-9]{1,12}", timestamp):
        raise Refusal(401, f"{TIME_HEADER} is missing or no number", "give the time in whole seconds since 1970")
    if not hmac.compare_digest(given.encode(errors="replace"), signature(secret, timestamp, body).encode()):
        mend = "it is HMAC-SHA256, in hex, over the timestamp, a dot and the very bytes of the body"
        raise Refusal(401, f"{SIGNATURE_HEADER} is missing or wrong", mend)
    apart = abs(now.timestamp() - int(timestamp))
    if apart > TOLERANCE_SECONDS:
        mend = f"sign each request anew, and set both clocks: {TOLERANCE_SECONDS} s are allowed"
        raise Refusal(401, f"{TIME_HEADER} is {apart:.0f} s away from the time here", mend)
