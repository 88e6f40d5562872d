"""What the memory hands back: plain frozen values, the same whether an index, a keyword index or a scan made them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Literal, TypeAlias

Mode: TypeAlias = Literal["hybrid", "keyword", "scan"]
"""How a search was made: both legs; words only; words only and without an index, over the Markdown itself."""

Kind: TypeAlias = Literal["append", "add", "update", "delete"]
"""What a write was: a note of today, lines at the end of a file, lines that gave way to others, lines taken out."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One find: ``text`` is a literal run of the file, as long as the settings let it be, of lines ``start_line`` to
    ``end_line``.

    Lines count from 1 and both ends are included. Scores are 0 to 1; a leg's score is None where that leg did not
    find it. ``score`` is after time decay. ``day`` is the day a daily note is about, None for a curated file.
    """

    path: str
    start_line: int
    end_line: int
    text: str
    score: float
    keyword_score: float | None
    vector_score: float | None
    trail: tuple[str, ...]
    day: date | None

    @property
    def citation(self) -> str:
        return _citation(self.path, self.start_line, self.end_line)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """``hits`` are best first; ``warnings`` say, one sentence each, why the search was less than it could be."""

    hits: tuple[Hit, ...]
    mode: Mode
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines ``start`` to ``end`` of ``total``. ``note`` says what a reader has to know ("there is no such file")."""

    path: str
    start: int
    end: int
    total: int
    text: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Written:
    """Where a note went. ``text`` is what it says: the words as given, but for ``withheld`` secrets taken out."""

    path: str
    line_start: int
    line_end: int
    text: str
    withheld: int = 0

    @property
    def citation(self) -> str:
        return _citation(self.path, self.line_start, self.line_end)


@dataclass(frozen=True, slots=True)
class Changed:
    """Whole lines that gave way to others. ``withheld`` secrets were taken out of what was ``added``.

    Lines count from 1. Where lines were taken out, ``added`` is "" and ``line_end`` is one less than ``line_start``,
    where they stood.
    """

    path: str
    line_start: int
    line_end: int
    removed: str
    added: str
    withheld: int = 0

    @property
    def citation(self) -> str:
        return _citation(self.path, self.line_start, max(self.line_start, self.line_end))


@dataclass(frozen=True, slots=True)
class Change:
    """One write of the past: the lines it ``removed`` and ``added``, and ``by`` whom, as the caller said.

    ``edited``: it was to be taken back, but a person had changed these lines, so they were left alone.
    """

    at: datetime
    kind: Kind
    path: str
    removed: str
    added: str
    by: str | None = None
    taken_back: bool = False
    taken_back_by: str | None = None
    edited: bool = False


@dataclass(frozen=True, slots=True)
class Undone:
    """The last write and what became of it. ``edited``: a person changed these lines since, so they were left alone.

    ``text`` is what the write had added and is gone now, ``removed`` what it had taken out and is there again.
    ``reason`` says in one sentence why nothing was taken back, "" where it was.
    """

    path: str
    text: str
    edited: bool = False
    kind: Kind = "append"
    removed: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Listed:
    """A file of the memory: its size in bytes, when it was saved last, the day it is about (None for a curated one)."""

    path: str
    size: int
    saved: datetime
    day: date | None


@dataclass(frozen=True, slots=True)
class SyncReport:
    """Files that were added, changed, removed or left alone, and how many pieces of text were embedded."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    embedded: int = 0


@dataclass(frozen=True, slots=True)
class MemoryStatus:
    """``units`` are the notes that are ranked (a bullet, a line, a passage), cut out of ``chunks``.

    ``vectors`` counts the units that are found by meaning too, ``waiting`` those that will be. ``embedder`` is the id
    of the one in use, or "none"; ``last_sync`` is None before the first; ``repairs`` counts the damaged indexes that
    were made anew since the memory was opened.
    """

    files: int
    chunks: int
    units: int
    vectors: int
    waiting: int
    mode: Mode
    embedder: str
    index_path: Path
    index_bytes: int
    warnings: tuple[str, ...]
    last_sync: datetime | None
    repairs: int


def _citation(path: str, first: int, last: int) -> str:
    return f"{path}#L{first}" if first == last else f"{path}#L{first}-L{last}"
