"""Telegram's half: what an update is as an event, and what the real library sends for a part."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from telegram import Update

from adapters.markdown import parse
from adapters.message import Address, Button, File, Part
from adapters.split import split
from adapters.telegram import BotIdentity, TelegramAdapter, TelegramSettings
from adapters.telegram.inbound import event_of
from adapters.text import FormattedText
from tests.adapters.golden.pairs import Json, Way, plain
from tests.adapters.telegram import samples
from tests.fakes.telegram_api import ANN, TOKEN, TelegramApi, Upload

ME = BotIdentity("123456789", "limpet_bot", "Limpet")
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)

_FILES = {
    ".png": samples.png(),
    ".jpg": samples.jpeg(),
    ".mp4": samples.MP4,
    ".ogg": samples.OPUS,
    ".mp3": samples.MP3,
    ".wav": samples.WAV,
    ".pdf": samples.PDF,
}


async def record(way: Way, given: dict[str, Json], folder: Path) -> Json:
    if way == "in":
        return plain(event_of(Update.de_json(given["update"]), ME, "main", NOW))
    async with TelegramApi() as api:
        await _send(api, given, folder)
        return [{method: _sent(parameters)} for method, parameters in api.calls]


async def _send(api: TelegramApi, given: dict[str, Json], folder: Path) -> None:
    """``given`` has a ``markdown`` and may have ``reply_to``, ``thread``, ``buttons``, ``files`` and a ``verb``."""
    api.message(ANN, text="hello")
    forum = api.group(topics=[12])
    thread = given.get("thread")
    place = str(forum.id) if thread else str(ANN.id)
    address = Address("telegram", "main", place, "group" if thread else "direct", thread=thread)
    buttons = tuple(tuple(Button(*button) for button in row) for row in given.get("buttons", []))
    files = tuple(_file(file, folder) for file in given.get("files", []))
    settings = TelegramSettings(token=SecretStr(TOKEN), base_url=api.url)
    adapter = TelegramAdapter("main", settings, sleep=lambda _: asyncio.sleep(0))
    try:
        pieces = split(parse(given["markdown"]), adapter.capabilities.text_limit, adapter.measure)
        parts = [Part(address, piece) for piece in pieces or [FormattedText("")]]
        parts[0] = Part(address, parts[0].text, given.get("reply_to"), files=files, buttons=buttons)
        for part in parts:
            match given.get("verb", "send"):
                case "edit":
                    before = Part(address, FormattedText("before"), files=files, buttons=buttons)
                    receipt = await adapter.send(before, "key")
                    api.calls.clear()
                    await adapter.edit(part, receipt.message_id or "")
                case "draft":
                    await adapter.draft(part, "turn-1")
                case _:
                    await adapter.send(part, "key")
    finally:
        await adapter.close()


def _file(file: dict[str, Any], folder: Path) -> File:
    path = folder / file["name"]
    path.write_bytes(_FILES[path.suffix])
    return File(file["kind"], str(path), file["name"])


def _sent(parameters: dict[str, Any]) -> Json:
    """Files by name, and the made-up names of parts of a request by the order in which they come."""
    attached = {name: f"part{number}" for number, name in enumerate(n for n in parameters if n.startswith("attached"))}

    def shown(value: Any) -> Json:
        if isinstance(value, Upload):
            return f"<{value.name}, {value.media_type}>"
        if isinstance(value, dict):
            return {key: shown(one) for key, one in value.items()}
        if isinstance(value, list):
            return [shown(one) for one in value]
        name = value.removeprefix("attach://") if isinstance(value, str) else ""
        return f"attach://{attached[name]}" if name in attached else value

    return {attached.get(name, name): shown(value) for name, value in parameters.items()}
