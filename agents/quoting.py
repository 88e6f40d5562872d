"""Foreign text in a prompt: quoted as data, with its source, inside a fence that the text can't close.

Notes, files and other people's words reach a model only through here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

_FENCE = re.compile(r"[<＜﹤](\s*[/／\s]*note\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Quotation:
    """Somebody's words that came with a question: a quoted or forwarded message. ``source`` says whose.

    ``below``: they follow the question, which speaks of them (what a pipe brought), instead of preceding it.
    """

    text: str
    source: str
    below: bool = False


def accompanied(words: str, came: Sequence[Quotation]) -> str:
    """A person's ``words`` between the quotations that came with them, each in its fence."""
    above = [quoted(quotation.text, quotation.source) for quotation in came if not quotation.below]
    below = [quoted(quotation.text, quotation.source) for quotation in came if quotation.below]
    return "\n\n".join([*above, words, *below])


def quoted(text: str, source: str) -> str:
    """``text`` between ``<note>`` tags; tags of that name inside it are disarmed."""
    disarmed = _FENCE.sub(r"‹\1", _visible(text))
    return f'<note source="{one_line(source, 200)}">\n{disarmed}\n</note>'


def _visible(text: str) -> str:
    """``text`` without what is not seen and could hide a tag or turn a line around (zero width, bidi, controls)."""
    if text.replace("\n", "").replace("\t", "").isprintable():  # as nearly all texts are
        return text
    return "".join(ch for ch in text if ch in "\n\t" or unicodedata.category(ch) not in ("Cc", "Cf"))


def one_line(text: str, most: int) -> str:
    """A name or title as it may stand in a prompt: one line, no quotes or tags, at most ``most`` characters."""
    flat = " ".join(_visible(text).split())
    flat = re.sub(r'[<>"`]', "'", flat)
    return flat if len(flat) <= most else flat[: most - 1] + "…"
