"""How long commands take from the shell: the median of several runs, beside the bare interpreter in the same run.

    python -m benchmarks.startup [--runs 7] [--json]

Wall and CPU seconds of the whole process, children included, in a fresh home with 100 notes.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

COMMANDS: dict[str, list[str]] = {
    "python -c pass": ["-c", "pass"],
    "limpet --version": ["-m", "bot", "--version"],
    "limpet --help": ["-m", "bot", "--help"],
    "limpet status": ["-m", "bot", "status"],
    "limpet where": ["-m", "bot", "where"],
    "limpet memory search": ["-m", "bot", "memory", "search", "where is the spare key", "--json"],
    "limpet chat --once (notes mode)": ["-m", "bot", "chat", "--once", "where is the spare key?"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environ = {"PATH": os.environ["PATH"], "HOME": folder, "LIMPET_HOME": folder}
        write_notes(Path(folder) / "workspaces" / "main" / "memory")
        rows = {name: _measure(args, environ, options.runs) for name, args in COMMANDS.items()}
    if options.json:
        print(json.dumps({"schema": 1, "runs": options.runs, "commands": rows}))
        return
    base = rows["python -c pass"]["wall"]
    print("| command | wall s, median (min–max) | CPU s, median | × bare python |\n|---|---|---|---|")
    for name, row in rows.items():
        spread = f"{row['wall']:.2f} ({row['wall_min']:.2f}–{row['wall_max']:.2f})"
        print(f"| `{name}` | {spread} | {row['cpu']:.2f} | {row['wall'] / base:.1f} |")


def write_notes(folder: Path) -> None:
    folder.mkdir(parents=True)
    for day in range(1, 21):
        lines = [
            f"- 10:{minute:02d} Note {minute} of day {day}: the parcel of week {day * minute} is paid"
            for minute in range(5)
        ]
        (folder / f"2026-10-{day:02d}.md").write_text(f"# 2026-10-{day:02d}\n\n" + "\n".join(lines) + "\n")
    (folder / "2026-11-01.md").write_text("# 2026-11-01\n\n- 09:00 The spare key is under the blue pot\n")


def _measure(args: list[str], environ: dict[str, str], runs: int) -> dict[str, Any]:
    walls, cpus = [], []
    for run in range(runs + 1):
        before = os.times()
        started = time.perf_counter()
        subprocess.run([sys.executable, *args], env=environ, capture_output=True, check=False)
        wall = time.perf_counter() - started
        after = os.times()
        if run:  # the first one warms the caches
            walls.append(wall)
            cpus.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return {
        "wall": statistics.median(walls),
        "wall_min": min(walls),
        "wall_max": max(walls),
        "cpu": statistics.median(cpus),
    }


if __name__ == "__main__":
    main()
