"""What one turn costs beside the bare call of the model: ``python -m benchmarks.turn [lean] [litellm] [--json]``.

The whole path, as ``limpet run`` has it: a message comes in at an adapter, is accepted, answered with the memory on by
a model server of no latency in another process, kept in the transcript and sent. Beside it the same client sends the
same bytes with nothing around it: the difference is our own share. Each client and each phase is a process of its own;
CPU is that of the process, all threads, because machines are noisy.

    turns      one session, one message after the other, each followed by the bare call of its own last request
    sessions   16 sessions, a message in each of them at once
    long       one session: resident memory after 10 turns and at the end
    once       ``limpet chat --once``, the whole process
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib.util
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adapters.adapter import Accept
    from adapters.message import Address, Part, Receipt
    from adapters.text import FormattedText
    from agents.model import Model, Request
    from bot.app import Hub
    from bot.home import Home

WARM = 10
"""Turns before anything is counted: imports, the index, the first connection."""

CONTEXT = 32_000
"""Tokens of the model's window, so that a long talk is compacted several times."""

SAID = (
    "Is the parcel of week {n} paid?",
    "There is rice, half a cabbage and too much ginger here. What would you cook for four tonight?",
    "Thanks, that sounds good.",
    "Ada comes at half past six on Friday, and I have to bring her to the station again by ten.",
    "How do I get red wine out of a white tablecloth?",
    "What did we say about the spare key?",
    "Write two friendly lines to the landlord: the heating in the hall makes a knocking noise since Tuesday.",
    "ok",
)
"""What a person says, in turn: most of it is about none of their notes."""

ANSWER = "That is settled then: I have it down, and you will hear from me about the rest of it on Friday morning."

SUMMARY = """## Decisions
- the parcels are paid
## Open to-dos
- none
## Constraints
- none
## Pending requests
- none
## Identifiers
- none"""


@dataclass(frozen=True, slots=True)
class Row:
    """One client. CPU and wall in milliseconds, memory in MiB; p50 and p99 over turns.

    ``own`` is a turn's CPU less that of the bare call right after it, p50. ``per_second`` is turns a CPU-second.
    ``python`` is ``python -c pass``, by which the machine's speed of that moment is known.
    """

    client: str
    cpu_p50: float
    cpu_p99: float
    wall_p50: float
    wall_p99: float
    bare_p50: float
    bare_p99: float
    own_p50: float
    per_second: float
    many_cpu: float
    many_wall_p50: float
    many_wall_p99: float
    many_per_second: float
    rss_begin: float
    rss_end: float
    once: float
    python: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clients", nargs="*", default=[], help="lean, litellm; default: both, litellm where it is")
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--sessions", type=int, default=16)
    parser.add_argument("--long", type=int, default=1000)
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--phase", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        asyncio.run(serve())
    elif chosen.phase:
        from bot.__main__ import MANY, use_one_arena, use_one_core

        gc.set_threshold(MANY)  # as in every process of the program
        use_one_arena()
        use_one_core()
        name, client, url, count = chosen.phase
        print(json.dumps(asyncio.run(PHASES[name](client, url, int(count)))))
    else:
        found = importlib.util.find_spec("litellm") is not None
        counts = {"turns": chosen.turns, "sessions": chosen.sessions, "long": chosen.long}
        rows = [measured(client, counts) for client in chosen.clients or (["lean", "litellm"] if found else ["lean"])]
        load = os.getloadavg()[0]
        given = {"schema": 1, "counts": counts, "load": load, "clients": [asdict(row) for row in rows]}
        print(json.dumps(given, indent=2) if chosen.json else table(rows, counts, load))


def measured(client: str, counts: dict[str, int]) -> Row:
    found: dict[str, float] = {}
    with serving() as url:
        for phase, count in counts.items():
            print(f"{client}: {phase} …", file=sys.stderr)
            command = [sys.executable, "-m", "benchmarks.turn", "--phase", phase, client, url, str(count)]
            found |= json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        print(f"{client}: once …", file=sys.stderr)
        return Row(client, **found, **once(client, url))


