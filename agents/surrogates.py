"""Text that any file, database and wire takes: surrogate code units become characters.

JSON lets a provider write a character outside the basic plane as two escapes, and some providers cut their stream
between the two. A pair becomes its character again; a lone half becomes U+FFFD. Knows no provider.
"""

from __future__ import annotations


def mended(text: str) -> str:
    """``text`` with every surrogate pair joined and every lone surrogate replaced; ``encode("utf-8")`` never raises."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


class SurrogateMender:
    """The same for a text that arrives in pieces: a high surrogate at the end of one waits for the next."""

    def __init__(self) -> None:
        self._half = ""

    def feed(self, piece: str) -> str:
        text, self._half = self._half + piece, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return mended(text)

    def end(self) -> str:
        """What is still held: U+FFFD for a half whose other half never came, else nothing."""
        half, self._half = self._half, ""
        return mended(half)
