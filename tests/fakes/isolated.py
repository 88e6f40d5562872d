"""Adapters for the tests of ``adapters.isolated``: what runs in the other process imports no more than this."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, SecretStr

from adapters.adapter import Accept, Capabilities, Health, Narrator, Offered
from adapters.errors import (
    Absent,
    Ambiguous,
    AuthFailed,
    ChatMoved,
    MissingExtra,
    RateLimited,
    Rejected,
    Unreachable,
)
from adapters.message import (
    Address,
    Attachment,
    Deleted,
    Edited,
    Inbound,
    Membership,
    Message,
    Moved,
    Part,
    Pressed,
    Quote,
    Reacted,
    Receipt,
    Sender,
    Spoken,
)
from adapters.text import FormattedText

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
PLACE = Address("puppet", "main", "7", "group", space="s", parent="p", thread="t", private=True)
ANN = Sender("7", "Ann", ("+1",), ("admin",), is_bot=True, is_shared=True)
FILE = Attachment("voice", "ref", "n", 9, "audio/ogg", 1.5)

EVENTS: dict[str, Inbound] = {
    "message": Message(
        "m",
        PLACE,
        ANN,
        "hello 👋\n",
        NOON,
        attachments=(FILE,),
        quote=Quote("q", "a", below=True, attachments=(FILE,)),
        reply_to="r",
        forwarded_from="f",
        mentions_me=True,
        album="al",
        is_cut=True,
        context=(Spoken(ANN, "before"), Spoken(None, "ours")),
    ),
    "bare": Message("m", PLACE, ANN, "", NOON),
    "edited": Edited("m", PLACE, ANN, "", NOON),
    "deleted": Deleted("m", PLACE, NOON),
    "reacted": Reacted("m", PLACE, ANN, "", NOON),
    "pressed": Pressed("m", PLACE, ANN, "b", "data", NOON),
    "moved": Moved(PLACE, "8", NOON),
    "membership": Membership(PLACE, ANN, True, NOON),
}
"""Every kind of event, each field filled in once."""

ERRORS = {
    "rejected": Rejected("no", formatting=True, gone=True),
    "moved": ChatMoved("moved", "8"),
    "flood": RateLimited("slowly", 2.5),
    "unreachable": Unreachable("away"),
    "absent": Absent("nobody"),
    "ambiguous": Ambiguous("perhaps"),
    "auth": AuthFailed("401"),
    "extra": MissingExtra("puppet", "strings"),
}

PANIC = "panic: runtime error: invalid memory address\n\ngoroutine 7 [running]:\n" + "main.f(0x0)\n\t/go/f.go:7\n" * 50


def _forged(field: str) -> Address:
    return replace(PLACE, channel="owner") if field == "channel" else replace(PLACE, account="owner")


class PuppetSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    token: SecretStr = SecretStr("s3cret-of-the-puppet")
    others: dict[str, SecretStr | None] = {}
    idempotent: bool = False


class Puppet:
    """Does to its process what the text of a part says, and in ``run`` what the files in ``folder`` say."""

    settings_model = PuppetSettings
    channel = "puppet"
    chatter = ("Press any key",)

    def __init__(self, account: str, settings: PuppetSettings, *, folder: Path) -> None:
        self.account = account
        self.capabilities = Capabilities(text_limit=100, idempotent=settings.idempotent)
        self.health = Health()
        self.settings = settings
        self.folder = folder
        self._accept: Accept | None = None

    def mark(self, name: str, text: str = "") -> None:
        (self.folder / name).write_text(text)

    def has(self, name: str) -> bool:
        return (self.folder / name).exists()

    async def run(self, accept: Accept) -> None:
        self._accept = accept
        if self.has("die"):
            os._exit(3)
        if self.has("refuse"):
            self.health = Health("failed", "401")
            raise AuthFailed("401")
        if self.has("fault"):
            raise KeyError("fault")
        self.health = Health("connected", "at work", heard_at=NOON)
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if not self.has("disobey"):
                    self.health = replace(self.health, state="stopped", detail="")
                    raise

    async def send(self, part: Part, key: str) -> Receipt:
        name, _, rest = part.text.plain.partition(" ")
        match name:
            case "pid":
                return Receipt(str(os.getpid()))
            case "modules":
                return Receipt(" ".join(sys.modules))
            case "environ":
                return Receipt(" ".join((*os.environ, *os.environ.values(), *sys.argv)))
            case "settings":
                values = (self.settings.token, *self.settings.others.values())
                return Receipt(" ".join(each.get_secret_value() for each in values if each))
            case "raise":
                raise ERRORS[rest]
            case "fault":
                raise KeyError(rest)
            case "say":
                return Receipt(await self._say(EVENTS[rest]))
            case "forge":
                return Receipt(await self._say(Deleted("m", _forged(rest), NOON)))
            case "hurry":  # an event that the adapter itself gives up
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.2):
                        await self._say(EVENTS["bare"])
                return Receipt("gave up")
            case "wait":
                await self._wait()
            case "hang":
                self.mark("hung")
                time.sleep(600)  # noqa: ASYNC251 - that is the fault
            case "spin":
                self.mark("hung")
                while True:
                    pass
            case "abort":
                threading.Thread(target=os.abort).start()
                await self._wait()
            case "panic":
                os.write(2, b"Press any key\n")
                os.write(2, (PANIC + self.settings.token.get_secret_value() + "\n").encode())
                os._exit(2)
            case "raw":
                os.write(int(sys.argv[1]), bytes.fromhex(rest))
                await self._wait()
            case "log":
                logging.getLogger("adapters.puppet").log(
                    int(rest), "a line, %s", self.settings.token.get_secret_value()
                )
            case "flood":  # more than a socket holds
                for _ in range(50):
                    logging.getLogger("adapters.puppet").warning("%s", "x" * 60_000)
            case "child":
                process = subprocess.Popen(["sleep", "600"])  # noqa: ASYNC220
                return Receipt(str(process.pid))
            case "signal":
                os.kill(os.getpid(), int(rest))
                await asyncio.sleep(0.05)
        return Receipt(f"{key} {part.text.plain}")

    async def _wait(self) -> None:
        self.mark("waiting")
        try:
            await asyncio.Event().wait()
        finally:
            self.mark("cancelled")

    async def _say(self, event: Inbound) -> str:
        assert self._accept is not None
        try:
            await self._accept(event)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return "stored"

    async def edit(self, part: Part, message_id: str) -> None:
        await self.send(part, message_id)

    async def typing(self, address: Address) -> None:
        """Nothing to show."""

    async def fetch(self, ref: str, limit: int) -> AsyncIterator[bytes]:
        """``ref`` is how many pieces of 100 kB there are; the limit is not looked at."""
        try:
            for number in range(int(ref)):
                self.mark("fetched", str(number))
                yield bytes([number % 256]) * 100_000
        finally:
            self.mark("let go")

    def measure(self, text: FormattedText) -> int:
        return 2 * len(text.plain)

    async def close(self) -> None:
        if self.has("disobey"):
            signal.pause()


class Marionette(Puppet):
    """Has every optional method there is."""

    seconds: float | None = 0.5

    def drafts(self, address: Address) -> float | None:
        return self.seconds

    async def draft(self, part: Part, turn: str) -> None:
        self.mark("draft", turn)
        self.seconds = None

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        self.mark("react", message_id + emoji)
        raise KeyError("it is best effort")

    async def erase(self, address: Address, message_id: str) -> None:
        self.mark("erase", message_id)

    async def leave(self, address: Address) -> None:
        self.mark("leave", address.chat)

    async def settle(self, part: Part, key: str, since: datetime) -> Receipt | None:
        return Receipt(since.isoformat()) if key == "known" else None

    def offer(self, commands: Sequence[Offered]) -> None:
        self.mark("offer", " ".join(command.name for command in commands))

    def resume(self, newest: Mapping[str, str], heard_at: datetime | None) -> None:
        self.mark("resume", f"{dict(newest)} {heard_at}")


class Teller(Puppet, Narrator):
    """Shows how an answer comes about."""
