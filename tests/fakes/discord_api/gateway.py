"""The gateway's sessions: logins, heartbeats, and what each session was sent, for it to be resumed."""

from __future__ import annotations

import asyncio
import json
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

from tests.fakes.discord_api.checks import Json
from tests.fakes.discord_api.rest import Rest, roles_of
from tests.fakes.discord_api.world import ANN, BOT, PRIVATE_THREAD, PUBLIC_THREAD, Guild

_GUILDS, _MESSAGES, _REACTIONS, _DIRECT, _DIRECT_REACTIONS, _CONTENT = 1, 1 << 9, 1 << 10, 1 << 12, 1 << 13, 1 << 15
_INTENTS = (1 << 26) - 1

_NOTHING = (
    "icon splash discovery_splash afk_channel_id application_id system_channel_id banner rules_channel_id "
    "vanity_url_code description public_updates_channel_id"
)
_LISTS = "emojis features stickers voice_states presences stage_instances guild_scheduled_events soundboard_sounds"
_NUMBERS = (
    "verification_level default_message_notifications explicit_content_filter mfa_level system_channel_flags "
    "premium_tier nsfw_level"
)
"""Fields of a server that are of no interest here, and that the library wants."""


@dataclass(slots=True)
class _Session:
    id: str
    intents: int
    sent: list[Json] = field(default_factory=list)
    socket: _Socket | None = None


class _Socket:
    """One connection: frames go out in order, as text or as a zlib stream."""

    def __init__(self, socket: web.WebSocketResponse, *, compress: bool) -> None:
        self.socket = socket
        self.session: _Session | None = None
        self._stream = zlib.compressobj() if compress else None
        self._frames: asyncio.Queue[Json | int] = asyncio.Queue()
        self._writer = asyncio.create_task(self._write())

    def send(self, frame: Json) -> None:
        self._frames.put_nowait(frame)

    def close(self, code: int) -> None:
        """After what was sent so far."""
        self._frames.put_nowait(code)

    async def _write(self) -> None:
        with suppress(ConnectionError):
            while True:
                frame = await self._frames.get()
                if isinstance(frame, int):
                    await self.socket.close(code=frame)
                    return
                text = json.dumps(frame)
                if self._stream is None:
                    await self.socket.send_str(text)
                else:
                    await self.socket.send_bytes(
                        self._stream.compress(text.encode()) + self._stream.flush(zlib.Z_SYNC_FLUSH)
                    )

    async def end(self) -> None:
        self._writer.cancel()
        await asyncio.wait([self._writer])


