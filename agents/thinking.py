"""Parts the reasoning that some models write into their answer as tags from the answer itself.

Only a block at the very start counts (after white space, or after another such block): further down, and in a code
block, ``<think>`` is text that a person asked for. A block that is never closed is reasoning to its end. Knows no
provider.
"""

from __future__ import annotations

import re

from agents.model import ReasoningDelta, TextDelta

_TAGS = ("think", "thinking", "thought", "reasoning")
_OPEN = re.compile(rf"\s*<({'|'.join(_TAGS)})\s*(/?)>", re.IGNORECASE)
_BEGUN = re.compile(r"\s*(?:<([a-z]*)(\s*/?))?", re.IGNORECASE)


def _may_become_tag(text: str) -> bool:
    """Whether ``text`` could still grow into an opening tag, so that nothing of it may be shown yet."""
    begun = _BEGUN.fullmatch(text)
    if begun is None:
        return False
    name = (begun[1] or "").lower()
    return name in _TAGS if begun[2] else any(tag.startswith(name) for tag in _TAGS)


class ThinkFilter:
    """Takes an answer piece by piece, of any size, and gives it back as text and reasoning."""

    def __init__(self) -> None:
        self._held = ""
        self._at_start = True
        self._thought = False
        self._closing = ""
        """The tag that ends the block we are in; "" outside of one."""

    def feed(self, piece: str) -> list[TextDelta | ReasoningDelta]:
        if not (self._at_start or self._closing):
            return [TextDelta(piece)] if piece else []
        self._held += piece
        deltas: list[TextDelta | ReasoningDelta] = []
        while self._closing or self._at_start:
            if not (self._think(deltas) if self._closing else self._start(deltas)):
                break
        return deltas

    def end(self) -> list[TextDelta | ReasoningDelta]:
        """What was held back because it might have become a tag."""
        held, self._held = self._held, ""
        if self._closing:
            return [ReasoningDelta(held)] if held else []
        if self._thought and not held.strip():
            return []
        return [TextDelta(held)] if held else []

    def _start(self, deltas: list[TextDelta | ReasoningDelta]) -> bool:
        """Look for an opening tag; true when there is more to look at."""
        opened = _OPEN.match(self._held)
        if opened:
            self._held = self._held[opened.end() :]
            self._thought = True
            self._closing = "" if opened[2] else f"</{opened[1].lower()}>"
            return True
        if _may_become_tag(self._held):
            return False
        text = self._held.lstrip() if self._thought else self._held
        self._held, self._at_start = "", False
        deltas.append(TextDelta(text))
        return False

    def _think(self, deltas: list[TextDelta | ReasoningDelta]) -> bool:
        """Look for the closing tag; true when it was found."""
        at = self._held.lower().find(self._closing)
        if at >= 0:
            reasoning, self._held = self._held[:at], self._held[at + len(self._closing) :]
            self._closing = ""
        else:
            keep = _overlap(self._held.lower(), self._closing)
            cut = len(self._held) - keep
            reasoning, self._held = self._held[:cut], self._held[cut:]
        if reasoning:
            deltas.append(ReasoningDelta(reasoning))
        return at >= 0


def _overlap(text: str, tag: str) -> int:
    """How many characters at the end of ``text`` are the beginning of ``tag``."""
    return next((n for n in range(min(len(text), len(tag) - 1), 0, -1) if tag.startswith(text[-n:])), 0)
