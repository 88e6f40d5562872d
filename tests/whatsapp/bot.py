"""The bot under test, as the scenarios see it: what it hears, what it is told to send, and how it is.

``LibraryBot`` is nothing but the library, and repeats what it hears: it proves the server. ``AdapterBot`` is the
adapter.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from tests.fakes.whatsapp_relay.directory import Account
from tests.fakes.whatsapp_relay.lines import Process
from tests.fakes.whatsapp_relay.person import Person
from tests.fakes.whatsapp_relay.relay import Relay

Trouble: TypeAlias = Literal["removed", "replaced", "banned", "outdated"]
"""Only a person can mend it."""


@dataclass(frozen=True, slots=True)
class Heard:
    """``sender`` is the phone number. ``of`` is the message that it is about, or that it quotes; "" for none.

    ``quoted`` may be empty for a message of the bot's own, which knows what it said.
    """

    id: str
    chat: str
    sender: str
    text: str
    of: str = ""
    quoted: str = ""
    mentions_me: bool = False
    media_type: str = ""


class Bot(Protocol):
    """It answers what ends with a question mark: with a quote of it, and "echo: " before its words.

    To what comes in numbers nothing is asked: a client that writes while it reads now and then uses a key twice, and
    who gets the second of the two messages drops it without a word.
    """

    account: Account

    async def start(self, *before: str) -> None:
        """Returns once it is connected. ``before`` are words to start it with, as those of a tracer."""

    async def stop(self) -> None: ...

    async def kill(self) -> None:
        """As a power cut would."""

    async def hears(self, kind: str = "text", **fields: str) -> Heard:
        """The first of ``kind`` with these fields, once it is there."""

    def texts(self) -> list[str]:
        """All that it heard since the first start, in order."""

    async def fetch(self, of: str) -> bytes:
        """The file that came with a message."""

    async def send(self, chat: str, text: str, file: Path | None = None) -> str:
        """The id of the message; with ``file``, ``text`` is its caption. Raises ToldError."""

    async def edit(self, chat: str, of: str, text: str) -> None: ...

    async def erase(self, chat: str, of: str) -> None: ...

    async def react(self, chat: str, of: str, emoji: str) -> None: ...

    async def type(self, chat: str) -> None: ...

    async def reports(self, trouble: Trouble) -> None:
        """Returns once it knows of it."""


_EVENTS: dict[Trouble, str] = {
    "removed": "LoggedOut",
    "replaced": "StreamReplaced",
    "banned": "TemporaryBan",
    "outdated": "ClientOutdated",
}


class LibraryBot:
    """A person's client that answers by itself. Each start is a process of its own, with the same session."""

    def __init__(self, relay: Relay, account: Account, folder: Path) -> None:
        self.account = account
        self._relay = relay
        self._folder = folder
        self._runs: list[Person] = []

    async def start(self, *before: str) -> None:
        self._runs.append(Person(self._relay, self.account, self._folder, echoes=True))
        await self._now.start(*before)
        await self._now.until("Connected")

    async def stop(self) -> None:
        await self._now.stop()

    async def kill(self) -> None:
        await self._now.kill()

    async def hears(self, kind: str = "text", **fields: str) -> Heard:
        event = await self._now.sees(kind, **fields)
        lid = event["sender"].partition("@")[0].partition(":")[0]
        sender = next(one for one in self._relay.directory.accounts.values() if lid in (one.lid, one.phone))
        mentions = event.get("mentions", [])
        return Heard(
            id=event["id"],
            chat=event["chat"],
            sender=sender.phone,
            text=event["text"],
            of=str(event.get("of", event.get("quotes", ""))),
            quoted=event.get("quoted", ""),
            mentions_me=str(self.account.by_lid) in mentions or str(self.account.by_phone) in mentions,
            media_type=event.get("media_type", ""),
        )

    def texts(self) -> list[str]:
        return [event["text"] for run in self._runs for event in run.told("Message", kind="text")]

    async def fetch(self, of: str) -> bytes:
        return await self._now.fetch(of)

    async def send(self, chat: str, text: str, file: Path | None = None) -> str:
        if file is None:
            return await self._now.say(chat, text)
        kind = "image" if file.suffix == ".png" else "document"
        return await self._now.send_file(chat, kind, file.read_bytes(), file.name, text)

    async def edit(self, chat: str, of: str, text: str) -> None:
        await self._now.edit(chat, of, text)

    async def erase(self, chat: str, of: str) -> None:
        await self._now.delete(chat, of)

    async def react(self, chat: str, of: str, emoji: str) -> None:
        await self._now.react(of, emoji)

    async def type(self, chat: str) -> None:
        await self._now.do("type", chat=chat)

    async def reports(self, trouble: Trouble) -> None:
        await self._now.until(_EVENTS[trouble])

    @property
    def _now(self) -> Person:
        return self._runs[-1]


