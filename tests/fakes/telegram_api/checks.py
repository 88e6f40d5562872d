"""What the real server refuses in texts, formatting and buttons, in its own words."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

TEXT_LIMIT = 4096
CAPTION_LIMIT = 1024
"""UTF-16 code units."""

_ENTITY_TYPE = re.compile(
    "blockquote|bold|bot_command|cashtag|code|custom_emoji|date_time|email|expandable_blockquote|hashtag|italic|"
    "mention|phone_number|pre|spoiler|strikethrough|text_link|text_mention|underline|url"
)
_COMMAND = re.compile(r"(?<!\S)/\w{1,32}(?:@\w+)?")
_MENTION = re.compile(r"(?<![\w`])@\w{4,32}\b")

_REACTIONS = (
    *"👍👎❤🔥🥰👏😁🤔🤯😱🤬😢🎉🤩🤮💩🙏👌🕊🤡🥱🥴😍🐳🌚🌭💯🤣⚡🍌🏆💔🤨😐🍓🍾💋🖕😈😴😭🤓👻👀🎃🙈😇😨🤝✍",
    *"🤗🫡🎅🎄☃💅🤪🗿🆒💘🙉🦄😘💊🙊😎👾🤷😡",
    *("❤️\u200d🔥", "👨\u200d💻", "🤷\u200d♂️", "🤷\u200d♀️"),
)


class RefusalError(Exception):
    """``parameters`` go into the answer as they are."""

    def __init__(self, status: int, description: str, **parameters: object) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.parameters = parameters


def bad(description: str) -> RefusalError:
    return RefusalError(400, f"Bad Request: {description}")


def units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def integer(value: object) -> int | None:
    return int(value) if isinstance(value, int | str) and str(value).lstrip("-").isdecimal() else None


def text_of(parameters: Json, *, empty: bool = False) -> tuple[str, list[Json]]:
    """The text of a message and its entities."""
    text = str(parameters.get("text", ""))
    if not text.strip() and not empty:
        raise bad("message text is empty")
    if units(text) > TEXT_LIMIT:
        raise bad("message is too long")
    entities: list[Json] = parameters.get("entities", [])
    check_entities(text, entities)
    return text, entities


def caption_of(parameters: Json) -> tuple[str, list[Json]]:
    """The text that goes with a file and its entities."""
    text = str(parameters.get("caption", ""))
    if units(text) > CAPTION_LIMIT:
        raise bad("message caption is too long")
    entities: list[Json] = parameters.get("caption_entities", [])
    check_entities(text, entities)
    return text, entities


def check_entities(text: str, entities: list[Json]) -> None:
    """Refuse unknown kinds, and ranges that leave the text, cut a character or cross."""
    bounds = {0, *accumulate(units(char) for char in text)}
    ends: list[int] = []
    for entity in sorted(entities, key=lambda e: (e["offset"], -e["length"])):
        start, end = entity["offset"], entity["offset"] + entity["length"]
        if not _ENTITY_TYPE.fullmatch(entity["type"]):
            raise bad("can't parse MessageEntity: Unsupported type specified")
        if start < 0 or entity["length"] <= 0:
            raise bad(f"receive an entity with incorrect offset {start}")
        ends = [outer for outer in ends if outer > start]
        if end > units(text) or (ends and end > ends[-1]):
            place = f"beginning at UTF-16 offset {start} ends after the end of the text at UTF-16 offset {end}"
            raise bad(f"entity {place}")
        if not {start, end} <= bounds:
            raise bad("entity begins in a middle of a UTF-16 symbol at byte offset 0")
        if entity["type"] == "text_link" and "." not in entity["url"].partition("://")[2].partition("/")[0]:
            raise bad(f"entity URL '{entity['url']}' is invalid: Wrong HTTP URL")
        ends.append(end)


def detected(text: str) -> list[Json]:
    """The commands and mentions that the real server marks by itself."""
    found = [("bot_command", match) for match in _COMMAND.finditer(text)]
    found += [("mention", match) for match in _MENTION.finditer(text) if not match[0].endswith("@")]
    commands = [match.span() for kind, match in found if kind == "bot_command"]
    return [
        {"type": kind, "offset": units(text[: match.start()]), "length": units(match[0])}
        for kind, match in sorted(found, key=lambda mark: mark[1].start())
        if kind == "bot_command" or not any(start <= match.start() < end for start, end in commands)
    ]


def buttons_of(parameters: Json) -> list[list[Json]]:
    """The rows of an inline keyboard, each with one button at least."""
    rows: list[list[Json]] = parameters.get("reply_markup", {}).get("inline_keyboard", [])
    for button in (button for row in rows for button in row):
        if not button["text"].strip():
            raise bad("text buttons are unallowed in the inline keyboard")
        if not 1 <= len(button.get("callback_data", "").encode()) <= 64:
            raise bad("BUTTON_DATA_INVALID")
    return rows


def reaction_of(parameters: Json) -> str:
    """The emoji, "" for none."""
    reactions = parameters.get("reaction", [])
    if len(reactions) > 1:
        raise bad("REACTIONS_TOO_MANY")
    emoji = "".join(reaction["emoji"] for reaction in reactions)
    if emoji and emoji not in _REACTIONS:
        raise bad("REACTION_INVALID")
    return emoji
