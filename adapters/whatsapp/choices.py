"""Numbered answers in place of buttons, which WhatsApp shows to nobody who is no business.

A message with choices ends with a numbered list of them; whoever answers with a number, or with the words of one, has
pressed it. Pure: time is given.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from adapters.message import Button, Message, Pressed
from adapters.text import FormattedText

_MOST = 500
"""Messages with choices that are remembered."""

_GRACE = timedelta(seconds=5)
"""What clocks may differ by; WhatsApp tells whole seconds."""
_VALID = timedelta(hours=24)
"""How long a bare number is an answer. One that quotes the choices always is, while they are remembered."""

_NUMBER = re.compile(r"[#(]?(\d{1,2})[.)]?")
_KEYCAP = re.compile("\ufe0f?\u20e3")
_ASKS = "Answer with a number."


def with_choices(text: FormattedText, buttons: Sequence[Sequence[Button]]) -> FormattedText:
    """``text`` and below it what can be chosen; the same where there is nothing to choose."""
    labels = [button.label for row in buttons for button in row]
    if not labels:
        return text
    listed = "\n".join(f"{number}. {label}" for number, label in enumerate(labels, 1))
    above = f"{text.plain}\n\n" if text else ""
    return FormattedText(f"{above}{listed}\n\n{_ASKS}", text.spans if text else ())


@dataclass(slots=True)
class _Offer:
    message: str
    buttons: tuple[Button, ...]
    since: datetime
    taken: str = ""
    """The message that took one of them by a bare number: the next number is no answer to it."""


class Choices:
    """What one account offered, by chat and message."""

    def __init__(self) -> None:
        self._offers: dict[tuple[str, str], _Offer] = {}
        self._newest: dict[str, _Offer] = {}

    def offer(
        self, chat: str, message: str, buttons: Sequence[Sequence[Button]], now: datetime, taken: str = ""
    ) -> None:
        """Message ``message`` was sent with ``buttons``; without any, it offers nothing any more.

        ``taken`` is the message that chose from them by a bare number, "" for none.
        """
        offered = tuple(button for row in buttons for button in row)
        if (former := self._offers.pop((chat, message), None)) is not None and self._newest.get(chat) is former:
            del self._newest[chat]
        if not offered:
            return
        self._offers[chat, message] = self._newest[chat] = _Offer(message, offered, now, taken)
        while len(self._offers) > _MOST:
            (old_chat, _), old = next(iter(self._offers.items()))
            del self._offers[old_chat, old.message]
            if self._newest.get(old_chat) is old:
                del self._newest[old_chat]

    def taken(self, chat: str, message: str) -> str:
        """The message that chose from what ``message`` offers by a bare number; "" for none."""
        offer = self._offers.get((chat, message))
        return offer.taken if offer else ""

    def read(self, said: Message) -> Message | Pressed:
        """``said``, or what was pressed by it. In a group an answer quotes the choices, or calls us."""
        if said.attachments or said.forwarded_from is not None:
            return said
        quoted = self._offers.get((said.address.chat, said.reply_to or ""))
        offer = quoted or self._unquoted(said)
        button = _chosen(said.text, offer.buttons) if offer else None
        if offer is None or button is None:
            return said
        if quoted is None:
            offer.taken = said.id
        return Pressed(said.id, said.address, said.sender, offer.message, button.data, said.sent_at)

    def _unquoted(self, said: Message) -> _Offer | None:
        offer = self._newest.get(said.address.chat)
        is_to_us = said.address.kind == "direct" or said.mentions_me
        if offer is None or said.reply_to is not None or not is_to_us:
            return None
        if not -_GRACE < said.sent_at - offer.since <= _VALID:  # what was said before it is no answer to it
            return None
        return offer if offer.taken in ("", said.id) else None  # the same again is a replay


def _chosen(text: str, buttons: Sequence[Button]) -> Button | None:
    words = _folded(_KEYCAP.sub("", text))
    if (number := _NUMBER.fullmatch(words)) and 1 <= int(number[1]) <= len(buttons):
        return buttons[int(number[1]) - 1]
    named = [button for button in buttons if _folded(button.label) == words]
    return named[0] if len(named) == 1 else None


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).strip().rstrip("!").casefold()
