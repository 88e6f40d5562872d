"""Whether a Telegram message speaks to us, by what Telegram marked in it.

A name in code, in an address or inside a longer name is no mention, and neither is one in forwarded words.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from telegram import MessageEntity

from adapters.telegram.content import entities, typed
from adapters.telegram.entities import Range, located

if TYPE_CHECKING:
    from telegram import Message

    from adapters.telegram.settings import BotIdentity

_SALUTATION = re.compile(r"[\s,:;]*")
_SPACES = re.compile(r"[ \t]*")


def mentions(said: Message, me: BotIdentity) -> list[Range]:
    """Where the text names us."""
    text = typed(said)
    ours = f"@{me.username}".lower()
    found = []
    for entity, (start, end) in located(text, entities(said)):
        named = text[start:end].lower()
        if (entity.type == MessageEntity.MENTION and named == ours) or (
            entity.type == MessageEntity.TEXT_MENTION and entity.user and str(entity.user.id) == me.id
        ):
            found.append((start, end))
        elif entity.type == MessageEntity.BOT_COMMAND and named.endswith(ours):
            found.append((end - len(ours), end))
    return found


def salutations(said: Message, found: list[Range]) -> list[Range]:
    """What to cut with the mentions ``found``: with "@bot, " before it, or in its middle, a text would read oddly."""
    text = typed(said)
    cuts = []
    for start, end in found:
        opens = not text[:start].strip()
        if text[start - 1 : start].isspace() or opens:
            rest = (_SALUTATION if opens else _SPACES).match(text, end)
            end = rest.end() if rest else end
        cuts.append((start, end))
    return cuts


def is_for_another(said: Message, me: BotIdentity) -> bool:
    """Whether the text opens with "/command@otherbot"."""
    text = typed(said)
    for entity, (start, end) in located(text, entities(said)):
        if entity.type == MessageEntity.BOT_COMMAND and start == 0:
            _, _, name = text[:end].partition("@")
            return bool(name) and name.lower() != me.username.lower()
    return False


def names_another(said: Message) -> bool:
    """Whether a bot is called by its name; all of these end in "bot"."""
    text = typed(said)
    named = [text[a:b] for entity, (a, b) in located(text, entities(said)) if entity.type == MessageEntity.MENTION]
    return any(name.lower().endswith("bot") for name in named)
