"""Which part of a workspace a turn may read and write: the audience of the chat it was said in.

The owner's direct chats and the terminal share the home scope. A public thread has its parent's scope; a private
thread, a group and every other person's direct chat have their own.
"""

from __future__ import annotations

from adapters.message import Address, Sender
from workspaces.names import portable_name
from workspaces.scope import Level, Scope


def scope_of(address: Address, sender: Sender, level: Level, identity: str | None) -> Scope:
    """``address`` is canonical; ``identity`` is the configured name of the person, None without one."""
    if address.kind == "direct":
        if level is Level.OWNER:
            return Scope.home(level)
        name = f"identity/{identity}" if identity else f"{address.channel}/direct/{sender.id}"
        return Scope.chat(portable_name(name), level)
    chat = address.chat
    if address.parent is not None and not address.private:
        chat = address.parent
    parts = [address.channel, address.space or "", chat]
    if address.thread is not None and address.private:
        parts.append(address.thread)
    return Scope.chat(portable_name("/".join(parts)), level)
