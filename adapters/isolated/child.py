"""The process of one adapter: makes it, and does with it what the hub says over a socket.

It imports nothing of ours but ``adapters``. It ends when it is told to or when the hub is gone, be its event loop
blocked or not; a signal that was meant for the whole program doesn't end it, since the hub still has answers to send.
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import pkgutil
import signal
import socket
import sys
import threading
from contextlib import suppress
from dataclasses import fields, replace
from itertools import count
from typing import Any, NoReturn, cast

from adapters.adapter import Adapter, Backfiller, Drafter, Health, Menu
from adapters.errors import AdapterError
from adapters.isolated.frames import (
    PIECE,
    TO_CHILD,
    Begin,
    Call,
    Done,
    Draft,
    Ended,
    Fetch,
    FrameError,
    Log,
    Run,
    Signal,
    Trouble,
    encode,
    frames,
    written,
)
from adapters.message import Inbound, Receipt

log = logging.getLogger("adapters.isolated.child")  # __name__ is __main__

_LOOK_SECONDS = 0.25
"""How often the health is looked at, beside each time that anything is said."""

_LOG_LIMIT = 1 << 16
"""Characters of a line in the log."""


class NotStored(Exception):
    """The hub could not store an event: it is to come again."""


class Service:
    """``adapter`` at the service of the hub, which is at the other end of ``writer``."""

    def __init__(self, adapter: Adapter, writer: asyncio.StreamWriter) -> None:
        self._adapter = adapter
        self._writer = writer
        self._numbers = count(1)
        self._health: Health | None = None
        self._run: asyncio.Task[None] | None = None
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._wanted: dict[int, asyncio.Event] = {}
        self._events: dict[int, asyncio.Future[Trouble | None]] = {}

    def say(self, number: int, value: object) -> None:
        """Raises FrameError. The health goes first where it changed: what comes after it is true under it."""
        frame = encode(number, value)
        self.look()
        self._writer.write(frame)

    def look(self) -> None:
        if self._health != self._adapter.health:
            self._health = self._adapter.health
            self._writer.write(encode(0, replace(self._health, detail=written(self._health.detail))))

    async def close(self) -> None:
        """End everything, and let go of the platform."""
        tasks = [task for task in (self._run, *self._calls.values()) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._adapter.close()
        await self._writer.drain()

    def obey(self, number: int, value: object) -> None:
        """Begin to do what the hub said."""
        match value:
            case Signal("ping"):
                self.say(number, Signal("pong"))
            case Signal("halt") if self._run is not None:
                self._run.cancel()
            case Signal("cancel") if number in self._calls:
                self._calls[number].cancel()
            case Signal("more") if number in self._wanted:
                self._wanted[number].set()
            case Signal("stored"):
                self._stored(number, None)
            case Trouble():
                self._stored(number, value)
            case Run():
                self._run = asyncio.create_task(self._receive(value))
            case Signal():
                """About something that has ended meanwhile."""
            case _:
                self._calls[number] = task = asyncio.create_task(self._serve(number, cast(Call, value)))
                task.add_done_callback(lambda _: self._calls.pop(number))

    async def _receive(self, run: Run) -> None:
        if isinstance(self._adapter, Menu):
            self._adapter.offer(run.commands)
        if isinstance(self._adapter, Backfiller):
            self._adapter.resume(run.newest, run.heard_at)
        trouble = None
        try:
            await self._adapter.run(self._accept)
        except asyncio.CancelledError:
            """By a halt."""
        except Exception as error:
            if not isinstance(error, AdapterError):
                log.exception("a fault in the adapter's run")
            trouble = Trouble.of(error)
        self.say(0, Ended(trouble))

    async def _accept(self, event: Inbound) -> None:
        if self._run is not None and self._run.done():
            raise asyncio.CancelledError  # the hub takes nothing more, and would take us for mad
        number = next(self._numbers)
        self._events[number] = stored = asyncio.get_running_loop().create_future()
        try:
            try:
                self.say(number, event)
            except FrameError as error:  # it would be as long each time it comes again, and nothing after it would come
                log.error("a %s was skipped: %s", type(event).__name__.lower(), error)
                return
            trouble = await stored
        except asyncio.CancelledError:
            self.say(number, Signal("cancel"))
            raise
        finally:
            del self._events[number]
        if trouble is not None:
            raise trouble.error(NotStored)

    def _stored(self, number: int, trouble: Trouble | None) -> None:
        if (stored := self._events.get(number)) and not stored.done():
            stored.set_result(trouble)

    async def _serve(self, number: int, call: Call) -> None:
        self.say(number, Signal("taken"))
        await self._writer.drain()  # it is with the hub before the work begins: else a crash would deny the work
        try:
            self.say(number, await self._answer(number, call))
        except Exception as error:
            if not isinstance(error, AdapterError):
                log.exception("a fault in the adapter's %s", type(call).__name__.lower())
            self.say(number, Trouble.of(error))

    async def _answer(self, number: int, call: Call) -> Receipt | Done:
        match call:
            case Fetch(ref, limit):
                await self._fetch(number, ref, limit)
                return Done()
            case Draft(part, turn) if isinstance(self._adapter, Drafter):
                await self._adapter.draft(part, turn)
                return Done(self._adapter.drafts(part.address))
        method = getattr(self._adapter, type(call).__name__.lower())
        found = await method(**{each.name: getattr(call, each.name) for each in fields(call)})
        return found if isinstance(found, Receipt) else Done()

    async def _fetch(self, number: int, ref: str, limit: int) -> None:
        self._wanted[number] = wanted = asyncio.Event()
        try:
            async for data in self._adapter.fetch(ref, limit):
                for start in range(0, len(data), PIECE):
                    self.say(number, data[start : start + PIECE])
                    await wanted.wait()
                    wanted.clear()
        finally:
            del self._wanted[number]


class LogToHub(logging.Handler):
    """Brings the log to the hub, from any thread; at once from that of the loop, where a crash may follow."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        super().__init__()
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            frame = encode(0, Log(record.name, record.levelno, written(self.format(record)[:_LOG_LIMIT])))
            if threading.get_ident() == self._thread:
                self._writer.write(frame)
            else:
                with suppress(RuntimeError):  # there is no loop any more
                    self._loop.call_soon_threadsafe(self._writer.write, frame)
        except Exception:
            self.handleError(record)


