"""Listening on a port, and being cut off at any moment of it."""

from __future__ import annotations

import asyncio
import gc
import warnings

import pytest
from aiohttp import web

from adapters.listening import listen


@pytest.mark.parametrize("steps", range(6))
async def test_no_socket_stays_open_whenever_it_is_cancelled(steps: int) -> None:
    runner = web.AppRunner(web.Application())
    await runner.setup()
    task = asyncio.create_task(listen(runner, "127.0.0.1", 0))
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    await runner.cleanup()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        gc.collect()
    assert [str(one.message) for one in seen if one.category is ResourceWarning] == []
