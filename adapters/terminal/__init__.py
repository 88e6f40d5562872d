"""The terminal as a channel: ``TerminalAdapter`` is the hub's side, ``chat`` the person's, and ``wire`` goes between.

They meet at a Unix socket (``to_socket``) or at a socket pair inside one process (``to_peer``); both run the same code.
"""

from adapters.terminal.adapter import Greet, TerminalAdapter
from adapters.terminal.console import chat
from adapters.terminal.endpoint import Dial, to_peer, to_socket
from adapters.terminal.keyboard import InputTooLarge, piped_input, whole_input
from adapters.terminal.screen import Terminal
from adapters.terminal.wire import Failure, Hello, Ready

__all__ = [
    "Dial",
    "Failure",
    "Greet",
    "Hello",
    "InputTooLarge",
    "Ready",
    "Terminal",
    "TerminalAdapter",
    "chat",
    "piped_input",
    "to_peer",
    "to_socket",
    "whole_input",
]
