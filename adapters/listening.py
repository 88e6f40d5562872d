"""Listening on a port, for the adapters whose platform calls us. Knows no platform."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from adapters.errors import Unreachable

if TYPE_CHECKING:
    from aiohttp import web


async def serving(app: web.Application, host: str, port: int, *, closing: float, whom: str, mend: str) -> web.AppRunner:
    """``app``, served there, until ``cleanup``, which waits ``closing`` seconds for requests that are being answered.

    Raises Unreachable where the port can't be had: for ``whom`` it was, and ``mend`` is a clause. Nothing stays open
    then, nor after a cancellation.
    """
    from aiohttp import web

    server = web.AppRunner(app, access_log=None, shutdown_timeout=closing)
    await server.setup()
    try:
        await listen(server, host, port)
    except asyncio.CancelledError:
        await server.cleanup()
        raise
    except OSError as error:
        await server.cleanup()
        raise Unreachable(f"can't listen on {host}:{port} for {whom} ({error.strerror or error}): {mend}") from None
    return server


async def listen(runner: web.AppRunner, host: str, port: int) -> None:
    """Let ``runner`` serve there. Raises OSError where the port can't be had.

    A cancellation comes after it is done: cut off in the middle, the socket would be left open, out of reach of
    ``runner.cleanup``.
    """
    from aiohttp import web

    starting = asyncio.ensure_future(web.TCPSite(runner, host, port).start())
    try:
        await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.wait([starting])
        raise
