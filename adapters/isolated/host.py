"""An adapter that does its work in a process of its own.

It starts that process, says what became of it, and starts it anew; what went out when it died is an error of
``adapters.errors`` like any other. Knows no platform.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import pkgutil
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, SecretBytes, SecretStr
from pydantic_core import to_json

from adapters.adapter import (
    Accept,
    Adapter,
    Backfiller,
    Drafter,
    Eraser,
    Health,
    Leaver,
    Menu,
    Narrator,
    Offered,
    Reactor,
    Settler,
)
from adapters.errors import AdapterError, Ambiguous, Rejected, Unreachable
from adapters.isolated.frames import (
    Begin,
    Call,
    Done,
    Draft,
    Edit,
    Erase,
    Fetch,
    FrameError,
    Leave,
    React,
    Run,
    Send,
    Settle,
    Signal,
    Trouble,
    Typing,
    cut,
)
from adapters.isolated.process import Life, Lost
from adapters.message import Address, Inbound, Message, Part, Receipt
from adapters.text import FormattedText

log = logging.getLogger(__name__)

_FIRST_PAUSE = 1.0
_GROWTH = 2.0
_LONGEST_PAUSE = 60.0
_CALM_SECONDS = 300.0
"""A process that lived so long is started anew as if it were the first to die. That it was connected is not enough:
what killed it may come again at once."""

_MOST_EVENTS = 64
"""So many may wait to be stored, of 4 MiB each; an adapter hands on a few."""


class AdapterFault(Exception):
    """The adapter's ``run`` ended with an error that is none of ``adapters.errors``: a fault of its own."""


@dataclass(frozen=True, slots=True)
class Times:
    """``random`` gives numbers in [0, 1), ``monotonic`` seconds.

    ``patience`` is how long, in seconds, a process may leave a question unanswered before it is killed.
    """

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random
    monotonic: Callable[[], float] = time.monotonic
    patience: float = 20.0


def isolated(
    place: str,
    account: str,
    settings: BaseModel,
    options: Mapping[str, Path | bool | int | float | str | None] | None = None,
    times: Times | None = None,
) -> Adapter:
    """The adapter ``place`` ("package.module:Class") of an account, at work in a process of its own.

    It can what that one can: it has the methods of those optional protocols that the class has. ``options`` are further
    arguments of the class. Lines that its ``chatter`` names, where it has one, are not logged. Raises ValueError for a
    ``Narrator``, whose people sit at this very terminal.
    """
    local = cast(Adapter, pkgutil.resolve_name(place)(account, settings, **options or {}))
    if isinstance(local, Narrator):
        raise ValueError(f"{place} can't be isolated: it shows how an answer comes about")
    secrets: list[str] = []
    given = to_json(_revealed(settings.model_dump(round_trip=True), secrets)).decode()
    paths = {key: value for key, value in (options or {}).items() if isinstance(value, Path)}
    plain = {key: value for key, value in (options or {}).items() if not isinstance(value, Path)}
    begin = Begin(place, account, given, plain, paths, logging.WARNING)
    return _class(tuple(mixin for kind, mixin in _OPTIONAL.items() if isinstance(local, kind)))(
        local, begin, tuple(secrets), times or Times()
    )


def _revealed(value: Any, secrets: list[str]) -> Any:
    """``value`` with its secrets as they are; they are also put into ``secrets``."""
    match value:
        case SecretStr() | SecretBytes():
            secret = value.get_secret_value()
            secrets.append(secret if isinstance(secret, str) else secret.decode("utf-8", "replace"))
            return secret
        case dict():
            return {key: _revealed(each, secrets) for key, each in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_revealed(each, secrets) for each in value]
    return value


