"""The terminal's door into a hub: the adapter, and the hub's word to a console that says hello.

The adapter is made before the hub it belongs to; ``attach`` closes the circle.
"""

from __future__ import annotations

import getpass
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from adapters.message import Address
from adapters.terminal import Failure, Hello, Ready, TerminalAdapter

if TYPE_CHECKING:
    from bot.app import Hub

_USAGE = 2
_FAILURE = 1


class TerminalDoor:
    """``adapter`` is handed to ``Hub.open``; consoles are greeted once a hub is attached."""

    def __init__(self, *, listen: Path | None = None, connected: socket.socket | None = None, user: str) -> None:
        self._hub: Hub | None = None
        self.adapter = TerminalAdapter(
            user=user, greet=self._greet, arrived=self._arrived, listen=listen, connected=connected
        )

    def attach(self, hub: Hub) -> None:
        self._hub = hub

    async def _greet(self, hello: Hello) -> Ready | Failure:
        assert self._hub is not None, "the adapter runs inside the hub"
        try:
            greeting = await self._hub.greet(hello.agent, opening=hello.interactive)
        except Exception as error:  # an agent that can't be opened: the console must hear why, not hang
            return Failure(f"{error}", _FAILURE)
        if greeting is None:
            return Failure(f"No agent is called {hello.agent!r}.", _USAGE)
        return Ready(greeting.agent, greeting.model, greeting.notices, greeting.commands)

    def _arrived(self, address: Address) -> None:
        if self._hub is not None:
            self._hub.arrived(address)


def terminal_door(*, listen: Path | None = None, connected: socket.socket | None = None) -> TerminalDoor:
    """The door for whoever runs this process."""
    return TerminalDoor(listen=listen, connected=connected, user=_user())


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without an entry in passwd
        return "you"
