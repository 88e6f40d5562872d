"""What the hub bears: ``python -m benchmarks.hub [accept] [conversations] [workspaces] [--json]``.

    accept         200 conversations write, paced and all at once, through the hub's own ``accept``: access, routing,
                   the inbox and its flush, up to the moment at which a platform would be told. The model never answers
    conversations  200 of them with 20 messages each, one in twenty brought twice, every one a turn; what was answered
                   is compared with what was said
    workspaces     10,000 of them, one in a hundred talked to: the start, memory, and a first answer against a second

The model is in this process and takes no time. Each phase is a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from benchmarks.turn import Door, percentile, resident

if TYPE_CHECKING:
    from adapters.adapter import Accept
    from adapters.message import Part, Receipt
    from agents.model import ModelEvent, Request
    from bot.app import Hub
    from bot.home import Home

CHATS = 200
EACH = 20
RATE = 200.0
"""Messages a second, where they are paced."""

TWICE = 0.05
"""How many messages a platform brings a second time."""

WORKSPACES = 10_000
ACTIVE = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("phases", nargs="*", help="accept, conversations, workspaces; default: all")
    parser.add_argument("--workspaces", type=int, default=WORKSPACES)
    parser.add_argument("--json", action="store_true", help="print JSON instead of the tables")
    parser.add_argument("--phase", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.phase:
        from bot.__main__ import MANY, use_one_arena, use_one_core

        gc.set_threshold(MANY)  # as in every process of the program
        use_one_arena()
        use_one_core()
        name, folder, count = chosen.phase
        print(json.dumps(asyncio.run(PHASES[name](Path(folder), int(count)))), flush=True)
        os._exit(0)  # the turns that wait for a silent model are not waited for
    wanted = chosen.phases or ["accept", "conversations", "workspaces"]
    found = {name: _measured(name, chosen.workspaces) for name in wanted}
    if chosen.json:
        print(json.dumps({"schema": 1, "load": os.getloadavg()[0], **found}, indent=2))
    else:
        for name in wanted:
            print(_table(name, found[name]))


def _measured(name: str, workspaces: int) -> dict[str, float]:
    print(f"{name} …", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        if name != "workspaces":
            return _phase(name, folder, 0)
        alone = _phase("start", folder, 1)
        shutil.rmtree(folder)
        Path(folder).mkdir()
        _phase("seed", folder, workspaces)
        many = _phase("start", folder, workspaces)
        return {
            "workspaces": workspaces,
            "active": ACTIVE,
            "start_alone_ms": alone["start_ms"],
            **many,
            **_phase("talk", folder, workspaces),
        }


def _phase(name: str, folder: str, count: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.hub", "--phase", name, folder, str(count)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def _table(name: str, found: dict[str, float]) -> str:
    lines = [f"| {name} | |", "|---|---|"]
    lines += [f"| {key.replace('_', ' ')} | {value:,.1f} |" for key, value in found.items()]
    return "\n".join([*lines, ""]).replace(".0 |", " |")


# The phases


async def accept(folder: Path, _: int) -> dict[str, float]:
    async with serving(folder, Silent(), Door()) as hub:
        await accepted(hub.accept, 1, -1)
        begin, tasks = time.perf_counter(), list[asyncio.Task[float]]()
        for number in range(EACH // 2):
            for person in range(1, CHATS + 1):
                await asyncio.sleep(max(0.0, begin + len(tasks) / RATE - time.perf_counter()))
                tasks.append(asyncio.create_task(accepted(hub.accept, person, number)))
        paced = await asyncio.gather(*tasks)

        async def conversation(person: int) -> list[float]:
            return [await accepted(hub.accept, person, EACH + number) for number in range(EACH // 2)]

        begin = time.perf_counter()
        lists = await asyncio.gather(*map(conversation, range(1, CHATS + 1)))
        at_once = [one for each in lists for one in each]
        seconds = time.perf_counter() - begin
    return {
        "paced_a_second": RATE,
        "paced_p50_ms": percentile(paced, 50),
        "paced_p99_ms": percentile(paced, 99),
        "paced_longest_ms": max(paced),
        "at_once_a_second": len(at_once) / seconds,
        "at_once_p50_ms": percentile(at_once, 50),
        "at_once_p99_ms": percentile(at_once, 99),
    }


async def conversations(folder: Path, _: int) -> dict[str, float]:
    door, rng = Listening(), random.Random(20)
    async with serving(folder, Echo(), door, '[queue]\nmode = "followup"\nmost_waiting = 1000\n') as hub:
        await asyncio.sleep(0.5)
        took: list[float] = []

        async def conversation(person: int) -> None:
            await asyncio.sleep(rng.random() * EACH * CHATS / RATE / EACH)
            for number in range(EACH):
                copies = 2 if rng.random() < TWICE else 1
                took.extend(await asyncio.gather(*(accepted(hub.accept, person, number) for _ in range(copies))))
                await asyncio.sleep(CHATS / RATE)

        begin, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*map(conversation, range(1, CHATS + 1)))
        await hub.idle()
        wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    wanted = [f"re: {number}" for number in range(EACH)]
    answers = {str(person): door.answers[str(person)] for person in range(1, CHATS + 1)}
    counts = [Counter(said) for said in answers.values()]
    return {
        "messages": CHATS * EACH,
        "lost": sum(1 for said in counts for one in wanted if not said[one]),
        "double": sum(said[one] - 1 for said in counts for one in wanted if said[one] > 1),
        "out_of_order": sum(said != sorted(said, key=lambda one: int(one[4:])) for said in answers.values()),
        "accept_p99_ms": percentile(took, 99),
        "turns_a_second": CHATS * EACH / wall,
        "turns_a_CPU_second": CHATS * EACH / cpu,
        "memory_MiB": resident(),
    }


async def seed(folder: Path, count: int) -> dict[str, float]:
    """As many workspaces as there would be after months; those that will be talked to have their index, too."""
    from workspaces.workspace import Workspace, furnished

    home = set_up(folder, APART)
    template = furnished(home.templates / "support")
    for person in range(1, count + 1):
        root = home.workspace(f"support/telegram/telegram/direct/{person}")
        Workspace.made_from(template, root)
        (root / "memory" / "2026-01-05.md").write_text(f"- The locker of number {person} is by the door.\n", "utf-8")
    door = Door()
    async with serving(folder, Echo(), door):
        for number in range(ACTIVE):
            await door.turn(0, str(1 + number * (count // ACTIVE)))
    return {}


async def start(folder: Path, count: int) -> dict[str, float]:
    """CPU of this process up to a hub that takes messages; ``count`` 1 makes the home first."""
    if count == 1:
        set_up(folder, APART)
    before = time.process_time()
    async with serving(folder, Echo(), door := Door()):
        await door.ready()
        return {"start_ms": (time.process_time() - before) * 1e3, "start_memory_MiB": resident()}


async def talk(folder: Path, count: int) -> dict[str, float]:
    people = [str(1 + number * (count // ACTIVE)) for number in range(ACTIVE)]
    cold, warm = list[float](), list[float]()
    most = 0
    async with serving(folder, Echo(), door := Door()) as hub:
        await door.turn(0, str(count))  # what every first turn of a process loads
        await hub.idle()
        for number, person in enumerate(people, 1):
            for times, took in ((number, cold), (number + count, warm)):
                before = time.process_time()
                await door.turn(times, person)
                await hub.idle()
                took.append((time.process_time() - before) * 1e3)
            most = max(most, hub.roster.open_count)
        return {
            "cold_p50_ms": percentile(cold, 50),
            "warm_p50_ms": percentile(warm, 50),
            "cold_over_warm_ms": percentile(cold, 50) - percentile(warm, 50),
            "memory_MiB": resident(),
            "most_open": most,
        }


PHASES: dict[str, Callable[[Path, int], Coroutine[Any, Any, dict[str, float]]]] = {
    "accept": accept,
    "conversations": conversations,
    "seed": seed,
    "start": start,
    "talk": talk,
}


async def accepted(accept: Accept, person: int, number: int) -> float:
    """A message of ``person``, of which this is the ``number``; milliseconds until it is accepted."""
    from adapters.message import Address, Message, Sender

    address = Address("telegram", "telegram", str(person), "direct")
    message = Message(f"{person}-{number}", address, Sender(str(person)), f"{number}", datetime.now(UTC))
    begin = time.perf_counter()
    await accept(message)
    return (time.perf_counter() - begin) * 1e3


# A hub whose model takes no time


class Echo:
    """A model that says again what was said last, at once."""

    def __init__(self) -> None:
        from agents.model import Limits

        self.name, self.uses_tools, self.sees_images = "fake/echo", True, False
        self.limits = Limits(64_000, 4_000)

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        from agents.model import Finished, TextDelta, Usage, UserMessage

        said = next((one.text for one in reversed(request.messages) if isinstance(one, UserMessage)), "")
        yield TextDelta("re: " + said.rpartition("] ")[2])
        yield Finished("stop", usage=Usage(10, 5))

    async def close(self) -> None:
        return


class Silent(Echo):
    """A model that never says a word."""

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        await asyncio.Event().wait()
        async for event in super().stream(request):
            yield event


class Listening(Door):
    """A door that keeps what went out, by chat."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: defaultdict[str, list[str]] = defaultdict(list)

    async def send(self, part: Part, key: str) -> Receipt:
        from adapters.message import Receipt

        self.answers[part.address.chat].append(part.text.plain)
        return Receipt(key)


