"""Lines that end between words: a whole text, and an answer that is still being written.

A terminal breaks a long line wherever it is full, in the middle of a word. Knows no terminal: a width is given, in
columns, and 0 means that nobody knows it, so that nothing is changed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_ADVISED = re.compile(r"`[^`\n]+` | (?<=:\ )limpet\ [^\n]*?(?=[.;)](?:\s|$)|$)", re.MULTILINE | re.VERBOSE)
"""A command, marked as one or after a colon: where a line can hold it, it is on one, to be copied."""

_NO_BREAK = "\ue000"


def wrapped(text: str, columns: int) -> str:
    """``text`` with lines of at most ``columns`` columns, broken between words; 0 leaves it as it is.

    A word that is longer than a line (a path, an address) stays whole: the terminal breaks it, and it copies as one.
    """
    if not columns or len(text) < columns // 2:  # a character has two columns at most
        return text
    from wcwidth import wcswidth

    def width(words: str) -> int:
        return max(wcswidth(words), 0)

    def glued(command: re.Match[str]) -> str:
        return command[0].replace(" ", _NO_BREAK) if width(command[0]) <= columns else command[0]

    kept = _ADVISED.sub(glued, text)
    lines: list[str] = []
    for line in kept.split("\n"):
        first, *rest = line.split(" ")
        lines.append(first)
        for word in rest:
            if width(lines[-1]) + 1 + width(word) <= columns:
                lines[-1] += f" {word}"
            else:
                lines.append(word)
    return "\n".join(lines).replace(_NO_BREAK, " ")


_FENCE = re.compile(r" {0,3}(```|~~~)")


class Flow:
    """An answer on its way to a screen of ``columns``: a word is held until it is known whether it fits the line.

    Code in a fence and rows of tables are left to the terminal: they are copied, and a break would be a part of them.
    So is a word that is longer than a line; what stands between backticks is one word.
    """

    def __init__(self) -> None:
        self._line = ""
        self._word = ""
        self._gap = ""
        self._column = 0
        self._in_code = False

    def feed(self, text: str, columns: int) -> str:
        """What can be shown now. The width may change from one call to the next."""
        if not columns:
            return self.rest(columns) + text
        return "".join(shown for ch in text for shown in self._taken(ch, columns))

    def rest(self, columns: int) -> str:
        """What was held, and nothing is held any more: the line ends here, whatever follows."""
        held = self._placed(columns) + self._gap
        self._line = self._gap = ""
        self._column = 0
        return held

    def _taken(self, ch: str, columns: int) -> Iterator[str]:
        if ch == "\n":
            if _FENCE.match(self._line):
                self._in_code = not self._in_code
            yield self._placed(columns)
            yield self._gap + ch
            self._line = self._gap = ""
            self._column = 0
            return
        self._line += ch
        if self._in_code or self._line.startswith("|"):
            yield ch
        elif ch.isspace() and not (self._word.count("`") % 2 and len(self._word) < columns):
            yield self._placed(columns)
            self._gap += ch
        else:
            if _stands_alone(ch):  # a line of such writing may end before any character
                yield self._placed(columns)
            self._word += ch

    def _placed(self, columns: int) -> str:
        """The word that is held, on this line or the next."""
        if not self._word:
            return ""
        from wcwidth import wcswidth

        gap, word = self._gap, self._word
        self._gap = self._word = ""
        wide = max(wcswidth(word), 0)
        if columns and self._column and self._column + len(gap) + wide > columns:
            self._column = wide
            return "\n" + word
        self._column += len(gap) + wide
        return gap + word


def _stands_alone(ch: str) -> bool:
    return not ch.isascii() and unicodedata.category(ch) == "Lo" and unicodedata.east_asian_width(ch) in "WF"