class Isolated:
    """What every adapter can. ``local`` is of the same class as the one in the process, and only asked what it is."""

    def __init__(self, local: Adapter, begin: Begin, secrets: tuple[str, ...], times: Times) -> None:
        self.channel, self.account = local.channel, local.account
        self.capabilities = local.capabilities
        self.health = Health()
        self._local = local
        self._begin = begin
        self._secrets = secrets
        self._times = times
        self._name = f"{self.channel}/{self.account}"
        self._starting = asyncio.Lock()
        self._life: Life | None = None
        self._accept: Accept | None = None
        """While ``run`` is on."""
        self._events: dict[tuple[Life, int], asyncio.Task[None]] = {}
        self._drafts: dict[Address, float | None] = {}
        self._commands: tuple[Offered, ...] = ()
        self._newest: dict[str, str] = {}
        self._heard_at: datetime | None = None
        self._reconnects = 0
        """Before this process began, and with it."""
        self._is_lost = False
        """From the death of a process until another one is connected."""
        self._was_well = False
        self._is_closed = False

    async def run(self, accept: Accept) -> None:
        """Raises AdapterFault besides, where the adapter has a fault."""
        self._accept = accept
        pause = _FIRST_PAUSE
        try:
            while True:
                began = self._times.monotonic()
                try:
                    async with self._starting:
                        life = await self._living()
                    heard_at = self.health.heard_at or self._heard_at
                    trouble = await life.run(Run(self._commands, self._newest, heard_at))
                except (Lost, OSError) as error:
                    self._died(error)
                else:
                    if trouble is not None:
                        raise trouble.error(AdapterFault)
                    return
                if self._times.monotonic() - began > _CALM_SECONDS:
                    pause = _FIRST_PAUSE
                await self._times.sleep(pause * (0.5 + self._times.random()))
                pause = min(pause * _GROWTH, _LONGEST_PAUSE)
        except asyncio.CancelledError:
            if self._life is not None:
                await self._life.halt()
            self.health = replace(self.health, state="stopped", detail="")
            raise
        finally:
            self._accept = None
            storing = [*self._events.values()]
            for task in storing:
                task.cancel()
            await asyncio.gather(*storing, return_exceptions=True)

    async def send(self, part: Part, key: str) -> Receipt:
        unsure = Unreachable if self.capabilities.idempotent else Ambiguous
        answer = await self._ask(Send(part, key), unsure)
        if not isinstance(answer, Receipt):
            raise unsure(f"{self._name}: there is no receipt")
        return answer

    async def edit(self, part: Part, message_id: str) -> None:
        await self._ask(Edit(part, message_id), Ambiguous)

    async def typing(self, address: Address) -> None:
        await self._show(Typing(address))

    async def fetch(self, ref: str, limit: int) -> AsyncIterator[bytes]:
        size = 0
        try:
            async with aclosing((await self._reached()).stream(Fetch(ref, limit))) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Trouble):
                        raise piece.error(Unreachable)
                    size += len(piece)
                    if size > limit:
                        raise Rejected(f"the file is larger than {limit} bytes")
                    yield piece
        except Lost as error:
            raise self._unreachable(error) from None
        except FrameError as error:
            raise Rejected(f"{self._name}: {error}") from None

    def measure(self, text: FormattedText) -> int:
        return self._local.measure(text)

    async def close(self) -> None:
        """Returns once nothing of the process is left."""
        self._is_closed = True
        async with self._starting:
            if self._life is not None:
                await self._life.close()

    async def _ask(self, call: Call, unsure: type[AdapterError]) -> Receipt | Done:
        """The answer; ``unsure`` is raised where nobody knows whether the call was made."""
        try:
            answer = await (await self._reached()).ask(call)
        except Lost as error:
            raise (unsure(f"{self._name}: its process {error}") if error.taken else self._unreachable(error)) from None
        except FrameError as error:
            raise Rejected(f"{self._name}: {error}") from None
        if isinstance(answer, Trouble):
            raise answer.error(unsure)
        return answer

    async def _show(self, call: Call) -> Receipt | Done | None:
        """Best effort: no process is started for it, and no failure is told."""
        if self._life is None or self._life.is_over:
            return None
        try:
            answer = await self._life.ask(call)
        except (Lost, FrameError) as error:
            log.debug("%s: was not shown: %s", self._name, error)
            return None
        return None if isinstance(answer, Trouble) else answer

    async def _reached(self) -> Life:
        """The process to ask. While ``run`` is on, only that starts it anew, after its pause."""
        async with self._starting:
            if self._is_closed:
                raise Unreachable(f"{self._name} is closed")
            if self._life is not None and self._life.is_over and self._accept is not None:
                raise self._unreachable(self._life.death.result())
            try:
                return await self._living()
            except OSError as error:
                raise Unreachable(f"{self._name}: its process can't be started: {error.strerror}") from None

    async def _living(self) -> Life:
        if self._life is None or self._life.is_over:
            begin = replace(self._begin, level=logging.root.getEffectiveLevel())
            self._drafts.clear()
            self._reconnects = self.health.reconnects
            self._life = await Life.begin(self._name, begin, self._hear, self._hidden, self._times.patience)
        return self._life

    def _hear(self, number: int, value: object) -> None:
        """An event, what becomes of it, or a health."""
        life = self._life
        if life is None:
            return
        match value:
            case Health():
                self._feel(value)
            case Signal("cancel"):
                if task := self._events.get((life, number)):
                    task.cancel()
            case Signal():
                raise FrameError(f"the signal {value.word!r}")
            case _:
                event = cast(Inbound, value)
                address = event.address
                if (address.channel, address.account) != (self.channel, self.account):
                    raise FrameError("an event of another channel")
                if (life, number) in self._events:
                    raise FrameError("an event with the number of another one")
                if self._accept is None or len(self._events) >= _MOST_EVENTS:
                    raise FrameError("an event that nobody waits for")
                self._events[life, number] = task = asyncio.create_task(self._take(life, number, event, self._accept))
                task.add_done_callback(lambda _: self._events.pop((life, number)))

    async def _take(self, life: Life, number: int, event: Inbound, accept: Accept) -> None:
        try:
            await accept(event)
        except Exception as error:
            life.say(number, Trouble.of(error))
            return
        if isinstance(event, Message) and isinstance(self, Backfiller):
            self._newest[event.address.chat] = event.id
        life.say(number, Signal("stored"))

    def _feel(self, health: Health) -> None:
        if health.state == "starting" and (self._is_lost or self._accept is None):
            return  # a process that is there again, or for the last answers, is not yet the news
        if health.state == "connected":
            if self._is_lost:
                log.info("%s: connected again", self._name)
                self._reconnects += self._was_well
            self._is_lost, self._was_well = False, True
        reconnects = self._reconnects + health.reconnects
        health = replace(health, detail=cut(health.detail))
        self.health = replace(health, reconnects=reconnects, heard_at=health.heard_at or self.health.heard_at)

    def _died(self, error: Lost | OSError) -> None:
        self._is_lost = True
        detail = f"its process {error}, and is started anew: the log has what it wrote"
        log.warning("%s: %s", self._name, detail)
        self.health = replace(self.health, state="retrying", detail=detail)

    def _unreachable(self, reason: object) -> Unreachable:
        return Unreachable(f"{self._name}: its process {reason}, and is started anew")

    def _hidden(self, text: str) -> str:
        for secret in filter(None, self._secrets):
            text = text.replace(secret, "***")
        chatter: tuple[str, ...] = getattr(self._local, "chatter", ())
        return "\n".join(line for line in text.splitlines() if line not in chatter) if chatter else text