# The phases, each in a process of its own


async def turns(client: str, url: str, count: int) -> dict[str, float]:
    async with running(client, url) as (door, hub, bare):
        cpus, walls, bares = [], [], []
        for number in range(WARM + count):
            cpu, wall = await timed(door.turn(number, "1"), hub.idle)
            request = request_of(await last(url))
            alone, _ = await timed(call(bare, request))
            if number >= WARM:
                cpus.append(cpu)
                walls.append(wall)
                bares.append(alone)
    return {
        "cpu_p50": percentile(cpus, 50),
        "cpu_p99": percentile(cpus, 99),
        "wall_p50": percentile(walls, 50),
        "wall_p99": percentile(walls, 99),
        "bare_p50": percentile(bares, 50),
        "bare_p99": percentile(bares, 99),
        "own_p50": percentile([turn - alone for turn, alone in zip(cpus, bares, strict=True)], 50),
        "per_second": 1e3 / statistics.fmean(cpus),
    }


async def sessions(client: str, url: str, count: int) -> dict[str, float]:
    rounds = 20
    async with running(client, url, people=count) as (door, hub, _):
        walls: list[float] = []

        async def one(number: int, person: str) -> None:
            started = time.perf_counter()
            await door.turn(number, person)
            walls.append((time.perf_counter() - started) * 1e3)

        async def everyone(number: int) -> None:
            await asyncio.gather(*(one(number, str(person)) for person in range(1, count + 1)))

        cpus = []
        for number in range(2 + rounds):
            cpu, _ = await timed(everyone(number), hub.idle)
            cpus.append(cpu / count)
        del cpus[:2], walls[: 2 * count]
    return {
        "many_cpu": percentile(cpus, 50),
        "many_wall_p50": percentile(walls, 50),
        "many_wall_p99": percentile(walls, 99),
        "many_per_second": 1e3 / statistics.fmean(cpus),
    }


async def long(client: str, url: str, count: int) -> dict[str, float]:
    begin = 0.0
    async with running(client, url) as (door, hub, _):
        for number in range(1, count + 1):
            await door.turn(number, "1")
            await hub.idle()
            if number == WARM:
                begin = resident()
        return {"rss_begin": begin, "rss_end": resident()}


PHASES: dict[str, Callable[[str, str, int], Coroutine[Any, Any, dict[str, float]]]] = {
    "turns": turns,
    "sessions": sessions,
    "long": long,
}


def once(client: str, url: str) -> dict[str, float]:
    """Whole processes: a question from a shell, and the interpreter that does nothing."""
    with tempfile.TemporaryDirectory() as name:
        home = set_up(Path(name), client, url)
        environ = {"PATH": os.environ["PATH"], "HOME": name, "LIMPET_HOME": name}
        (home.workspace("main") / "USER.md").write_text("- Name: Ann\n")  # so that no interview is due

        def cpu(*command: str) -> float:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *command], env=environ, check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3

        asked = [cpu("-m", "bot", "chat", "--once", "Where is the spare key?") for _ in range(6)]
        nothing = [cpu("-c", "pass") for _ in range(21)]
    return {"once": statistics.median(asked[1:]), "python": statistics.median(nothing)}


async def timed(work: Awaitable[None], settled: Callable[[], Awaitable[None]] | None = None) -> tuple[float, float]:
    """CPU until all is settled and wall until the answer is there, in milliseconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    await work
    wall = time.perf_counter() - wall
    if settled is not None:
        await settled()
    return (time.process_time() - cpu) * 1e3, wall * 1e3


async def call(model: Model, request: Request) -> None:
    async for _ in model.stream(request):
        pass


def percentile(values: Sequence[float], which: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * which // 100)]


def resident() -> float:
    """Memory of this process in MiB: now where the system tells it, else its peak."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return size / 2**20 if sys.platform == "darwin" else size / 2**10
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


