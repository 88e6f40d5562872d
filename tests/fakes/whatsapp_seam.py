"""WhatsApp behind the library's Go side: what the real client calls instead of it, and what reports to it.

Everything above is the library's own: its client, its C callback, which is called from a thread of ours as Go's would
be, and its protobuf. As in Go, a client is known by its name only while it is there; what is called of one that is not
there would take the process down, and is noted in ``crashes``.
"""

from __future__ import annotations

import asyncio
import ctypes
import hashlib
import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from adapters.whatsapp.library import load
from adapters.whatsapp.session import prepare
from tests.fakes.whatsapp_events import ANN, BOT, event, update

REFUSED = b'failed to dial whatsapp web websocket: Get "https://web.whatsapp.com/ws/chat": connection refused'
CODES = ("https://wa.me/settings/linked_devices#first", "https://wa.me/settings/linked_devices#second")
PAIRING_CODE = "ABCD-EFGH"
NOT_CONNECTED = "websocket not connected"
TIMED_OUT = "timed out waiting for message send response"

_WAIT = 0.005
_HELD = ("Message", "JoinedGroup", "GroupInfoEvent")
"""What is kept for a device that is away."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one send: ``error`` is the library's word for it, ``after`` lets it have its effect first.

    ``stalls``: it is not answered while the test lasts. ``meanwhile`` is done before it is answered, with the id that
    the message gets.
    """

    error: str = ""
    after: bool = False
    stalls: bool = False
    meanwhile: Callable[[str], None] | None = None


@dataclass
class Sent:
    """A message of the account, as people see it now."""

    id: str
    chat: str
    body: Any
    edits: int = 0

    @property
    def text(self) -> str:
        for kind in ("imageMessage", "videoMessage", "documentMessage"):
            if self.body.HasField(kind):
                return str(getattr(self.body, kind).caption)
        return str(self.body.conversation or self.body.extendedTextMessage.text)


@dataclass
class _Running:
    """A client of the library."""

    name: bytes
    callback: Callable[..., None]
    kinds: frozenset[int]
    is_connected: bool = False
    is_stopped: bool = False
    reported: queue.Queue[tuple[int, bytes] | None] = field(default_factory=queue.Queue)

    def report(self, kind: int, data: bytes) -> None:
        if kind in self.kinds:
            self.reported.put((kind, data))


