"""How much of the evidence a search hands out, over conversations in LoCoMo's format, through the front door.

    python -m benchmarks.recall FILE [--embedders static none] [--json]

Each conversation becomes a folder of daily notes, one bullet a turn, with its own index; the questions are searched as
anybody's would be, with only the limit raised. R@k is the share of a question's evidence in the first k finds, R@1k and
R@2k in those that fit into 1,000 and 2,000 tokens (4 characters each). For nDCG a find counts when it brings evidence
that no better one has; the ideal order has these first, and one more find for each turn that never came. The headline
is categories 1 to 4. The first row is a published rule, made here from the same notes: chunks of 400 tokens with an
overlap of 80, every word of the question required, bm25 as s / (1 + s), 0.7 for the cosine and 0.3 for the words.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import re
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from workspaces.memory import Memory, MemorySettings, Scope
from workspaces.memory.chunks import Chunk, chunked
from workspaces.memory.embedders import NAMES, NONE, embedded
from workspaces.memory.static_embedder import StaticEmbedder

METRICS = ("R@5", "R@10", "R@20", "MRR", "nDCG@10", "R@1k", "R@2k")
HEADLINE = (1, 2, 3, 4)
MOST = 150
"""Finds that are asked for: more than 2,000 tokens hold."""

BASELINE = "published rule, 400/80"

_TURN = re.compile(r"D:?(\d+):(\d+)")

Turn = tuple[int, int]
Lines = tuple[str, int, int]
"""A path, and its first and last line."""


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    category: int
    evidence: frozenset[Turn]


@dataclass(frozen=True, slots=True)
class Conversation:
    """``notes`` are texts by path; ``turns`` says which turn is in which line of which note."""

    name: str
    notes: dict[str, str]
    turns: dict[tuple[str, int], Turn]
    questions: tuple[Question, ...]

    def within(self, lines: Lines) -> set[Turn]:
        path, first, last = lines
        return {self.turns[path, line] for line in range(first, last + 1) if (path, line) in self.turns}


@dataclass(frozen=True, slots=True)
class Result:
    """A find: the turns in it, and the characters it takes."""

    turns: set[Turn]
    size: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--embedders", nargs="+", default=["static", NONE], choices=NAMES)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = asyncio.run(measured(list(conversations(json.loads(options.file.read_text("utf-8")))), options.embedders))
    if options.json:
        print(json.dumps({"schema": 1, "headline": HEADLINE, "rows": rows}))
        return
    base = rows[BASELINE]["headline"]["nDCG@10"]
    print(f"| finds | {' | '.join(METRICS)} | nDCG@10 × | ms |\n|---|{'---|' * (len(METRICS) + 2)}")
    for name, row in rows.items():
        figures = " | ".join(f"{100 * row['headline'][metric]:.1f}" for metric in METRICS)
        print(f"| {name} | {figures} | {row['headline']['nDCG@10'] / base:.2f} | {row['ms']:.1f} |")


def conversations(items: Iterable[dict[str, Any]]) -> Iterator[Conversation]:
    """The items of a LoCoMo file as notes, and the questions that have evidence."""
    for number, item in enumerate(items):
        talk = item["conversation"]
        sessions = sorted(int(key[8:]) for key in talk if re.fullmatch(r"session_\d+", key))
        notes: dict[str, list[str]] = {}
        turns: dict[tuple[str, int], Turn] = {}
        for session in sessions:
            when = datetime.strptime(talk[f"session_{session}_date_time"], "%I:%M %p on %d %B, %Y")  # noqa: DTZ007
            path = f"memory/{when:%Y-%m-%d}.md"
            lines = notes.setdefault(path, [f"# {when:%Y-%m-%d}", ""])
            lines += [f"## {when:%H:%M} {talk['speaker_a']} and {talk['speaker_b']}", ""]
            for turn in talk[f"session_{session}"]:
                lines.append(_bullet(turn))
                turns[path, len(lines)] = _turns(turn["dia_id"])[0]
            lines.append("")
        known = set(turns.values())
        asked = [
            Question(qa["question"], qa["category"], frozenset(known.intersection(_turns(*qa.get("evidence", ())))))
            for qa in item["qa"]
        ]
        texts = {path: "\n".join(lines) for path, lines in notes.items()}
        questions = tuple(question for question in asked if question.evidence)
        yield Conversation(str(item.get("sample_id", number)), texts, turns, questions)


def _bullet(turn: dict[str, Any]) -> str:
    photo = f" [photo: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
    return f"- {turn['speaker']}: " + " ".join(f"{turn['text']}{photo}".split())


def _turns(*ids: str) -> list[Turn]:
    """Some are written loosely: "D8:6; D9:17", "D:11:26", "D30:05"."""
    return [(int(session), int(number)) for text in ids for session, number in _TURN.findall(text)]


async def measured(talks: Sequence[Conversation], embedders: Sequence[str]) -> dict[str, dict[str, Any]]:
    """A row for the published rule and for each way of searching: figures of the headline, of each category, and the
    median milliseconds of a search."""
    ways: dict[str, tuple[str, MemorySettings]] = {}
    for name in embedders:
        ways[f"lines, {name}"] = name, MemorySettings(embedder="none")
        if name != NONE:
            ways[f"lines, {name}, preset semantic"] = name, MemorySettings(embedder="none", preset="semantic")
        ways[f"chunks of 400/80, {name}"] = name, MemorySettings(embedder="none", finds="chunks")
    made = {name: embedded(name) for name in embedders}
    found: dict[str, list[tuple[int, float, dict[str, float]]]] = {BASELINE: [], **{way: [] for way in ways}}
    for talk in talks:
        print(f"{talk.name}: {len(talk.questions)} questions", file=sys.stderr)
        with tempfile.TemporaryDirectory() as folder:
            workspace = Path(folder) / "workspace"
            for path, text in talk.notes.items():
                (workspace / path).parent.mkdir(parents=True, exist_ok=True)
                (workspace / path).write_text(text, "utf-8")
            found[BASELINE] += _judged(talk, _published(talk))
            for way, (name, settings) in ways.items():
                print(f"  {way}", file=sys.stderr)
                async with Memory.open(
                    workspace, Path(folder) / f"{name}.sqlite", embedder=made[name], settings=settings
                ) as memory:
                    found[way] += await _searched(talk, memory)
    return {name: _row(results) for name, results in found.items()}


async def _searched(talk: Conversation, memory: Memory) -> list[tuple[int, float, dict[str, float]]]:
    judged: list[tuple[int, float, dict[str, float]]] = []
    await memory.sync()
    async with memory.watch():
        for question in talk.questions:
            start = time.perf_counter()
            hits = (await memory.search(question.text, scope=Scope.home(), limit=MOST)).hits
            took = time.perf_counter() - start
            results = [Result(talk.within((hit.path, hit.start_line, hit.end_line)), len(hit.text)) for hit in hits]
            judged.append((question.category, took, _figures(results, question.evidence)))
    return judged


def _figures(results: Sequence[Result], evidence: frozenset[Turn]) -> dict[str, float]:
    """The metrics of one question; ``results`` are best first."""
    have: set[Turn] = set()
    new: list[bool] = []
    covered: list[float] = []
    used: list[int] = []
    for result in results:
        more = (result.turns & evidence) - have
        have |= more
        new.append(bool(more))
        covered.append(len(have) / len(evidence))
        used.append((used[-1] if used else 0) + result.size)

    def first(count: int) -> float:
        return covered[min(count, len(covered)) - 1] if covered and count else 0.0

    ideal = sum(1 / math.log2(rank + 2) for rank in range(min(sum(new) + len(evidence - have), 10)))
    gained = sum(1 / math.log2(rank + 2) for rank, one in enumerate(new[:10]) if one)
    figures = {f"R@{count}": first(count) for count in (5, 10, 20)}
    figures["MRR"] = next((1 / (rank + 1) for rank, one in enumerate(new) if one), 0.0)
    figures["nDCG@10"] = gained / ideal
    for tokens in (1000, 2000):
        figures[f"R@{tokens // 1000}k"] = first(sum(size <= 4 * tokens for size in used))
    return figures


def _published(talk: Conversation) -> Callable[[str], list[Result]]:
    """A search by the published rule over chunks of 400 tokens with an overlap of 80."""
    embedder = StaticEmbedder()
    chunks: list[tuple[str, Chunk]] = [
        (path, chunk) for path, text in talk.notes.items() for chunk in chunked(text, size=400, overlap=80)
    ]
    vectors = embedder.embed_documents([chunk.text for _, chunk in chunks])
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE words USING fts5(text)")
    db.executemany("INSERT INTO words(rowid, text) VALUES (?, ?)", enumerate(chunk.text for _, chunk in chunks))
    results = [Result(talk.within((path, chunk.start_line, chunk.end_line)), len(chunk.text)) for path, chunk in chunks]

    def search(question: str) -> list[Result]:
        every = " AND ".join(f'"{word}"' for word in re.findall(r"\w+", question))
        rows = db.execute("SELECT rowid, -bm25(words) FROM words WHERE words MATCH ?", (every,)) if every else ()
        words = {number: score / (1 + score) for number, score in rows if score > 0}
        cosines = vectors @ embedder.embed_query(question)
        scores = {n: 0.7 * float(cosines[n]) + 0.3 * words.get(n, 0.0) for n in range(len(chunks))}
        return [results[n] for n in sorted(scores, key=lambda n: (-scores[n], n))[:MOST]]

    return search


def _judged(talk: Conversation, search: Callable[[str], list[Result]]) -> list[tuple[int, float, dict[str, float]]]:
    judged: list[tuple[int, float, dict[str, float]]] = []
    for question in talk.questions:
        start = time.perf_counter()
        results = search(question.text)
        took = time.perf_counter() - start
        judged.append((question.category, took, _figures(results, question.evidence)))
    return judged


def _row(results: list[tuple[int, float, dict[str, float]]]) -> dict[str, Any]:
    def mean(categories: tuple[int, ...]) -> dict[str, float]:
        chosen = [figures for category, _, figures in results if category in categories]
        return {metric: statistics.fmean(one[metric] for one in chosen) for metric in METRICS} if chosen else {}

    each = {str(category): mean((category,)) for category in (*HEADLINE, 5)}
    return {
        "headline": mean(HEADLINE),
        "categories": each,
        "ms": 1000 * statistics.median(took for _, took, _ in results),
    }


if __name__ == "__main__":
    main()
