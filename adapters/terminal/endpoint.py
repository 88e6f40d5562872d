"""Where the two ends of the terminal meet: the hub's Unix socket, or a socket pair inside one process.

The socket is as private as the files beside it (0600). Knows nothing of what is said over it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import stat
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeAlias

Streams: TypeAlias = tuple[StreamReader, StreamWriter]

Dial: TypeAlias = Callable[[], Awaitable[Streams]]
"""A new connection to the hub; raises OSError when there is none to be had now."""

_LONGEST = 103
"""Bytes of a socket's address: ``sun_path`` holds 108 on Linux and 104 on macOS, the final zero included."""


def to_socket(path: Path) -> Dial:
    """Dials the hub that listens at ``path``, as often as needed."""

    async def dial() -> Streams:
        with _address(path) as address:
            return await asyncio.open_unix_connection(address)

    return dial


def to_peer(end: socket.socket) -> Dial:
    """Dials over one end of a socket pair: once, since the hub at the other end ends with this process."""

    async def dial() -> Streams:
        if end.fileno() < 0:
            raise ConnectionResetError(errno.ECONNRESET, "the hub in this process has ended")
        return await asyncio.open_unix_connection(sock=end)

    return dial


def bind(path: Path) -> socket.socket:
    """A socket that listens at ``path``, mode 0600. Raises OSError.

    Only the holder of the hub's lock may call this: a socket that lies there is then a dead hub's, and is removed. A
    file of another kind is left alone and is an error.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with contextlib.suppress(OSError):  # Linux then creates it so; elsewhere there is a moment before the chmod
            os.fchmod(listener.fileno(), 0o600)
        with _address(path) as address:
            listener.bind(address)
        path.chmod(0o600)
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener


async def shut(writer: StreamWriter) -> None:
    """Close, and give what was written a second to leave."""
    writer.close()
    try:
        with contextlib.suppress(OSError):  # TimeoutError is one
            async with asyncio.timeout(1):
                await writer.wait_closed()
    finally:
        writer.transport.abort()


@contextlib.contextmanager
def _address(path: Path) -> Iterator[str]:
    """``path`` as a socket's address. One that is too long goes by a descriptor of its folder, where there is /proc."""
    if len(os.fsencode(path)) <= _LONGEST:
        yield str(path)
        return
    if not Path("/proc/self/fd").is_dir():
        raise OSError(errno.ENAMETOOLONG, f"a socket's path may have {_LONGEST} bytes", str(path))
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
