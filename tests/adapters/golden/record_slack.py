"""Slack's half: what an envelope is as an event, and what the real library sends for a part."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from adapters.adapter import Offered
from adapters.markdown import parse
from adapters.message import Address, Button, File, Kind, Part
from adapters.slack import SlackAdapter, SlackSettings
from adapters.slack.client import Client
from adapters.slack.commands import Commands
from adapters.slack.directory import Directory
from adapters.slack.inbound import Reader
from adapters.slack.intake import kind_of
from adapters.slack.threads import Threads
from adapters.split import split
from adapters.text import FormattedText
from tests.adapters.golden.pairs import Json, Way, plain
from tests.fakes.slack_api import ANN, APP_TOKEN, BOB, OTHER_BOT, TOKEN, SlackApi

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
COMMANDS = Commands([Offered("help", "what I answer to"), Offered("memory", "what I noted", "today | search WORDS")])

_USERS = {"me": "", "ann": ANN.id, "bob": BOB.id, "bot": OTHER_BOT.id}


async def record(way: Way, given: dict[str, Json], folder: Path) -> Json:
    async with SlackApi() as api:
        _fill(api, given)
        if way == "in":
            return plain(await _read(api, given["update"], given.get("settings", {})))
        await _send(api, given, folder)
        return [{method: arguments} for method, arguments in api.calls]


def _fill(api: SlackApi, given: dict[str, Json]) -> None:
    """A channel, a private channel and a group chat, and what was said ``before``: chat, user, text and fields."""
    api.channel()
    api.add_chat("C0SECRET", "group", "secret")
    api.add_chat("G0ANNBOB", "mpim", "mpdm-ann--bob--limpet-1", members=(ANN, BOB))
    users = {**_USERS, "me": api.me.id}
    for message in given.get("before", []):
        said = {name: value for name, value in message.items() if name not in ("chat", "user", "text")}
        user = api.users[users[message["user"]]]
        api.message(
            message["text"], user=user, chat=api.chats[message["chat"]], thread=said.pop("thread_ts", None), **said
        )


async def _read(api: SlackApi, update: dict[str, Json], settings: dict[str, Any]) -> object:
    own = SlackSettings(token=SecretStr(TOKEN), app_token=SecretStr(APP_TOKEN), base_url=api.base_url, **settings)
    client = Client(own)
    try:
        me = await client.identity()
        directory = Directory(client, me.id)
        threads = Threads(client, directory, me, own.context_messages)
        reader = Reader("main", me, own, client, directory, threads, COMMANDS)
        return await reader.event_of(kind_of(update), update, NOW)
    finally:
        await client.close()


async def _send(api: SlackApi, given: dict[str, Json], folder: Path) -> None:
    """``given`` has a ``markdown``, and may have a ``kind`` of chat, a ``reply_to``, ``buttons`` and the like."""
    kind: Kind = given.get("kind", "direct")
    chat = {"direct": "D0ANN0001", "channel": "C0GARDEN", "group": "G0ANNBOB"}[kind]
    address = Address("slack", "main", chat, kind, space="T0GARDEN1", thread=given.get("thread"))
    buttons = tuple(tuple(Button(*button) for button in row) for row in given.get("buttons", []))
    files = tuple(_file(file, folder) for file in given.get("files", []))
    settings = SlackSettings(token=SecretStr(TOKEN), base_url=api.base_url)
    adapter = SlackAdapter("main", settings, sleep=lambda _: asyncio.sleep(0))
    try:
        pieces = split(parse(given["markdown"]), adapter.capabilities.text_limit, adapter.measure)
        parts = [Part(address, piece, given.get("reply_to")) for piece in pieces or [FormattedText("")]]
        parts[0] = Part(address, parts[0].text, given.get("reply_to"), files=files, buttons=buttons)
        for part in parts:
            if given.get("verb") == "edit":
                before = Part(address, FormattedText("before"), given.get("reply_to"))
                api.ts = lambda: "1796040000.000900"  # type: ignore[method-assign]  # the same each time
                receipt = await adapter.send(before, "key")
                api.calls.clear()
                await adapter.edit(part, receipt.message_id or "")
            else:
                await adapter.send(part, "turn-1/0")
    finally:
        await adapter.close()


def _file(file: dict[str, Any], folder: Path) -> File:
    path = folder / file["name"]
    path.write_bytes(b"content of a file")
    return File(file["kind"], str(path), file["name"])
