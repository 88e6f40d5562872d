"""How fast the memory indexes and searches, and what it takes: ``python -m benchmarks.memory_speed [MB ...] [--json]``.

The notes are made: words drawn as prose draws them (Zipf), in bullets and paragraphs under headings, 15 kB and a day a
file. Questions are three to eight words of one of the notes, without the most common ones: those of a language are stop
words, which no search looks up. Each phase is a process of its own, so that its memory is
its own; times are CPU seconds of the process, all threads, because machines are noisy.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from pathlib import Path

FILE = 15_000
"""Characters of a file."""

QUESTIONS = 60

STOPPED = 100
"""Of the made words the most common: half of the running text, as the stop words of English are."""


@dataclass(frozen=True, slots=True)
class Row:
    """One size of memory. Times in CPU ms but where the name says seconds or wall; memory in MiB."""

    megabytes: float
    files: int
    units: int
    index_kb_per_second: float
    index_peak: float
    bytes_per_byte: float
    unchanged_seconds: float
    changed_wall: float
    cold: float
    p50: float
    p99: float
    words_p50: float
    search_peak: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("megabytes", nargs="*", type=float, default=[1.5, 15.0], help="default: 1.5 15; large: 150")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--phase", nargs=2, metavar=("NAME", "FOLDER"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.phase:
        name, folder = chosen.phase
        print(json.dumps(asyncio.run(PHASES[name](Path(folder)))))
        return
    rows = [measured(megabytes) for megabytes in chosen.megabytes]
    print(json.dumps([asdict(row) for row in rows], indent=2) if chosen.json else table(rows))


def measured(megabytes: float) -> Row:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"{megabytes:g} MB: writing …", file=sys.stderr)
        write_notes(folder / "notes", int(megabytes * 1e6 / FILE))
        found: dict[str, float] = {}
        for phase in PHASES:
            print(f"{megabytes:g} MB: {phase} …", file=sys.stderr)
            command = [sys.executable, "-m", "benchmarks.memory_speed", "--phase", phase, name]
            found |= json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        return Row(megabytes=megabytes, **found)  # type: ignore[arg-type]  # the phases' keys are the fields' names


def write_notes(folder: Path, files: int) -> None:
    rng = random.Random(2026)
    vocabulary = _vocabulary(rng)
    weights = [1 / rank**1.05 for rank in range(1, 50_001)]
    (folder / "memory").mkdir(parents=True)
    for number in range(files):
        day = date(2023, 1, 1) + timedelta(days=number)
        words = iter(rng.choices(vocabulary, weights, k=FILE // 3))
        text = f"# {day}\n"
        while len(text) < FILE:
            text += f"\n## {' '.join(next(words) for _ in range(3))}\n\n"
            for _ in range(rng.randint(2, 9)):
                length = rng.choice((8, 12, 18, 25, 40, 60))
                mark = "- " if rng.random() < 0.8 else "\n"
                text += f"{mark}{' '.join(next(words, 'end') for _ in range(length))}.\n"
        (folder / "memory" / f"{day}.md").write_text(text, encoding="utf-8")


def _vocabulary(rng: random.Random) -> list[str]:
    return [_word(rng) for _ in range(50_000)]


def _word(rng: random.Random) -> str:
    return "".join(rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") for _ in range(rng.randint(1, 4)))


def questions(folder: Path) -> list[str]:
    rng = random.Random(7)
    common = set(_vocabulary(random.Random(2026))[:STOPPED])
    files = sorted((folder / "memory").iterdir())
    found: list[str] = []
    while len(found) < QUESTIONS:
        lines = [line for line in rng.choice(files).read_text("utf-8").split("\n") if len(line.split()) > 8]
        words = [word for word in rng.choice(lines).strip("-. ").split() if word not in common]
        if len(words) > 2:
            found.append(" ".join(rng.sample(words, min(len(words), rng.randint(3, 8)))))
    return found


async def index(folder: Path) -> dict[str, float]:
    from workspaces.memory import Memory

    notes = folder / "notes"
    size = sum(path.stat().st_size for path in (notes / "memory").iterdir())
    async with Memory.open(notes, folder / "index.sqlite") as memory:
        started = time.process_time()
        await memory.sync()
        seconds = time.process_time() - started
        status = await memory.status()
    return {
        "files": status.files,
        "units": status.units,
        "index_kb_per_second": size / 1e3 / seconds,
        "index_peak": peak(),
        "bytes_per_byte": status.index_bytes / size,
    }


async def unchanged(folder: Path) -> dict[str, float]:
    from workspaces.memory import Memory, Scope

    async with Memory.open(folder / "notes", folder / "index.sqlite") as memory:
        await memory.search("warm", scope=Scope.home())
        started = time.process_time()
        report = await memory.sync()
        seconds = time.process_time() - started
        assert (report.added, report.changed, report.embedded) == (0, 0, 0), report
        with (folder / "notes" / "memory" / "2023-01-01.md").open("a") as file:
            file.write("- the xylophone arrived\n")
        wall = time.perf_counter()
        result = await memory.search("xylophone", scope=Scope.home())
        assert result.hits, "the changed file was not found"
        return {"unchanged_seconds": seconds, "changed_wall": (time.perf_counter() - wall) * 1e3}


async def search(folder: Path) -> dict[str, float]:
    from workspaces.memory import Memory, MemorySettings, Scope

    asked = questions(folder / "notes")
    async with Memory.open(folder / "notes", folder / "index.sqlite") as memory, memory.watch():
        await memory.sync()
        started = time.process_time()
        await memory.search(asked[0], scope=Scope.home())
        cold = time.process_time() - started
        times = [await timed(memory, question) for question in asked]
        held = peak()
    async with (
        Memory.open(folder / "notes", folder / "index.sqlite", settings=MemorySettings(embedder="none")) as memory,
        memory.watch(),
    ):
        await memory.sync()
        words = [await timed(memory, question) for question in asked]
    times.sort()
    words.sort()
    return {
        "cold": cold * 1e3,
        "p50": times[len(times) // 2],
        "p99": times[-1],
        "words_p50": words[len(words) // 2],
        "search_peak": held,
    }


async def timed(memory: object, question: str) -> float:
    from workspaces.memory import Scope

    started = time.process_time()
    await memory.search(question, scope=Scope.home())  # type: ignore[attr-defined]
    return (time.process_time() - started) * 1e3


PHASES = {"index": index, "unchanged": unchanged, "search": search}


def peak() -> float:
    """The most memory this process had, in MiB."""
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def table(rows: list[Row]) -> str:
    """A column for each size."""
    lines = ["| | " + " | ".join(f"{row.megabytes:g} MB" for row in rows) + " |", "|---|" + "---|" * len(rows)]
    for name, key, form in _LINES:
        lines.append(f"| {name} | " + " | ".join(format(getattr(row, key), form) for row in rows) + " |")
    return "\n".join(lines)


_LINES = (
    ("files", "files", ",.0f"),
    ("units", "units", ",.0f"),
    ("index, kB of Markdown a CPU-second", "index_kb_per_second", ",.0f"),
    ("peak while indexing, MiB", "index_peak", ".0f"),
    ("index, bytes a byte of Markdown", "bytes_per_byte", ".1f"),
    ("unchanged tree, CPU s", "unchanged_seconds", ".2f"),
    ("one changed file found, wall ms", "changed_wall", ".0f"),
    ("first search of a process, CPU ms", "cold", ".0f"),
    ("search, CPU ms p50", "p50", ".1f"),
    ("search, CPU ms p99", "p99", ".1f"),
    ("by words only, CPU ms p50", "words_p50", ".1f"),
    ("peak of a process that searches, MiB", "search_peak", ".0f"),
)


if __name__ == "__main__":
    main()
