"""Which part of a workspace a turn may read and write: the audience of the chat it was said in.

The owner's direct chats and the terminal share the home scope. A public thread has its parent's scope; a private
thread, a group and every other person's direct chat have their own. A workspace that was made for one chat is that
chat's home, and one that was made for one sender is home in that sender's direct chat.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from adapters.message import Address
from workspaces.names import portable_name
from workspaces.scope import Level, Scope

Per: TypeAlias = Literal["chat", "sender"]
"""For whom a workspace is made."""


def scope_of(address: Address, peer: str, level: Level, identity: str | None, per: Per | None = None) -> Scope:
    """``address`` is canonical, ``peer`` the first id of who speaks, ``identity`` their configured name or None.

    ``per`` is for whom the workspace was made, None where the settings name its agent.
    """
    if per == "chat":
        return Scope.home(level)
    if address.kind == "direct":
        if level is Level.OWNER or per == "sender":
            return Scope.home(level)
        name = f"identity/{identity}" if identity else f"{address.channel}/direct/{peer}"
        return Scope.chat(portable_name(name), level)
    chat = address.chat
    if address.parent is not None and not address.private:
        chat = address.parent
    parts = [address.channel, address.space or "", chat]
    if address.thread is not None and address.private:
        parts.append(address.thread)
    return Scope.chat(portable_name("/".join(parts)), level)


def audience(address: Address, peer: str, identity: str | None, per: Per) -> tuple[str, ...]:
    """What tells the chat or the sender that a workspace is made for from every other one.

    A public thread belongs to its parent; a private one is a chat of its own. An identity is one sender everywhere.
    """
    if per == "sender" or address.kind == "direct":
        return ("identity", identity) if identity else (address.channel, address.account, "direct", peer)
    place = (address.channel, address.account, "chat", address.space or "")
    if address.parent is None:
        return (*place, address.chat, address.thread) if address.private and address.thread else (*place, address.chat)
    return (*place, address.parent, address.thread or address.chat) if address.private else (*place, address.parent)