class Seam:
    """One account, which Ann writes to."""

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.reactions: list[tuple[str, str]] = []
        """The message and the sign, in order."""
        self.composed: list[str] = []
        self.read: list[tuple[str, str, tuple[str, ...]]] = []
        """Chat, author and messages."""
        self.left: list[str] = []
        self.faults: deque[Fault] = deque()
        self.files: dict[bytes, bytes] = {}
        """By the key of a file, its bytes."""
        self.phones: dict[str, str] = {}
        """By LID, the phone number that the library would know; without servers."""
        self.proxy_url = ""
        """Where the account finds that somebody is there."""
        self.starts = 0
        self.crashes: list[str] = []
        self.stalled = threading.Event()
        self.scanned = threading.Event()
        self.may_begin = threading.Event()
        """Until it is set, a client that is started is not there yet."""
        self.may_begin.set()
        self.pairing_of: str | None = None
        self.pairing_error = ""
        self._ended = threading.Event()
        self._clients: dict[bytes, _Running] = {}
        self._stopped: set[bytes] = set()
        self._away: deque[tuple[int, bytes]] = deque()
        self._is_reachable = True
        self._ids = count(1)
        self._lock = threading.RLock()
        self._threads: set[threading.Thread] = set()

    # Its life ---------------------------------------------------------------------------------------------------------

    async def start(self) -> Seam:
        self._listening = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        self.proxy_url = f"http://127.0.0.1:{self._listening.sockets[0].getsockname()[1]}"
        self._library = _client()
        self._real, self._library.gocode = self._library.gocode, self
        return self

    async def stop(self) -> None:
        if self._ended.is_set():
            return
        self._ended.set()
        self._listening.close()
        for running in [*self._clients.values()]:
            running.reported.put(None)
        for thread in [*self._threads]:
            await asyncio.to_thread(thread.join, 5)
        self._library.gocode = self._real

    @property
    def is_connected(self) -> bool:
        return any(running.is_connected for running in self._clients.values())

    def link(self, folder: Path, *, lid: str = BOT["lid"], name: str = "Limpet", device: int = 7) -> None:
        """As if a phone had scanned a code."""
        row = (f"{BOT['phone']}:{device}@s.whatsapp.net", f"{lid}:{device}@lid" if lid else "", name)
        with closing(sqlite3.connect(prepare(folder))) as file, file:
            file.execute("CREATE TABLE IF NOT EXISTS whatsmeow_device (jid TEXT, lid TEXT, push_name TEXT)")
            file.execute("INSERT INTO whatsmeow_device VALUES (?, ?, ?)", row)

    def unlink(self, folder: Path) -> None:
        with closing(sqlite3.connect(prepare(folder))) as file, file:
            file.execute("DELETE FROM whatsmeow_device")

    # What is said -----------------------------------------------------------------------------------------------------

    def report(self, kind: str, said: Any) -> None:
        """An event, to every client that is connected; what is said is held for one that is away."""
        number, data = _number(kind), said.SerializeToString()
        with self._lock:
            there = [running for running in self._clients.values() if running.is_connected]
            for running in there:
                running.report(number, data)
            if not there and kind in _HELD:
                self._away.append((number, data))

    def says(self, text: str, **fields: Any) -> str:
        """Ann writes; the message's id."""
        return self.reports_message({"conversation": text}, **fields)

    def reports_message(self, message: dict[str, Any] | None, **fields: Any) -> str:
        fields = {"id": f"3A{next(self._ids):016X}", "at": int(time.time()), **fields}
        self.report("Message", event(update(message, **fields)))
        return str(fields["id"])

    def edits(self, message: str, text: str) -> None:
        """Ann changes what she said."""
        key = {"fromMe": True, "ID": message, "remoteJID": f"{BOT['phone']}@s.whatsapp.net"}
        change = {"key": key, "type": "MESSAGE_EDIT", "editedMessage": {"conversation": text}}
        self.reports_message({"protocolMessage": change})

    def takes_back(self, message: str, chat: str) -> None:
        """A message of the account is deleted, by the account's phone."""
        key = {"fromMe": True, "ID": message, "remoteJID": chat}
        own = f"{BOT['lid']}:0@lid"
        self.sent[:] = [sent for sent in self.sent if sent.id != message]
        self.reports_message({"protocolMessage": {"key": key, "type": "REVOKE"}}, sender=own, from_me=True, chat=chat)

    def file(self, data: bytes, name: str = "report.bin", caption: str = "") -> dict[str, Any]:
        """A document that somebody sent, as a message in JSON."""
        from base64 import b64encode

        key = hashlib.sha256(data + name.encode()).digest()
        self.files[key] = data
        own = {
            "URL": "https://mmg.whatsapp.net/x",
            "directPath": "/x",
            "mediaKey": b64encode(key).decode(),
            "fileSHA256": b64encode(hashlib.sha256(data).digest()).decode(),
            "fileEncSHA256": b64encode(bytes(32)).decode(),
            "fileLength": len(data),
            "mimetype": "application/octet-stream",
            "fileName": name,
        }
        return {"documentMessage": own | ({"caption": caption} if caption else {})}

    def all_reported(self, _: str = "") -> None:
        """Returns once every client has taken what it was told; not for the event loop."""
        for running in [*self._clients.values()]:
            running.reported.join()

    # The network ------------------------------------------------------------------------------------------------------

    def vanish(self) -> None:
        with self._lock:
            self._is_reachable = False
            for running in self._clients.values():
                running.is_connected = False
                running.report(_number("Disconnected"), event({}, "Disconnected").SerializeToString())

    def reappear(self) -> None:
        """The library connects again by itself."""
        with self._lock:
            self._is_reachable = True
            for running in self._clients.values():
                self._connect(running)

    def _connect(self, running: _Running) -> None:
        with self._lock:
            running.is_connected = True
            running.report(_number("Connected"), event({"status": True}, "Connected").SerializeToString())
            total = len(self._away)
            while self._away:
                running.report(*self._away.popleft())
            done = event({"Count": total}, "OfflineSyncCompleted")
            running.report(_number("OfflineSyncCompleted"), done.SerializeToString())

    # What the library calls -------------------------------------------------------------------------------------------

    def Neonize(self, database: bytes, name: bytes, *given: Any) -> bytes:  # noqa: N802
        """Until it is stopped, as Go's; the arguments are those of its C function."""
        on_code, on_event, kinds = given[4], given[6], given[8]
        running = _Running(name, on_event, frozenset(bytes(kinds)))
        with self._lock:
            self.starts += 1
            self._threads.add(threading.current_thread())
        self.may_begin.wait(10)
        with self._lock:
            self._clients[name] = running
            running.is_stopped = name in self._stopped
        if not self._is_reachable:
            return REFUSED
        if not _is_linked(Path(database.decode())) and not self._pair(running, on_code, Path(database.decode())):
            return b""
        self._connect(running)
        while (said := running.reported.get()) is not None and not running.is_stopped:
            kind, data = said
            buffer = ctypes.create_string_buffer(data, len(data))
            running.callback(name, ctypes.addressof(buffer), len(data), kind)
            running.reported.task_done()
        return b""

    def _pair(self, running: _Running, on_code: Callable[..., None], database: Path) -> bool:
        for code in CODES:
            text = ctypes.create_string_buffer(code.encode())
            on_code(ctypes.addressof(text), ctypes.addressof(text))
        while not self.scanned.wait(_WAIT):
            if self._ended.is_set() or running.name not in self._clients:
                return False
        self.link(database.parent)
        status = {"ID": {"User": BOT["phone"], "Server": "s.whatsapp.net"}, "Status": "SUCCESS"}
        running.report(_number("PairStatus"), event(status, "PairStatus").SerializeToString())
        return True

    def Stop(self, name: bytes) -> bytes:  # noqa: N802
        """What it still holds is lost. One that is not there yet begins all the same, and nobody hears it."""
        with self._lock:
            running = self._clients.pop(name, None)
            self._stopped.add(name)
        if running is not None:
            running.is_connected, running.is_stopped = False, True
            running.reported.put(None)
        return b""

    def Disconnect(self, name: bytes) -> None:  # noqa: N802
        self._there(name).is_connected = False

    def SendMessage(self, name: bytes, to: bytes, _: int, body: bytes, __: int) -> bytes:  # noqa: N802
        running, library = self._there(name), load()
        fault = self.faults.popleft() if self.faults else Fault()
        if not running.is_connected:
            fault = Fault(NOT_CONNECTED)
        if fault.stalls:
            self.stalled.set()
            self._ended.wait()
        message = f"3EB0{next(self._ids):016X}"
        if fault.meanwhile is not None:
            fault.meanwhile(message)
        if fault.error and not fault.after:
            return _answer("SendMessageReturnFunction", {"Error": fault.error})
        jid = library.events.JID.FromString(to)
        self._show(message, f"{jid.User}@{jid.Server}", library.bodies.Message.FromString(body))
        if fault.error:
            return _answer("SendMessageReturnFunction", {"Error": fault.error})
        return _answer("SendMessageReturnFunction", {"SendResponse": {"ID": message, "Timestamp": int(time.time())}})

    def _show(self, message: str, chat: str, body: Any) -> None:
        change = body.editedMessage.message.protocolMessage if body.HasField("editedMessage") else body.protocolMessage
        if body.HasField("reactionMessage"):
            self.reactions.append((body.reactionMessage.key.ID, body.reactionMessage.text))
        elif body.HasField("editedMessage"):
            for sent in self.sent:
                if sent.id == change.key.ID:
                    sent.body, sent.edits = change.editedMessage, sent.edits + 1
        elif body.HasField("protocolMessage"):
            self.sent[:] = [sent for sent in self.sent if sent.id != change.key.ID]
        else:
            self.sent.append(Sent(message, chat, body))

    def SendChatPresence(self, name: bytes, to: bytes, *_: int) -> bytes:  # noqa: N802
        running = self._there(name)
        if not running.is_connected:
            return NOT_CONNECTED.encode()
        self.composed.append(_called(to))
        return b""

    def MarkRead(self, name: bytes, ids: bytes, _: int, chat: bytes, __: int, author: bytes, *___: Any) -> bytes:  # noqa: N802
        self._there(name)
        self.read.append((_called(chat), _called(author), tuple(ids.decode().split())))
        return b""

    def LeaveGroup(self, name: bytes, group: bytes, _: int) -> bytes:  # noqa: N802
        self._there(name)
        self.left.append(_called(group))
        return b""

    def Upload(self, name: bytes, data: bytes, _: int, kind: int) -> bytes:  # noqa: N802
        from base64 import b64encode

        if not self._there(name).is_connected:
            return _answer("UploadReturnFunction", {"Error": "failed to refresh media connections: " + NOT_CONNECTED})
        key = hashlib.sha256(data + bytes([kind])).digest()
        self.files[key] = data
        response = {"MediaKey": b64encode(key).decode(), "FileLength": len(data), "url": "https://mmg.whatsapp.net/x"}
        return _answer("UploadReturnFunction", {"UploadResponse": response})

    def DownloadAny(self, name: bytes, body: bytes, _: int) -> bytes:  # noqa: N802
        self._there(name)
        message = load().bodies.Message.FromString(body)
        (_, own), *_rest = message.ListFields()
        found = self.files.get(own.mediaKey)
        function = load().events.DownloadReturnFunction
        if found is None:
            return bytes(function(Error="download failed with status code 410").SerializeToString())
        return bytes(function(Binary=found).SerializeToString())

    def GetPNFromLID(self, name: bytes, lid: bytes, _: int) -> bytes:  # noqa: N802
        self._there(name)
        return _found(self.phones.get(_called(lid).partition("@")[0]), "s.whatsapp.net")

    def GetLIDFromPN(self, name: bytes, phone: bytes, _: int) -> bytes:  # noqa: N802
        self._there(name)
        lids = {number: lid for lid, number in self.phones.items()}
        return _found(lids.get(_called(phone).partition("@")[0]), "lid")

    def PairPhone(self, name: bytes, params: bytes, _: int) -> bytes:  # noqa: N802
        self._there(name)
        self.pairing_of = load().events.PairPhoneParams.FromString(params).phone
        return _answer("PairPhoneReturnFunction", {"Code": PAIRING_CODE, "Error": self.pairing_error})

    def _there(self, name: bytes) -> _Running:
        running = self._clients.get(name)
        if running is None:
            self.crashes.append(f"{name.decode()} was called and is not there")
            raise AssertionError(self.crashes[-1])
        return running


def ann() -> str:
    """Her direct chat, as its address is called."""
    return f"{ANN['lid']}@lid"


def _client() -> Any:
    """The library's module, in which its Go side is a name like any other."""
    return load().client


def _number(kind: str) -> int:
    library = load()
    return int(library.kinds.EVENT_TO_INT[getattr(library.events, kind)])


def _called(jid: bytes) -> str:
    found = load().events.JID.FromString(jid)
    return f"{found.User}@{found.Server}"


def _answer(kind: str, content: dict[str, Any]) -> bytes:
    return bytes(event(content, kind).SerializeToString())


def _found(user: str | None, server: str) -> bytes:
    if user is None:
        return _answer("GetJIDFromStoreReturnFunction", {"Error": "not known"})
    return _answer("GetJIDFromStoreReturnFunction", {"Jid": {"User": user, "Server": server}})


def _is_linked(database: Path) -> bool:
    with closing(sqlite3.connect(database)) as file:
        try:
            return file.execute("SELECT 1 FROM whatsmeow_device").fetchone() is not None
        except sqlite3.OperationalError:
            return False
