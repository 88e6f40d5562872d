"""A talk that is much longer than the model's window, through the whole hub: nothing that was said gets lost.

What was told has long left the window at the end. It has to be in the notes or in the summary, every word on disk, and
nobody may have noticed how it got there.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

from agents.conversation import view
from agents.window import Window
from bot.app import Hub
from bot.config import load
from bot.home import Home
from bot.outbox import REPEATED
from tests.agents.sessions import is_flush, is_summary
from tests.fakes.adapter import FakeAdapter
from tests.fakes.model_server import ModelServer, Recorded, Reply
from tests.fakes.player import UNSPOKEN, Player, prose
from tests.fakes.telegram_api import ANN, TOKEN, TelegramApi
from tests.flows.conftest import SECONDS, Limpet
from workspaces.transcript import Transcript
from workspaces.workspace import INTERVIEW

CONTEXT = 8_000

Json: TypeAlias = dict[str, Any]

CODES = {
    "locker": "LKR-4711",
    "bicycle": "BIC-0815",
    "cellar": "CLR-2093",
    "boat": "BOT-7731",
    "piano": "PNO-5502",
    "attic": "ATC-9164",
    "garage": "GRG-3378",
    "safe": "SFE-6020",
}
FACTS = [f"The code of the {thing} is {code}." for thing, code in CODES.items()]

SETTINGS = 'owners = ["telegram:{owner}"]\n[models]\ndefault = "openai/fake"\nbase_url = "{url}"\ncontext = {context}\n'


def sayings(turns: int, *, every: int = 1) -> Iterator[str]:
    """What the person says: anything, of any length, every so often a fact, and at the end a question for each."""
    rng, facts = random.Random(8), iter(FACTS)
    for number in range(turns - len(FACTS)):
        fact = next(facts, None) if number % every == 0 else None
        if fact is not None:
            yield f"{prose(rng, 10)} {fact}"
        elif number % 9 == 4:
            yield f"{prose(rng, 10)} Look it up."
        elif number % 11 == 5:
            yield "Thanks."
        elif number % 70 == 35:  # more than one message may take of the window
            yield prose(rng, 900)
        else:
            yield prose(rng, rng.randint(3, 120))
    yield from (f"What is the code of the {thing}?" for thing in CODES)


@dataclass
class Talk:
    """What was said in a home, and what was sent there."""

    home: Home
    said: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)

    @property
    def workspace(self) -> Path:
        return self.home.workspace("main")

    @property
    def transcript(self) -> Path:
        (path,) = self.home.sessions("main").glob("*telegram*.jsonl")
        return path

    @property
    def notes(self) -> str:
        return "\n".join(path.read_text("utf-8") for path in sorted((self.workspace / "memory").glob("*.md")))


async def talked(home: Home, player: Player, texts: Iterator[str]) -> Talk:
    """A talk in this process, behind a door without a platform. Time goes on by ten minutes a turn."""
    talk, door, now = Talk(home), FakeAdapter("telegram", "telegram"), datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
    async with ModelServer(player) as server, _hub(home, server, door, lambda: now) as hub:
        _put_almanac(talk.workspace)
        for text in texts:
            now += timedelta(minutes=10)
            talk.said.append(text)
            await door.says(replace(door.message(text), sent_at=now))
            await hub.idle()
    talk.sent = [sent.text for sent in door.sent]
    return talk


def _put_almanac(workspace: Path) -> None:
    """A file that is looked up now and then, and takes much of the window."""
    workspace.mkdir(parents=True, exist_ok=True)
    (workspace / "almanac.md").write_text(prose(random.Random(2), 600))


@asynccontextmanager
async def _hub(home: Home, server: ModelServer, door: FakeAdapter, clock: Callable[[], datetime]) -> AsyncIterator[Hub]:
    home.root.mkdir()
    settings = SETTINGS.format(owner=7, url=server.url, context=CONTEXT)
    home.config.write_text(f'{settings}[channels.telegram]\ntoken = "123456:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"\n')
    async with Hub.open(load(home, {}), home, [door], clock=clock) as hub:
        await hub.roster.get("main")
        (home.workspace("main") / INTERVIEW).unlink()
        running = asyncio.create_task(hub.run())
        try:
            yield hub
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class Losses:
    """What the marks of a transcript say, read without the code that wrote them."""

    compactions: int
    trims: int
    """Compactions without a summary."""
    flushes: int
    failed: int
    most_compactions: int
    """In one turn."""
    most_flushes: int
    """From one compaction to the next."""
    unseen: Sequence[str]
    """Ids of messages that left the window past the watermark, and that no failed flush has marked for later."""
    begin: int
    """Where what is still in the window begins."""


def losses(found: Sequence[Json]) -> Losses:
    places = {entry["id"]: at for at, entry in enumerate(found)}
    counts: Counter[str] = Counter()
    in_turn = in_cycle = most_compactions = most_flushes = begin = 0
    watermark, marked, unseen = -1, set[int](), list[str]()
    for entry in found:
        kind, body = entry["kind"], entry["body"]
        if kind == "user":
            in_turn = 0
        elif kind == "flushed" and body["outcome"] == "failed":
            counts["failed"] += 1
            marked |= set(range(places[body["from"]], places[body["through"]] + 1))
        elif kind == "flushed":
            counts["flushed"] += 1
            in_cycle += 1
            most_flushes = max(most_flushes, in_cycle)
            watermark = max(watermark, places[body["through"]])
        elif kind == "compacted":
            counts["compacted"] += 1
            counts["trimmed"] += body["trimmed"]
            in_turn, in_cycle = in_turn + 1, 0
            most_compactions = max(most_compactions, in_turn)
            left = (at for at in range(begin, places[body["from"]]) if at > watermark and at not in marked)
            unseen += [found[at]["id"] for at in left if found[at]["kind"] in ("user", "assistant", "tool")]
            begin = places[body["from"]]
    trims, flushes, failed = counts["trimmed"], counts["flushed"], counts["failed"]
    return Losses(counts["compacted"], trims, flushes, failed, most_compactions, most_flushes, unseen, begin)


def check(talk: Talk, player: Player, *, compactions: int) -> Losses:
    """What holds for every long talk, however it went."""
    found = [json.loads(line) for line in talk.transcript.read_text("utf-8").splitlines()[1:]]
    lost = losses(found)
    assert lost.compactions >= compactions, "else nothing was put to the test"
    assert lost.unseen == [], "nothing leaves the window past the watermark"
    assert lost.most_compactions == 1, "no turn needs more than one compaction"
    seen = view(Transcript(talk.transcript, "").entries())
    for fact in FACTS:
        assert fact in talk.notes + seen.summary
    gone = [entry["body"]["text"] for entry in found[: lost.begin] if entry["kind"] == "user"]
    assert all(text in player.read for text in gone), "what has left the window was read for the notes, sooner or later"
    said = [entry["body"].get("whole", entry["body"]["text"]) for entry in found if entry["kind"] == "user"]
    assert said == talk.said, "every word of the person is on disk, once and in order"
    answers = [entry["body"]["text"] for entry in found if entry["kind"] == "assistant" and entry["body"]["text"]]
    assert [text for text in answers if "NO_REPLY" not in text.upper()] == player.spoken, (
        "and every word of the answers"
    )
    assert not any(UNSPOKEN in text or "NO_REPLY" in text.upper() for text in talk.sent), "what is silent was not sent"
    assert talk.sent == player.spoken, "and each answer was, once and in order"
    assert talk.sent[-len(CODES) :] == [f"It is {code}." for code in CODES.values()]
    assert player.largest <= CONTEXT, "no request was too long for the provider"
    return lost


async def test_three_hundred_turns_in_a_window_of_eight_thousand_tokens(tmp_path: Path) -> None:
    """G-CMP-01, G-CMP-03, G-CMP-18: what was told at the start is known at the end, and all of it is on disk."""
    player = Player(CONTEXT)
    talk = await talked(Home(tmp_path / "home"), player, sayings(300))
    lost = check(talk, player, compactions=20)
    assert (lost.failed, lost.trims) == (0, 0)
    assert lost.most_flushes <= 2, "one a cycle, a second where one turn jumped over the tail"
    assert player.silent > 10
    assert player.largest <= Window(CONTEXT).compact_at, "the provider's limit was never near"
    assert [talk.notes.count(fact) for fact in FACTS] == [1] * len(FACTS), "each is noted, and once"


async def test_flushes_and_summaries_that_fail_now_and_then_lose_nothing(tmp_path: Path) -> None:
    """Every third flush fails, and of five summaries two in a row are useless: the window is cut without one."""

    def fails(what: str, number: int) -> bool:
        return number % 3 == 1 if what == "flush" else number % 5 in (2, 3)

    player = Player(CONTEXT, fails)
    talk = await talked(Home(tmp_path / "home"), player, sayings(110, every=11))
    lost = check(talk, player, compactions=8)
    assert lost.failed > 2
    assert lost.trims > 0


@dataclass
class Stalls:
    """A script that comes to a halt at each of the ``moments``, in their order, and tells of it: ``reached``."""

    player: Player
    moments: list[str]
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    def __call__(self, request: Recorded) -> Reply:
        if self.moments and self.moments[0] == _moment(request):
            self.moments.pop(0)
            self.reached.set()
            return Reply("never to be read", stall_after=2)
        return self.player(request)


def _moment(request: Recorded) -> str:
    after_a_tool = request.messages[-1]["role"] == "tool"
    if is_flush(request):
        return "noted" if after_a_tool else "flush"
    return "summary" if is_summary(request) else "step" if after_a_tool else "answer"


async def test_a_kill_at_any_moment_of_it_loses_and_doubles_nothing(limpet: Limpet, telegram: TelegramApi) -> None:
    """G-CMP-22: the power goes during a flush, after its notes, during a summary, in the middle of a turn."""
    player, talk = Player(CONTEXT), Talk(Home(limpet.home))
    stalls = Stalls(player, ["flush", "noted", "summary", "step"])
    async with ModelServer(stalls) as server:
        channel = f'[channels.telegram]\nbase_url = "{telegram.url}"\npoll_seconds = 5\n'
        limpet.configure(SETTINGS.format(owner=ANN.id, url=server.url, context=CONTEXT) + channel)
        limpet.env["TELEGRAM_BOT_TOKEN"] = TOKEN
        _put_almanac(talk.workspace)
        talking = asyncio.create_task(_talk_over_telegram(talk, telegram, player, sayings(36)))
        async with asyncio.timeout(SECONDS):
            while not talking.done():
                async with limpet.hub() as hub:
                    stall = asyncio.create_task(stalls.reached.wait())
                    await asyncio.wait([talking, stall], return_when=asyncio.FIRST_COMPLETED)
                    stall.cancel()
                    stalls.reached.clear()
                    await (hub.stop() if talking.done() else hub.kill())
        await talking
    assert stalls.moments == []
    check(talk, player, compactions=2)
    assert [talk.notes.count(fact) for fact in FACTS] == [1] * len(FACTS), "each is noted, and once"


async def _talk_over_telegram(talk: Talk, telegram: TelegramApi, player: Player, texts: Iterator[str]) -> None:
    """Say one thing after the other, each once the one before was answered."""
    for text in texts:
        ended = len(talk.sent) + player.silent
        talk.said.append(text)
        telegram.says(text)
        while len(talk.sent) + player.silent <= ended:
            await asyncio.sleep(0.01)
            talk.sent = list(_without_repetitions([sent.text for sent in telegram.sent]))


def _without_repetitions(sent: Sequence[str]) -> Iterator[str]:
    """What a crash made the hub send again, it says so of."""
    for at, text in enumerate(sent):
        is_again = at > 1 and sent[at - 1] == REPEATED and text == sent[at - 2]
        if text != REPEATED and not is_again:
            yield text
