"""From a question to scored pieces of text: through the index, or through the files where there is none.

Both legs look only into the areas they are given. Knows no scope's name, no file format and no order of hits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from heapq import nlargest
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from workspaces import files
from workspaces.memory import documents, query, ranking, scan
from workspaces.memory.embedder import EmbedderError
from workspaces.memory.index import Index, Passage, Postings

if TYPE_CHECKING:
    from workspaces.memory.encoder import Encoder
    from workspaces.memory.query import Term
    from workspaces.memory.settings import MemorySettings
    from workspaces.memory.store import Store

Found: TypeAlias = tuple[list[ranking.Scored], Mapping[int, Passage]]
"""Scored units, best first, and their texts."""


async def indexed(
    store: Store,
    encoder: Encoder | None,
    question: str,
    terms: Sequence[Term],
    areas: Collection[str],
    settings: MemorySettings,
) -> Found:
    """Through the index, by meaning too where it has vectors and the embedder works. Raises IndexUnavailable."""
    postings = await store.run(Index.postings, [term.match for term in terms], areas)
    keyword = _keyword_scores(postings, terms)
    best = nlargest(settings.candidates, keyword, key=lambda unit: (keyword[unit], -unit))
    vector = None
    has_vectors = await store.run(Index.has_vectors)
    if encoder and has_vectors:
        try:
            vector = await encoder.query(question[: query.LONGEST])
        except EmbedderError:  # kept by the encoder, which the engine asks for what went wrong
            vector = None
    cosines, passages = await store.run(_read, vector, best, areas, settings.candidates)
    scored = ranking.fused({unit: keyword[unit] for unit in passages if unit in keyword}, cosines, settings)
    return scored, passages


def scanned(root: Path, terms: Sequence[Term], areas: Collection[str], settings: MemorySettings) -> Found:
    """Through the files, by words only."""
    postings, passages = scan.search(_documents(root, settings), terms, areas)
    return ranking.fused(_keyword_scores(postings, terms), None, settings), passages


def scanned_latest(root: Path, areas: Collection[str], count: int, settings: MemorySettings) -> list[Passage]:
    """As ``Index.latest``, from the files."""
    _, passages = scan.search(_documents(root, settings), (), areas)
    order = sorted(passages.values(), key=lambda found: (found.start_line, found.start), reverse=True)
    order.sort(key=lambda found: (-(found.day.toordinal() if found.day else 0), found.path))
    return order[:count]


def _documents(root: Path, settings: MemorySettings) -> Iterator[documents.Document]:
    """Every memory file that can be read."""
    for path, _ in documents.found(root):
        with suppress(OSError):
            yield documents.document(path, files.decode((root / path).read_bytes()).text, settings)


def _keyword_scores(postings: Postings, terms: Sequence[Term]) -> dict[int, float]:
    return ranking.keyword_scores(postings.found, [term.weight for term in terms], postings.total)


def _read(
    index: Index, vector: bytes | None, best: Sequence[int], areas: Collection[str], count: int
) -> tuple[dict[int, float] | None, dict[int, Passage]]:
    """The cosines of the nearest units and of the best by words, and the texts of both."""
    if vector is None:
        return None, index.passages(best)
    cosines = index.nearest(vector, areas, count)
    cosines |= index.cosines(vector, [unit for unit in best if unit not in cosines])
    return cosines, index.passages({*best, *cosines})
