"""How fast messages are accepted durably: ``python -m benchmarks.accept [--chats 200] [--rate 200] [--json]``.

Every conversation writes through the hub's own ``accept``: access, routing, the inbox and its flush, up to the moment
at which a platform would be told. The model never answers, so that nothing is measured but this.

    paced      messages come at ``--rate`` a second, spread over the conversations
    at once    each conversation writes its next message as soon as its last one was accepted
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from benchmarks.turn import percentile, running

if TYPE_CHECKING:
    from adapters.adapter import Accept


@dataclass(frozen=True, slots=True)
class Row:
    """Milliseconds from the adapter's call to its end, and messages a second."""

    how: str
    messages: int
    per_second: float
    p50: float
    p99: float
    longest: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chats", type=int, default=200)
    parser.add_argument("--each", type=int, default=10, help="messages of each conversation")
    parser.add_argument("--rate", type=float, default=200.0, help="messages a second, where they are paced")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    chosen = parser.parse_args()
    rows = asyncio.run(measured(chosen.chats, chosen.each, chosen.rate))
    if chosen.json:
        given = {"schema": 1, "chats": chosen.chats, "load": os.getloadavg()[0], "rows": [asdict(row) for row in rows]}
        print(json.dumps(given, indent=2))
    else:
        print(f"| {chosen.chats} conversations | messages | a second | ms p50 | ms p99 | longest |")
        print("|---|---|---|---|---|---|")
        for row in rows:
            cells = (f"{number:,.0f}" for number in (row.messages, row.per_second))
            times = (f"{took:.1f}" for took in (row.p50, row.p99, row.longest))
            print(f"| {' | '.join((row.how, *cells, *times))} |")
    sys.stdout.flush()
    os._exit(0)  # the turns that wait for the model are not waited for


async def measured(chats: int, each: int, rate: float) -> list[Row]:
    async with silent() as url, running("lean", url, people=chats) as (_, hub, _):
        await one(hub.accept, 1, -1)
        return [await paced(hub.accept, chats, each, rate), await at_once(hub.accept, chats, each)]


async def paced(accept: Accept, chats: int, each: int, rate: float) -> Row:
    begin, tasks = time.perf_counter(), list[asyncio.Task[float]]()
    for number in range(each):
        for person in range(1, chats + 1):
            await asyncio.sleep(max(0.0, begin + len(tasks) / rate - time.perf_counter()))
            tasks.append(asyncio.create_task(one(accept, person, number)))
    return row(f"paced, {rate:g} a second", await asyncio.gather(*tasks), begin)


async def at_once(accept: Accept, chats: int, each: int) -> Row:
    async def conversation(person: int) -> list[float]:
        return [await one(accept, person, each + number) for number in range(each)]

    begin = time.perf_counter()
    lists = await asyncio.gather(*map(conversation, range(1, chats + 1)))
    return row("at once", [one for each in lists for one in each], begin)


def row(how: str, took: Sequence[float], begin: float) -> Row:
    seconds = time.perf_counter() - begin
    return Row(how, len(took), len(took) / seconds, percentile(took, 50), percentile(took, 99), max(took))


async def one(accept: Accept, person: int, number: int) -> float:
    """A message of ``person``, of which this is the ``number``; milliseconds until it is accepted."""
    from adapters.message import Address, Message, Sender

    address = Address("telegram", "telegram", str(person), "direct")
    text = "What did we say about the spare key?"
    message = Message(f"{person}-{number}", address, Sender(str(person)), text, datetime.now(UTC))
    begin = time.perf_counter()
    await accept(message)
    return (time.perf_counter() - begin) * 1e3


@asynccontextmanager
async def silent() -> AsyncIterator[str]:
    """The address of a model server that never answers."""

    async def handle(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read(-1)

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    yield f"http://{host}:{port}/v1"


if __name__ == "__main__":
    main()
