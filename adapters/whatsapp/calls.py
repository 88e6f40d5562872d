"""Calls of the library's Go side, each in a thread of its own that holds nobody up.

The library itself would use the threads that the whole program shares. There are few of those, one is taken for as long
as a client runs, and the program waits for all of them when it ends. Knows no call.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import ModuleType
from typing import Any, TypeVar

T = TypeVar("T")


class Calls:
    """Stands in for what ``client``, a module of the library, makes its calls with."""

    def __init__(self, client: ModuleType) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        def call(*args: Any) -> Coroutine[Any, Any, Any]:
            return in_thread(getattr(self._client.gocode, name), *args)

        return call


async def in_thread(call: Callable[..., T], *args: Any) -> T:
    """What ``call`` gives. After a cancellation it goes on, and nobody hears of it."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def done(result: T | None, error: BaseException | None) -> None:
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(result)  # type: ignore[arg-type]  # None only where that is what ``call`` gives

    def work() -> None:
        result, error = None, None
        try:
            result = call(*args)
        except Exception as raised:
            error = raised
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(done, result, error)

    threading.Thread(target=work, name="whatsapp-call", daemon=True).start()
    return await answer