ADAPTER_PROGRAM = "tests.whatsapp.adapter_program"
_DETAILS: dict[Trouble, str] = {
    "removed": "unlinked this device",
    "replaced": "another program uses this link",
    "banned": "banned the account for a while",
    "outdated": "takes this version of its client",
}


class AdapterBot:
    """The adapter, in a process for each start, as the hub runs it."""

    def __init__(self, relay: Relay, account: Account, folder: Path) -> None:
        self.account = account
        self._relay = relay
        self._folder = folder
        self._runs: list[Process] = []
        self.stalls = False
        """Whether, from the next start on, nothing that it hears is ever stored."""
        self.answer_seconds = 80.0
        """How long, from the next start on, it waits for the server."""

    async def start(self, *before: str) -> None:
        trust = self._relay.trust
        settings = {
            "folder": str(self._folder),
            "proxy": self._relay.proxy.url,
            "root": trust.root.hex(),
            "stalls": self.stalls,
            "answer_seconds": self.answer_seconds,
        }
        self._runs.append(Process(ADAPTER_PROGRAM, settings, trust.environment, self._folder / "log.txt"))
        await self._now.start(*before)
        await self._now.until("Health", state="connected")

    async def stop(self) -> None:
        await self._now.stop()

    async def kill(self) -> None:
        await self._now.kill()

    async def hears(self, kind: str = "text", **fields: str) -> Heard:
        event = await self._now.until("Heard", 1, kind=kind, **fields)
        return Heard(**{name: event[name] for name in _HEARD if name in event})

    def texts(self) -> list[str]:
        return [event["text"] for run in self._runs for event in run.told("Heard", kind="text")]

    async def fetch(self, of: str) -> bytes:
        return base64.b64decode(await self._now.do("fetch", of=of))

    async def send(self, chat: str, text: str, file: Path | None = None) -> str:
        return str(await self._now.do("send", chat=chat, text=text, file=str(file or "")))

    async def edit(self, chat: str, of: str, text: str) -> None:
        await self._now.do("edit", chat=chat, of=of, text=text)

    async def erase(self, chat: str, of: str) -> None:
        await self._now.do("erase", chat=chat, of=of)

    async def react(self, chat: str, of: str, emoji: str) -> None:
        await self._now.do("react", chat=chat, of=of, emoji=emoji)

    async def type(self, chat: str) -> None:
        await self._now.do("type", chat=chat)

    async def stalled(self) -> None:
        """Returns once it was given something that it does not store."""
        await self._now.until("Stalled")

    async def leave(self, chat: str) -> None:
        await self._now.do("leave", chat=chat)

    async def again(self) -> None:
        """Stop, and start in the same process."""
        await self._now.do("again")

    async def reports(self, trouble: Trouble) -> None:
        run, words = self._now, _DETAILS[trouble]
        await run.until_true(lambda: any(words in told["detail"] for told in run.told("Health")), words)

    @property
    def _now(self) -> Process:
        return self._runs[-1]


_HEARD = {field.name for field in fields(Heard)}
