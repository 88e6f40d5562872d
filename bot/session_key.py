"""The key of a thread of talk: one pure function, collision-free, one to one with its file name.

A session is one history with one turn at a time. Direct messages have one per agent, account and peer (an identity that
the configuration links is one peer); a group has one per chat, and each thread its own. Scope and level are part of
the key of a direct chat, so that a session ends when the person's level or link changes; in a group several people
speak, and the level is each turn's own.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from adapters.message import Address
from workspaces.scope import Scope

_PLAIN = re.compile(r"[A-Za-z0-9_.~-]*")
"""What ``quote`` leaves as it is, as it does with nearly all there is; finding that out takes it five times as long."""


def session_key(agent: str, address: Address, peer: str, scope: Scope, identity: str | None) -> str:
    """``address`` is canonical, ``peer`` the first id of who speaks, ``identity`` their configured name or None."""
    if address.kind == "direct":
        if identity is not None:
            parts = [agent, "identity", identity]
        else:
            parts = [agent, address.channel, address.account, "direct", peer]
        parts += [scope.area, scope.level.name.lower()]
    else:
        parts = [agent, address.channel, address.account, address.kind, address.space or "", address.chat, scope.area]
    if address.thread is not None:
        parts += ["thread", address.thread]
    return "/".join(part if _PLAIN.fullmatch(part) else quote(part, safe="") for part in parts)
