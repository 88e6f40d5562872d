"""What the account itself sent, and whom it may write to: in memory, and in the notebook for after a restart."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import ParamSpec

from adapters.message import Button
from adapters.whatsapp.choices import Choices
from adapters.whatsapp.echoes import Echoes
from adapters.whatsapp.notebook import Notebook

P = ParamSpec("P")

log = logging.getLogger(__name__)

_MOST = 2000
"""Messages whose age is remembered."""


class Ours:
    """For one account."""

    def __init__(self, notebook: Notebook) -> None:
        self.echoes = Echoes()
        self.choices = Choices()
        self._notebook = notebook
        self._sent: dict[tuple[str, str], datetime] = {}
        self._writers = notebook.writers()
        for sent in notebook.sent():
            self._remember(sent.chat, sent.message, sent.at, sent.buttons, sent.taken)

    async def sent(self, chat: str, message: str, buttons: Sequence[Button], at: datetime) -> None:
        """It was sent, or changed, with ``buttons`` below it. What it was before counts no more."""
        self._remember(chat, message, self._sent.get((chat, message), at), buttons)
        await self._keep(self._notebook.note_sent, chat, message, self._sent[chat, message], buttons)

    def sent_at(self, chat: str, message: str) -> datetime | None:
        """None for what is not known as an own message that is still there."""
        return self._sent.get((chat, message))

    async def taken(self, chat: str, message: str) -> None:
        """What it offered was chosen from by a bare number, if it was."""
        if by := self.choices.taken(chat, message):
            await self._keep(self._notebook.note_taken, chat, message, by)

    async def gone(self, chat: str, message: str) -> None:
        """It was taken back, by whomever."""
        if (at := self._sent.pop((chat, message), None)) is not None:
            self.choices.offer(chat, message, (), at)
            await self._keep(self._notebook.note_gone, chat, message)

    async def wrote(self, person: str) -> None:
        """They wrote to the account in a chat of their own."""
        if person not in self._writers:
            self._writers.add(person)
            await self._keep(self._notebook.note_writer, person)

    def has_written(self, ids: Sequence[str]) -> bool:
        """Whether the person who is called by any of ``ids`` did."""
        return not self._writers.isdisjoint(ids)

    def _remember(self, chat: str, message: str, at: datetime, buttons: Sequence[Button], taken: str = "") -> None:
        self._sent[chat, message] = at
        while len(self._sent) > _MOST:
            del self._sent[next(iter(self._sent))]
        self.echoes.sent(chat, message)
        self.choices.offer(chat, message, [buttons], at, taken)

    async def _keep(self, note: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """What happened has happened, whatever becomes of the note."""
        try:
            await asyncio.to_thread(note, *args, **kwargs)
        except sqlite3.Error as error:
            log.warning("what a restart of WhatsApp has to know could not be kept: %s", error)