class Gateway(Rest):
    """``logins`` are the (IDENTIFY or RESUME, its data) that came, in order."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self.token = token
        self.revoked = False
        self.forbids_content = False
        """The Message Content Intent is switched off."""
        self.heartbeat_ms = 41_250
        self.deaf = False
        """Heartbeats are not answered."""
        self.resume_url = ""
        """Where sessions are to be resumed, "" for here."""
        self.logins: list[tuple[str, Json]] = []
        self.refuses: list[int] = []
        """Close codes that the next logins meet, whatever they say."""
        self._sessions: dict[str, _Session] = {}
        self._sockets: set[_Socket] = set()

    # What a test does -------------------------------------------------------------------------------------------------

    def dispatch(self, kind: str, data: Json) -> None:
        """Send an event to every session that asked for its kind, now or when it is resumed."""
        for session in self._sessions.values():
            if session.intents & _wanted(kind, data):
                self._send(session, kind, data)
        self.change()

    def cut(self, code: int = 4000) -> None:
        """Close every connection; sessions can be resumed."""
        for socket in self._sockets:
            socket.close(code)
            if socket.session:
                socket.session.socket = None

    def ask_to_reconnect(self) -> None:
        for socket in self._sockets:
            socket.send({"op": 7, "d": None})
            if socket.session:
                socket.session.socket = None

    def invalidate(self, *, resumable: bool = False) -> None:
        """Tell every connection that its session is no more."""
        for socket in self._sockets:
            socket.send({"op": 9, "d": resumable})
        if not resumable:
            self.forget()

    def forget(self) -> None:
        """No session can be resumed any more, as after a time."""
        self._sessions.clear()

    @property
    def is_listened_to(self) -> bool:
        return any(socket.session for socket in self._sockets)

    async def wait_login(self, number: int = 1) -> None:
        await self.until(lambda: len(self.logins) >= number and self.is_listened_to)

    # The socket -------------------------------------------------------------------------------------------------------

    async def listen(self, request: web.Request) -> web.WebSocketResponse:
        plain = web.WebSocketResponse(heartbeat=None)
        await plain.prepare(request)
        socket = _Socket(plain, compress=request.query.get("compress") == "zlib-stream")
        self._sockets.add(socket)
        socket.send({"op": 10, "d": {"heartbeat_interval": self.heartbeat_ms}, "s": None, "t": None})
        try:
            async for frame in plain:
                if frame.type is WSMsgType.TEXT:
                    self._take(socket, json.loads(frame.data))
        finally:
            self._sockets.discard(socket)
            if socket.session and socket.session.socket is socket:
                socket.session.socket = None
            await socket.end()
        return plain

    def _take(self, socket: _Socket, frame: Json) -> None:
        match frame["op"]:
            case 1 if not self.deaf:
                socket.send({"op": 11})
            case 2:
                self._identify(socket, frame["d"])
            case 6:
                self._resume(socket, frame["d"])
        self.change()

    def _identify(self, socket: _Socket, data: Json) -> None:
        self.logins.append(("IDENTIFY", data))
        if code := self._refusal(data):
            return socket.close(code)
        session = _Session(f"session-{self.new_id()}", data["intents"], socket=socket)
        self._sessions[session.id] = socket.session = session
        guilds = [{"id": str(guild), "unavailable": True} for guild in self.guilds]
        ready: Json = {"v": 10, "user": BOT.json(), "guilds": guilds, "session_id": session.id, "shard": [0, 1]}
        resume_url = self.resume_url or f"{self.url.replace('http', 'ws')}/gw"
        ready |= {"resume_gateway_url": resume_url, "private_channels": []}
        self._send(session, "READY", ready | {"application": {"id": str(BOT.id), "flags": self.application_flags}})
        for guild in self.guilds.values():
            self._send(session, "GUILD_CREATE", self.guild_json(guild) | {"unavailable": False})
        return None

    def _refusal(self, data: Json) -> int | None:
        if self.refuses:
            return self.refuses.pop(0)
        if data["token"] != self.token or self.revoked:
            return 4004
        if data["intents"] & ~_INTENTS:
            return 4013
        return 4014 if data["intents"] & _CONTENT and self.forbids_content else None

    def _resume(self, socket: _Socket, data: Json) -> None:
        self.logins.append(("RESUME", data))
        if self.refuses or data["token"] != self.token or self.revoked:
            return socket.close(self.refuses.pop(0) if self.refuses else 4004)
        session = self._sessions.get(data["session_id"])
        if session is None:
            return socket.send({"op": 9, "d": False})
        if data["seq"] > len(session.sent):
            return socket.close(4007)
        session.socket, socket.session = socket, session
        for frame in session.sent[data["seq"] :]:
            socket.send(frame)
        self._send(session, "RESUMED", {})
        return None

    def _send(self, session: _Session, kind: str, data: Json) -> None:
        frame = {"op": 0, "t": kind, "s": len(session.sent) + 1, "d": json.loads(json.dumps(data))}
        session.sent.append(frame)
        if session.socket is not None:
            session.socket.send(frame)

    def guild_json(self, guild: Guild) -> Json:
        """A server as its GUILD_CREATE holds it; only the bot among its members, as for a bot without that intent."""
        held = [one for one in self.channels.values() if one.guild is guild and not one.is_hidden]
        threads = [one.json() for one in held if one.type in (PUBLIC_THREAD, PRIVATE_THREAD)]
        channels = [one.json() for one in held if one.type not in (PUBLIC_THREAD, PRIVATE_THREAD)]
        nothing: dict[str, Any] = dict.fromkeys(_NOTHING.split())
        lists: dict[str, list[Json]] = {name: [] for name in _LISTS.split()}
        numbers = dict.fromkeys(_NUMBERS.split(), 0)
        known: Json = {"id": str(guild.id), "name": guild.name, "owner_id": str(ANN.id), "roles": roles_of(guild)}
        known |= {"members": [self.member(guild, BOT, whole=True)], "channels": channels, "threads": threads}
        known |= {"member_count": len(guild.members), "large": False, "joined_at": "2024-01-01T00:00:00+00:00"}
        known |= {"preferred_locale": "en-US", "afk_timeout": 60, "region": "", "max_members": 1000}
        return nothing | lists | numbers | known | {"premium_progress_bar_enabled": False}


def _wanted(kind: str, data: Json) -> int:
    """The intent that an event comes with."""
    on_server = "guild_id" in data
    if kind.startswith("MESSAGE_REACTION"):
        return _REACTIONS if on_server else _DIRECT_REACTIONS
    if kind.startswith("MESSAGE_"):
        return _MESSAGES if on_server else _DIRECT
    return ~0 if kind == "INTERACTION_CREATE" else _GUILDS
