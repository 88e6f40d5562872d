"""Listening on a port, for the adapters whose platform calls us. Knows no platform."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import web


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