def request_of(body: dict[str, Any]) -> Request:
    """A request that was sent, to be sent again."""
    from agents.model import AssistantMessage, Request, ToolSpec, UserMessage

    system, *said = body["messages"]
    messages = [(UserMessage if m["role"] == "user" else AssistantMessage)(m["content"]) for m in said]
    functions = [tool["function"] for tool in body.get("tools", ())]
    tools = [ToolSpec(f["name"], f["description"], f["parameters"]) for f in functions]
    return Request(system["content"], tuple(messages), tuple(tools), body.get("max_tokens"))


# A hub whose only door is this program


class Door:
    """An adapter as bare as one can be: what comes in is made here, and what goes out is let through."""

    def __init__(self) -> None:
        from adapters.adapter import Capabilities, Health

        self.channel = self.account = "telegram"
        self.capabilities = Capabilities(text_limit=4096, typing=True)
        self.health = Health("connected")
        self._accept: asyncio.Future[Accept] = asyncio.get_running_loop().create_future()
        self._answered: dict[str, asyncio.Event] = {}

    async def turn(self, number: int, person: str) -> None:
        """A message of ``person``; returns when its answer was sent."""
        from adapters.message import Address, Message, Sender

        self._answered[person] = asyncio.Event()
        text = SAID[number % len(SAID)].format(n=number)
        address = Address(self.channel, self.account, person, "direct")
        await (await self._accept)(Message(f"{person}-{number}", address, Sender(person), text, datetime.now(UTC)))
        await self._answered[person].wait()

    async def ready(self) -> None:
        """Messages are taken."""
        await self._accept

    async def run(self, accept: Accept) -> None:
        self._accept.set_result(accept)
        await asyncio.Event().wait()

    async def send(self, part: Part, key: str) -> Receipt:
        from adapters.message import Receipt

        self._answered[part.address.chat].set()
        return Receipt(key)

    async def edit(self, part: Part, message_id: str) -> None:
        from adapters.errors import Rejected

        raise Rejected(f"{message_id} in {part.address.chat} stays as it is: this door changes nothing")

    async def typing(self, address: Address) -> None:
        """Shown to nobody."""

    def fetch(self, ref: str, limit: int) -> AsyncIterator[bytes]:
        from adapters.errors import Rejected

        raise Rejected(f"{ref} (up to {limit} bytes) can't be fetched: this door holds no files")

    def measure(self, text: FormattedText) -> int:
        return len(text.plain)

    async def close(self) -> None:
        return


def set_up(folder: Path, client: str, url: str, people: int = 1) -> Home:
    """A fresh home with 100 notes, whose people are all its owners."""
    from benchmarks.startup import write_notes
    from bot.home import Home

    home = Home(folder)
    owners = ", ".join(f'"telegram:{person}"' for person in range(1, people + 1))
    home.config.write_text(
        f'owners = [{owners}]\n[models]\ndefault = "openai/fake"\nbase_url = "{url}"\nclient = "{client}"\n'
        f"context = {CONTEXT}\n[limits]\nper_sender = 1000000\nper_chat = 1000000\n"
        '[channels.telegram]\ntoken = "123456:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"\n'
    )
    write_notes(home.workspace("main") / "memory")
    return home


@asynccontextmanager
async def running(client: str, url: str, people: int = 1) -> AsyncIterator[tuple[Door, Hub, Model]]:
    """A hub, and its model with nothing around it."""
    from bot.app import Hub
    from bot.config import load
    from bot.logs import configure
    from bot.models import model_of
    from workspaces.workspace import INTERVIEW

    with tempfile.TemporaryDirectory() as name:
        home = set_up(Path(name), client, url, people)
        configure(home)
        settings, door = load(home, {}), Door()
        bare = model_of("main", settings, home).model
        assert bare is not None
        async with Hub.open(settings, home, [door], watch=True) as hub:
            await hub.roster.get("main")
            (home.workspace("main") / INTERVIEW).unlink()
            serving = asyncio.create_task(hub.run())
            try:
                yield door, hub, bare
            finally:
                serving.cancel()
                await asyncio.gather(serving, return_exceptions=True)
                await bare.close()


# The model server


