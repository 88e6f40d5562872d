"""The minimum score on notes and questions as people have them: what has an answer is found, what has none is not."""

from __future__ import annotations

from typing import Literal

import pytest

from tests.workspaces.memory import corpus
from tests.workspaces.memory.home import HOME, Home
from workspaces.memory import Memory, MemorySettings

SETS = {
    "first": (corpus.ANSWERED, corpus.UNANSWERED),
    "later": (corpus.LATER_ANSWERED, corpus.LATER_UNANSWERED),
}


@pytest.mark.parametrize("embedder", ["static", "none"])
@pytest.mark.parametrize("name", ["first", "later"])
async def test_what_is_known_is_found_and_what_is_not_is_not(
    home: Home, name: str, embedder: Literal["static", "none"]
) -> None:
    answered, unanswered = SETS[name]
    corpus.write_notes(home.folder)
    async with home.open(settings=MemorySettings(embedder=embedder)) as memory:
        found = [[answer in text for text in await _texts(memory, question)] for question, answer in answered]
        invented = [question for question in unanswered if await _texts(memory, question)]
    assert sum(any(hits) for hits in found) == 20
    assert sum(hits[:1] == [True] for hits in found) >= 18
    assert len(invented) <= 1


async def test_other_words_for_the_same_are_mostly_found(home: Home) -> None:
    corpus.write_notes(home.folder)
    first = home.folder / "memory" / "2026-11-02.md"
    first.write_text(first.read_text().replace("- 08:15 my dog is called Biscuit\n", ""))
    home.write("memory/2026-11-20.md", "\n".join(note for _, note in corpus.PARAPHRASED))
    async with home.open() as memory:
        found = [any(note in text for text in await _texts(memory, question)) for question, note in corpus.PARAPHRASED]
    assert sum(found) >= 3


async def _texts(memory: Memory, question: str) -> list[str]:
    return [hit.text for hit in (await memory.search(question, scope=HOME, limit=3)).hits]
