"""A process that is nothing but a console: what ``limpet chat`` does once it knows where the hub is."""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import socket
import sys
import termios
from pathlib import Path

from adapters.terminal import Terminal, chat, to_peer, to_socket, whole_input
from tests.adapters.terminal.hub import Hub


async def attach(arguments: argparse.Namespace) -> int:
    terminal = Terminal.of_process()
    once = whole_input(terminal.stdin) if arguments.whole else arguments.once
    how = {"once": once, "agent": arguments.agent, "as_json": arguments.json, "history": arguments.history}
    if arguments.socket:
        return await chat(to_socket(arguments.socket), terminal, delays=[0.02] * arguments.tries, **how)
    ours, theirs = socket.socketpair()
    async with Hub(connected=theirs):
        return await chat(to_peer(ours), terminal, **how)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", type=Path)
    parser.add_argument("--tries", type=int, default=200)
    parser.add_argument("--once")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--agent")
    parser.add_argument("--history", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--own-tty", action="store_true")
    arguments = parser.parse_args()
    if arguments.own_tty:  # so that Ctrl-C on the terminal is a signal to us
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    return asyncio.run(attach(arguments))


if __name__ == "__main__":
    sys.exit(main())
