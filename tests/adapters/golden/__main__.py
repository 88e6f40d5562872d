"""Compares every pair with what the adapters do now, or records them again."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

from tests.adapters.golden import pairs, record_discord, record_slack, record_telegram, record_whatsapp

RECORDERS: dict[str, pairs.Recorder] = {
    "discord": record_discord.record,
    "slack": record_slack.record,
    "telegram": record_telegram.record,
    "whatsapp": record_whatsapp.record,
}


async def main(*, write: bool) -> int:
    """How many pairs are not as they were."""
    changed = 0
    for pair in pairs.pairs():
        with tempfile.TemporaryDirectory() as folder:
            now = await pair.recorded(RECORDERS[pair.channel], Path(folder))
        if difference := pairs.difference(pair.read(), now):
            changed += 1
            print(f"{pair.name}\n{difference}")  # noqa: T201  # what the command is for
            if write:
                pair.write(now)
    return changed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.adapters.golden", description=__doc__)
    parser.add_argument("--write", action="store_true", help="record what changed, instead of only showing it")
    options = parser.parse_args()
    changed = asyncio.run(main(write=options.write))
    parser.exit(1 if changed and not options.write else 0)
