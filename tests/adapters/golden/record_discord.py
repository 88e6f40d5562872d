"""Discord's half: what a gateway event is as an event, and what the real library sends for a part."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from adapters.discord import DiscordAdapter, DiscordSettings
from adapters.discord.inbound import Reader, events_of
from adapters.discord.places import Place
from adapters.markdown import parse
from adapters.message import Address, Button, File, Part
from adapters.split import split
from adapters.text import FormattedText
from tests.adapters.golden.pairs import Json, Way, plain
from tests.adapters.telegram import samples
from tests.fakes.discord_api import BOT, TOKEN, DiscordApi
from tests.fakes.discord_api.rest import Call

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)

_FILES = {".png": samples.png(), ".mp4": samples.MP4, ".ogg": samples.OPUS, ".pdf": samples.PDF}
_LOOKS = ("/gateway/bot", "/applications/@me")


class _Names:
    """The names that the pairs use: a role of ours, another, and two channels."""

    def role(self, space: str | None, role: str) -> str:
        return {"901": "helpers", "902": "gardeners"}.get(role, "")

    def channel(self, channel: str) -> str:
        return {"301": "general", "302": "roses"}.get(channel, "")

    def my_roles(self, space: str | None) -> frozenset[str]:
        return frozenset({"901"} if space else ())


async def record(way: Way, given: dict[str, Json], folder: Path) -> Json:
    if way == "in":
        reader = Reader(str(BOT.id), "main", _Names(), **given.get("settings", {}))
        update = given["update"]
        place = Place(**({"chat": "555", "kind": "direct"} | given.get("place", {})))
        events = events_of(reader, update["t"], update["d"], place, NOW)
        return plain(events) if len(events) > 1 else plain(events[0]) if events else None
    async with DiscordApi() as api:
        await _send(api, given, folder)
        return [_shown(call) for call in api.calls if call.path not in _LOOKS]


async def _send(api: DiscordApi, given: dict[str, Json], folder: Path) -> None:
    """``given`` has a ``markdown`` and may have ``reply_to``, ``thread``, ``buttons``, ``files`` and a ``verb``."""
    address = Address("discord", "main", str(api.dm.id), "direct")
    if given.get("thread"):
        parent = api.channel(api.guild())
        api.channels[1000] = api.channels.pop(parent.id)
        parent.id = 1000
        api.says("what is it?", channel=parent, id=2000)
        address = Address("discord", "main", "2000", "channel", "1", "1000", "2000")
    buttons = tuple(tuple(Button(*button) for button in row) for row in given.get("buttons", []))
    files = tuple(_file(file, folder) for file in given.get("files", []))
    settings = DiscordSettings(token=SecretStr(TOKEN), base_url=api.root, auto_thread=bool(given.get("thread")))
    adapter = DiscordAdapter("main", settings, sleep=lambda _: asyncio.sleep(0))
    try:
        pieces = split(parse(given["markdown"]), adapter.capabilities.text_limit, adapter.measure)
        parts = [Part(address, piece) for piece in pieces or [FormattedText("")]]
        parts[0] = Part(address, parts[0].text, given.get("reply_to"), files=files, buttons=buttons)
        for number, part in enumerate(parts):
            if given.get("verb") == "edit":
                receipt = await adapter.send(
                    Part(address, FormattedText("before"), files=files, buttons=buttons), "key"
                )
                api.calls.clear()
                assert receipt.message_id
                api.sent[-1].id, api.messages[1] = 1, api.messages.pop(int(receipt.message_id))
                await adapter.edit(part, "1")
            else:
                await adapter.send(part, f"key/{number}")
    finally:
        await adapter.close()


def _file(file: dict[str, Any], folder: Path) -> File:
    path = folder / file["name"]
    path.write_bytes(_FILES[path.suffix])
    return File(file["kind"], str(path), file["name"])


def _shown(call: Call) -> Json:
    known: Json = {f"{call.method} {call.path}": call.body}
    return known | ({"files": {place: name for place, (name, _) in call.files.items()}} if call.files else {})