APART = '[[bindings]]\ntemplate = "support"\nper = "sender"\nchannel = "telegram"\n'
"""Everybody has a workspace of their own."""


def set_up(folder: Path, more: str = "") -> Home:
    """A home where everybody may write."""
    from bot.home import Home

    home = Home(folder)
    home.config.write_text(
        f"{more}\n[limits]\nper_sender = 1000000\nper_chat = 1000000\n[templates.support]\n"
        '[channels.telegram]\ntoken = "123456:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"\ndirect = "open"\nallow = ["*"]\n'
    )
    return home


@contextmanager
def answered_by(model: Echo) -> Iterator[None]:
    """Every agent has this model."""
    from bot.models import Chosen

    def model_of(*_: object, **__: object) -> Chosen:
        return Chosen(model, model.name, None)

    with patch("bot.app.model_of", model_of):
        yield


@asynccontextmanager
async def serving(folder: Path, model: Echo, door: Door, more: str = "") -> AsyncIterator[Hub]:
    from bot.app import Hub
    from bot.config import load
    from bot.home import Home
    from bot.logs import configure

    home = Home(folder)
    if not home.config.exists():
        home = set_up(folder, more)
    configure(home)
    with answered_by(model):
        async with Hub.open(load(home, {}), home, [door], watch=True) as hub:
            running = asyncio.create_task(hub.run())
            try:
                yield hub
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)


if __name__ == "__main__":
    main()