class _Reacting(Isolated):
    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        await self._show(React(address, message_id, emoji))


class _Erasing(Isolated):
    async def erase(self, address: Address, message_id: str) -> None:
        await self._show(Erase(address, message_id))


class _Leaving(Isolated):
    async def leave(self, address: Address) -> None:
        await self._show(Leave(address))


class _Drafting(Isolated):
    """The process may find out that a chat takes no drafts; until it does, ``local`` is believed."""

    def drafts(self, address: Address) -> float | None:
        if address in self._drafts:
            return self._drafts[address]
        return cast(Drafter, self._local).drafts(address)

    async def draft(self, part: Part, turn: str) -> None:
        answer = await self._show(Draft(part, turn))
        if isinstance(answer, Done) and answer.seconds != self.drafts(part.address):
            self._drafts[part.address] = answer.seconds


class _Offering(Isolated):
    def offer(self, commands: Sequence[Offered]) -> None:
        self._commands = tuple(commands)


class _Backfilling(Isolated):
    """A process that is started anew goes on where the last one was."""

    def resume(self, newest: Mapping[str, str], heard_at: datetime | None) -> None:
        self._newest, self._heard_at = dict(newest), heard_at


class _Settling(Isolated):
    async def settle(self, part: Part, key: str, since: datetime) -> Receipt | None:
        answer = await self._ask(Settle(part, key, since), Unreachable)
        return answer if isinstance(answer, Receipt) else None


_OPTIONAL: dict[type, type[Isolated]] = {
    Reactor: _Reacting,
    Eraser: _Erasing,
    Leaver: _Leaving,
    Drafter: _Drafting,
    Menu: _Offering,
    Backfiller: _Backfilling,
    Settler: _Settling,
}


@functools.cache
def _class(parts: tuple[type[Isolated], ...]) -> type[Isolated]:
    """With the methods of these protocols and of no other: the hub asks by ``isinstance`` what an adapter can."""
    return type("Isolated", (*parts, Isolated), {})
