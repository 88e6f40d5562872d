"""From an answer to the parts that one channel takes. Knows no database and makes no platform call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from adapters.adapter import Adapter
from adapters.markdown import parse
from adapters.message import Address, File, Part
from adapters.split import split
from adapters.text import FormattedText, sanitize

MOST_PARTS = 8
"""Messages that one answer's text may fill. A longer one goes on in a file that holds the whole."""

REST = "(That is not all: the whole of it is in the file.)"

WHOLE = "answer.md"

_FAMILIES = {"image": "pictures", "video": "pictures", "audio": "audio", "document": "documents", "voice": "voice"}
"""What platforms show together in one album."""


@dataclass(frozen=True, slots=True)
class Enclosure:
    """A file that goes with an answer. ``caption`` is Markdown, "" for none."""

    file: File
    caption: str = ""


def parts_of(answer: str, address: Address, adapter: Adapter, reply_to: str | None = None) -> list[Part]:
    """The parts of ``answer`` (Markdown), in the order of sending; none when there is nothing to see.

    ``reply_to`` goes with the first part only. A channel without markup gets the Markdown as it was written.
    """
    limit = adapter.capabilities.text_limit
    text = _formatted(answer, adapter)
    pieces = split(text, limit, adapter.measure) if limit else [text]
    shown = [piece for piece in pieces if piece]
    return [Part(address, piece, reply_to if number == 0 else None) for number, piece in enumerate(shown)]


def bounded(parts: Sequence[Part], adapter: Adapter, whole: Callable[[], File]) -> list[Part]:
    """``parts``, or the first of them and the ``whole`` text as a file where they are too many."""
    if len(parts) <= MOST_PARTS or not adapter.capabilities.file_limit:
        return list(parts)
    return [*parts[: MOST_PARTS - 1], Part(parts[0].address, FormattedText(REST), files=(whole(),))]


def enclosing(enclosures: Iterable[Enclosure], address: Address, adapter: Adapter) -> list[Part]:
    """The parts that bring the files: what is alike and has no caption of its own comes together.

    A caption that is too long for one is a part ahead of its file.
    """
    parts: list[Part] = []
    most = adapter.capabilities.album
    for _, alike in groupby(enclosures, key=lambda one: _FAMILIES[one.file.kind]):
        album: list[Enclosure] = []
        for one in alike:
            if album and (one.caption or len(album) == most or one.file.kind == "voice"):
                parts += _album(album, address, adapter)
                album = []
            album.append(one)
        parts += _album(album, address, adapter)
    return parts


def _album(album: Sequence[Enclosure], address: Address, adapter: Adapter) -> list[Part]:
    files = tuple(one.file for one in album)
    caption = _formatted(album[0].caption, adapter)
    if adapter.measure(caption) <= adapter.capabilities.caption_limit:
        return [Part(address, caption, files=files)]
    return [*parts_of(album[0].caption, address, adapter), Part(address, FormattedText(""), files=files)]


def _formatted(text: str, adapter: Adapter) -> FormattedText:
    return parse(text) if adapter.capabilities.markup else FormattedText(sanitize(text))