@contextmanager
def serving() -> Iterator[str]:
    """The address of a model server in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.turn", "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


async def serve() -> None:
    """Answer each call at once: by what is asked, an answer, nothing to note, or a summary."""
    kept = b"{}"

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal kept
        while head := await _head(reader):
            length = re.search(rb"(?i)content-length: (\d+)", head)
            body = await reader.readexactly(int(length[1]) if length else 0)
            if head.startswith(b"GET"):
                kind, data = b"application/json", kept
            else:
                kind, data = b"text/event-stream", _answer(body)
                kept = body if b"You keep the notes" not in body and b"You sum up" not in body else kept
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b" % (kind, len(data), data)
            )
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, limit=1 << 20)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


def _answer(body: bytes) -> bytes:
    """A stream of one chunk a word, as most providers send it."""
    text = "NO_REPLY" if b"You keep the notes" in body else SUMMARY if b"You sum up" in body else ANSWER
    words = [f" {word}" for word in text.split(" ")]
    deltas = [{"role": "assistant", "content": ""}, {"content": words[0][1:]}, *({"content": w} for w in words[1:])]
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "fake"}
    choices = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
    usage = {"prompt_tokens": len(body) // 4, "completion_tokens": len(words), "total_tokens": len(body) // 4}
    chunks = [chunk | {"choices": each} for each in [*choices, [{"index": 0, "delta": {}, "finish_reason": "stop"}]]]
    chunks.append(chunk | {"choices": [], "usage": usage})
    return b"".join(b"data: %b\n\n" % json.dumps(each).encode() for each in chunks) + b"data: [DONE]\n\n"


async def last(url: str) -> dict[str, Any]:
    """The body of the last answered request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rsplit(":", 1)[1].partition("/")[0]))
    writer.write(b"GET / HTTP/1.1\r\n\r\n")
    length = re.search(rb"Content-Length: (\d+)", await reader.readuntil(b"\r\n\r\n"))
    assert length is not None
    body: dict[str, Any] = json.loads(await reader.readexactly(int(length[1])))
    writer.close()
    return body


def table(rows: Sequence[Row], counts: dict[str, int], load: float) -> str:
    many, long = counts["sessions"], counts["long"]
    lines = {
        "a turn, CPU ms p50": [f"{row.cpu_p50:.1f}" for row in rows],
        "a turn, CPU ms p99": [f"{row.cpu_p99:.1f}" for row in rows],
        "a turn, wall ms p50": [f"{row.wall_p50:.1f}" for row in rows],
        "a turn, wall ms p99": [f"{row.wall_p99:.1f}" for row in rows],
        "the bare call, CPU ms p50": [f"{row.bare_p50:.1f}" for row in rows],
        "the bare call, CPU ms p99": [f"{row.bare_p99:.1f}" for row in rows],
        "our own share, CPU ms p50": [f"{row.own_p50:.1f}" for row in rows],
        "turns a CPU-second": [f"{row.per_second:.0f}" for row in rows],
        f"{many} at once, CPU ms a turn": [f"{row.many_cpu:.1f}" for row in rows],
        f"{many} at once, wall ms p50": [f"{row.many_wall_p50:.0f}" for row in rows],
        f"{many} at once, wall ms p99": [f"{row.many_wall_p99:.0f}" for row in rows],
        f"{many} at once, turns a CPU-second": [f"{row.many_per_second:.0f}" for row in rows],
        f"memory after {WARM} turns, MiB": [f"{row.rss_begin:.0f}" for row in rows],
        f"memory after {long:,} turns, MiB": [
            f"{row.rss_end:.0f} ({row.rss_end / row.rss_begin - 1:+.1%})" for row in rows
        ],
        "`limpet chat --once`, CPU s": [f"{row.once / 1e3:.2f}" for row in rows],
        "`python -c pass`, CPU ms": [f"{row.python:.0f}" for row in rows],
    }
    head = f"| | {' | '.join(row.client for row in rows)} |\n|---|{'---|' * len(rows)}\n"
    body = "\n".join(f"| {name} | {' | '.join(values)} |" for name, values in lines.items())
    return f"{head}{body}\n\nLoad average {load:.1f}, {os.cpu_count()} processors."


if __name__ == "__main__":
    main()
