"""WhatsApp's half: what an event of the library is as an event, and the message that is made of a part."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from adapters.markdown import parse
from adapters.message import Address, Button, Part
from adapters.split import split
from adapters.text import FormattedText
from adapters.whatsapp import outbound
from adapters.whatsapp.identity import Identities, Jid
from adapters.whatsapp.inbound import Me, Reader
from tests.adapters.golden.pairs import Json, Way, plain
from tests.fakes.whatsapp_events import ANN, BOT, event

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)

ME = Me(frozenset({Jid(BOT["phone"], "s.whatsapp.net"), Jid(BOT["lid"], "lid")}), "Limpet", device=7)

_READERS = {"JoinedGroup": Reader.joined, "GroupInfoEvent": Reader.group_changed}


async def record(way: Way, given: dict[str, Json], folder: Path) -> Json:  # every recorder takes it
    if way == "in":
        return _read(given)
    from google.protobuf import json_format  # type: ignore[import-untyped]  # it has no types

    return [json_format.MessageToDict(body) for body in _bodies(given)]


def _read(given: dict[str, Json]) -> Json:
    """``given`` has an ``update``; ``kind`` names one that is no message, and ``known`` pairs of LID and number."""
    reader = Reader("main", ME, Identities(given.get("known", {}), given.get("met", ())), **given.get("settings", {}))
    kind = given.get("kind", "Message")
    said = event(given["update"], kind)
    events = _READERS[kind](reader, said, NOW) if kind in _READERS else reader.events_of(said, NOW)
    return plain(events) if len(events) > 1 else plain(events[0]) if events else None


def _bodies(given: dict[str, Json]) -> list[Any]:
    """``given`` has a ``markdown`` and may have ``reply_to``, ``question``, ``buttons``, a ``verb``, and the numbers of
    people that are ``known``, by the LID of each.
    """
    chat = Jid(ANN["lid"], "lid")
    if given.get("verb") == "erase":
        return [outbound.revoke_of(chat, "3EB0")]
    if given.get("verb") == "react":
        by = Jid.parse(given["by"]) if "by" in given else None
        return [outbound.reaction_of(given["emoji"], chat, "3A5", by, 1_796_040_000_000)]
    numbers = {phone: Jid(lid, "lid") for lid, phone in given.get("known", {}).items()}
    address = Address("whatsapp", "main", chat.id, "direct")
    buttons = tuple(tuple(Button(*button) for button in row) for row in given.get("buttons", []))
    pieces = split(parse(given["markdown"]), outbound.TEXT_LIMIT, outbound.measure)
    parts = [Part(address, piece) for piece in pieces or [FormattedText("")]]
    parts[0] = Part(address, parts[0].text, given.get("reply_to"), given.get("question", ""), buttons=buttons)
    if given.get("verb") == "edit":
        return [outbound.edit_of(outbound.text_of(part), chat, "3EB0", 1_796_040_000_000) for part in parts]
    found = []
    for part in parts:
        answered = outbound.Answered(part.reply_to, chat, part.question) if part.reply_to else None
        text, called = outbound.with_mentions(outbound.text_of(part), numbers.get)
        found.append(outbound.body_of(text, outbound.context_of(answered, called)))
    return found
