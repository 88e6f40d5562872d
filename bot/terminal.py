"""The terminal's door into a hub: the adapter, and the hub's word to a console that says hello.

The adapter is made before the hub it belongs to; ``attach`` closes the circle.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING

from adapters.message import Address
from adapters.terminal import Failure, Hello, Ready, TerminalAdapter
from bot.refusals import refusal

if TYPE_CHECKING:
    from bot.app import Hub
    from bot.home import Home

_USAGE = 2
_FAILURE = 1


class TerminalDoor:
    """``adapter`` is handed to ``Hub.open``; consoles are greeted once a hub is attached."""

    def __init__(self, home: Home, *, listen: Path | None = None, connected: socket.socket | None = None) -> None:
        self._home = home
        self._hub: Hub | None = None
        self.adapter = TerminalAdapter(greet=self._greet, arrived=self._arrived, listen=listen, connected=connected)

    def attach(self, hub: Hub) -> None:
        self._hub = hub

    async def _greet(self, hello: Hello) -> Ready | Failure:
        assert self._hub is not None, "the adapter runs inside the hub"
        try:
            greeting = await self._hub.greet(hello.agent, opening=hello.interactive)
        except Exception as error:  # an agent that can't be opened: the console must hear why, not hang
            told = refusal(error, self._home)
            return Failure(str(told), told.exit_code) if told else Failure(str(error), _FAILURE)
        if greeting is None:
            return Failure(f"No agent is called {hello.agent!r}.", _USAGE)
        return Ready(greeting.agent, greeting.model, greeting.notices, greeting.commands)

    def _arrived(self, address: Address) -> None:
        if self._hub is not None:
            self._hub.arrived(address)
