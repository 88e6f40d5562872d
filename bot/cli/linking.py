"""An account is linked by its person's phone: a code to photograph or to type is shown until the phone has taken it."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from adapters.linking import PairingCode, QrCode, Shown
from bot.cli import output
from bot.cli.proving import drafted
from bot.errors import BotError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from bot.config import Draft
    from bot.home import Home
    from bot.toml_positions import Key

_BORDER = 2
"""Modules around a QR code: phones read it with fewer than the four of the standard, and small terminals lack rows."""


def linked(home: Home, name: str, changes: Mapping[Key, Any], phone: str | None) -> tuple[Draft, Any]:
    """The checked settings, and whose the account is that was linked. Raises BotError where that came to nothing."""
    from adapters import registry
    from adapters.errors import AdapterError, Ambiguous

    draft = drafted(home, name, changes, {})
    section = draft.settings.channels[name]
    folder = home.channel(section.kind, name)
    with _screen(folder / "link.png") as screen, _alone():
        try:
            link = registry.link(section.kind, section.options, folder, phone=phone, show=screen.show)
            return draft, asyncio.run(link)
        except AdapterError as error:
            if error.may_retry or isinstance(error, Ambiguous):
                raise Unavailable(str(error), "nothing was saved; try again when the network is there") from error
            raise BotError(str(error)) from error


@contextmanager
def _screen(picture: Path) -> Iterator[_Screen]:
    """What a person looks at; no code is left on the disk."""
    screen = _Screen(picture)
    try:
        yield screen
    finally:
        picture.unlink(missing_ok=True)


@contextmanager
def _alone() -> Iterator[None]:
    """What libraries write by themselves meanwhile, past Python, is not seen: stdout is for the result."""
    if sys.stderr is not sys.__stderr__:  # somebody reads along within this process
        yield
        return
    seen, real = os.dup(1), os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    sys.stderr = os.fdopen(real, "w", buffering=1)
    try:
        yield
    finally:
        os.dup2(seen, 1)
        os.dup2(real, 2)
        sys.stderr.close()
        sys.stderr = sys.__stderr__
        os.close(seen)
        os.close(nowhere)


class _Screen:
    """Standard error, and a picture for those who can't see that: a terminal too small, a machine without one."""

    def __init__(self, picture: Path) -> None:
        self._picture = picture
        self._shown = 0

    def show(self, shown: Shown) -> None:
        """The first with its words, those that take its place without."""
        self._shown += 1
        match shown:
            case PairingCode(text, how):
                output.note(f"{how}\n\n    {text}\n")
            case QrCode(text, how):
                self._draw(text)
                again = "The code was renewed. " if self._shown > 1 else f"{how} "
                output.note(f"{again}As a picture: {self._picture}")

    def _draw(self, text: str) -> None:
        import segno

        code = segno.make(text, error="l", micro=False)
        if sys.stderr.isatty():
            code.terminal(sys.stderr, border=_BORDER, compact=True)
        self._picture.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._picture.with_suffix(".new")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            code.save(file, kind="png", scale=6, border=4)
        draft.replace(self._picture)