def made(begin: Begin) -> Adapter:
    kind: Any = pkgutil.resolve_name(begin.place)
    settings = kind.settings_model.model_validate_json(begin.settings, by_name=True)
    return cast(Adapter, kind(begin.account, settings, **begin.options, **begin.paths))


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until the hub is gone, or says that it is enough."""
    incoming = frames(reader, TO_CHILD)
    _, begin = await anext(incoming)
    if not isinstance(begin, Begin):
        raise FrameError(f"the first frame is a {type(begin).__name__}")
    logging.root.setLevel(begin.level)
    logging.root.addHandler(LogToHub(writer))
    service = Service(made(begin), writer)

    async def keep_looking() -> None:
        while True:
            service.look()
            await asyncio.sleep(_LOOK_SECONDS)

    looking = asyncio.create_task(keep_looking())
    async for number, value in incoming:
        if value == Signal("close"):
            looking.cancel()
            return await service.close()
        service.obey(number, value)
    return None


async def main(descriptor: int) -> None:
    """Ends the process by itself, since foreign threads and a busy executor would hold up an interpreter that ends."""
    connection = socket.socket(fileno=descriptor)
    connection.set_inheritable(False)
    reader, writer = await asyncio.open_unix_connection(sock=connection)
    writer.transport.set_write_buffer_limits(high=0)  # so that drain() waits until all is with the system
    await serve(reader, writer)
    end()


def end() -> NoReturn:
    """At once, with everything that was started here."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


def end_with_hub() -> None:
    """The hub never writes here, so there is something to read once it is gone."""
    os.read(0, 1)
    end()


if __name__ == "__main__":
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda *_: None)  # not SIG_IGN, which the programs that are started here would inherit
    faulthandler.enable()
    threading.Thread(target=end_with_hub, daemon=True).start()
    asyncio.run(main(int(sys.argv[1])))
