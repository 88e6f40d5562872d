"""One talk through a hub that a fault interrupts: what is said, who answers, and what must hold at the end.

Every message and every paragraph of an answer has a number, so that whatever is lost, doubled or out of order is seen.
The talk has all that is durable in it: a note by a tool, an answer in several parts, a compaction with its flush,
messages that come while another is answered.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Protocol

from bot.outbox import REPEATED
from tests.agents.sessions import SUMMARY, is_flush, is_summary
from tests.fakes.model_server import Call, ModelServer, Recorded, Reply
from tests.faults.doors import Door
from tests.flows.conftest import SECONDS, Hub, Limpet
from workspaces.transcript import Transcript

FACT = "the dog is called Biscuit"
FLUSHED = "the roof is to be blue"
PARAGRAPHS = 30

STEPS: Sequence[Sequence[str]] = (
    (f"#1 Remember that {FACT}.",),
    ("#2 Tell me a long story.",),
    ("#3 And now?",),
    ("/compact",),
    ("#4 One.", "#5 Two.", "#6 Three."),
    ("#7 Good night.",),
)
"""What is said; the messages of one step at once, each step when all before it was answered."""

COMPACTED = "*"
"""Stands for the answer to the command."""

EXPECTED = ["#1", "#2", *(f"#{200 + n}" for n in range(PARAGRAPHS)), "#3", COMPACTED, "#4", "#5", "#6", "#7"]

_NUMBER = re.compile(r"#\d+")
_HAS_FAILED = re.compile(r"could not|error", re.IGNORECASE)
_SETTINGS = '[models]\ndefault = "openai/fake"\nbase_url = "{url}"\ncontext = 8000\n'


def model(request: Recorded) -> Reply:
    """Answers with the numbers of what was said since its last answer, once what it is to remember is noted."""
    last = request.messages[-1]
    if is_summary(request):
        return Reply(SUMMARY)
    if is_flush(request):
        note = Call("memory_append", json.dumps({"text": FLUSHED}))
        return Reply("NO_REPLY") if last["role"] == "tool" else Reply(calls=[note])
    said = " ".join(_unanswered(request))
    if "Remember that" in said and (call := _noting(last)):
        return Reply(calls=[call])
    story = [f"#{200 + n} {'It was a dark and stormy night, and the sea was high. ' * 5}" for n in range(PARAGRAPHS)]
    answer = " ".join(_NUMBER.findall(said))
    return Reply("\n\n".join([answer, *(story if "story" in said else ())]))


def _noting(last: dict[str, Any]) -> Call | None:
    """What is called next to note the fact; None when it is noted. One that may have been before is looked up first."""
    result = str(last["content"]) if last["role"] == "tool" else ""
    if "Interrupted" in result:
        return Call("memory_search", json.dumps({"query": FACT}))
    is_noted = result and not _HAS_FAILED.search(result) and (FACT in result or "Noted" in result)
    return None if is_noted else Call("memory_append", json.dumps({"text": FACT}))


def _unanswered(request: Recorded) -> Iterator[str]:
    """The person's words since the last answer in words."""
    words: list[str] = []
    for message in request.messages[1:]:
        if message["role"] == "assistant" and not message.get("tool_calls"):
            words.clear()
        elif message["role"] == "user":
            words.append(str(message["content"]))
    return iter(words)


class Fault(Protocol):
    """What goes wrong with the first hub of a talk."""

    def words(self) -> Sequence[str]:
        """The arguments of Python that start the program with it."""
        ...


@dataclass
class Talk:
    """The talk in the home of ``limpet``; ``ends`` are the exit codes of its hubs, negative for a signal."""

    limpet: Limpet
    door: Door
    plan: Fault
    ends: list[int] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    due: int = 0

    async def run(self) -> None:
        """Say all of it, starting the hub again whenever it ends, and stop it in peace."""
        async with ModelServer(model) as server:
            self.limpet.configure(_under_top(self.door.settings(self.limpet), _SETTINGS.format(url=server.url)))
            (self.limpet.home / "limpet.toml").chmod(0o600)
            talking = asyncio.create_task(self._say())
            try:
                async with asyncio.timeout(SECONDS):
                    while not (talking.done() and self.ends and self.ends[-1] == 0):
                        await self._serve(talking)
                    await talking
            except TimeoutError:
                raise AssertionError(f"{self.plan}: an answer never came: {self._told()}") from None
            finally:
                talking.cancel()

    async def _say(self) -> None:
        expected = iter(EXPECTED)
        if not self.door.keeps:
            await self._say_until_stored(STEPS[0][0])
        for step in STEPS:
            for text in step:
                if self.door.keeps or step != STEPS[0]:
                    self.door.says(text)
            last = COMPACTED if step == ("/compact",) else _NUMBER.findall(step[-1])[0]
            until = [*_through(expected, "#229" if "story" in step[-1] else last)]
            self.due += len(until)
            while len(self.answers()) < self.due:
                await asyncio.sleep(0.01)

    async def _say_until_stored(self, text: str) -> None:
        """As a person does who is not heard: again, once somebody listens again."""
        while not self._rows("SELECT 1 FROM inbox"):
            await self.door.ready()
            ended = len(self.ends)
            self.door.says(text)
            while not self._rows("SELECT 1 FROM inbox") and len(self.ends) == ended:
                await asyncio.sleep(0.01)

    async def _serve(self, talking: asyncio.Task[None]) -> None:
        """One hub, until it ends or all was said; the first goes by the plan, and those after it are whole."""
        assert len(self.ends) < 4, f"{self.plan}: a crash loop: {self._told()}"
        words = None if self.ends else self.plan.words()
        hub = Hub(await self.limpet._start("run", program=words))
        reading = asyncio.create_task(hub.read())
        ended = asyncio.create_task(hub.process.wait())
        try:
            await asyncio.wait([ended, talking], return_when=asyncio.FIRST_COMPLETED)
            if talking.done():
                await self._settled(hub, ended)
                if not ended.done():
                    hub.process.send_signal(signal.SIGTERM)
            self.ends.append(await ended)
        finally:
            if hub.process.returncode is None:
                hub.process.kill()
                await hub.process.wait()
            await reading
            self.log += hub.log

    async def _settled(self, hub: Hub, ended: asyncio.Task[int]) -> None:
        """The hub serves, and nothing is left to send or to answer; or it is gone."""
        while not ended.done() and (not any("hub.started" in line for line in hub.log) or self.open_rows()):
            await asyncio.sleep(0.01)

    def open_rows(self) -> int:
        unsent = self._rows("SELECT 1 FROM outbox WHERE state <> 'sent'")
        return len(self._rows("SELECT 1 FROM inbox WHERE NOT done")) + len(unsent)

    def _rows(self, sql: str) -> list[Any]:
        """Of the state; none where there is none yet."""
        path = self.limpet.home / "state" / "limpet.sqlite"
        try:
            with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
                return database.execute(sql).fetchall()
        except sqlite3.OperationalError:
            return []

    def answers(self) -> list[str]:
        """The numbers that are seen in the chat, in order; a part that was announced to come again counts once."""
        numbers: list[str] = []
        for text in self.seen():
            numbers += _NUMBER.findall(text) or [COMPACTED]
        return numbers

    def seen(self) -> Iterator[str]:
        shown = self.door.shown()
        for at, text in enumerate(shown):
            announced = at > 0 and shown[at - 1] == REPEATED
            if text == REPEATED:
                assert not self.door.settles, "the platform can tell, so nobody has to be warned"
            elif not (announced and at > 1 and text == shown[at - 2]):
                yield text

    def check(self, *, notes: int = 1) -> None:
        """Nothing was lost, nothing was answered twice, and the order was kept.

        ``notes`` is how often each note may be there at most: a model that hears that a write failed writes again.
        What a flush could not write is marked for a later one.
        """
        told = f"{self.plan}: {self._told()}"
        assert self.answers() == EXPECTED, told
        assert self.open_rows() == 0, told
        noted = self.limpet.notes()
        (path,) = self.limpet.home.glob("state/agents/main/sessions/*.jsonl")
        entries = Transcript(path, "").entries()
        later = any(entry.kind == "flushed" and entry.body["outcome"] == "failed" for entry in entries)
        assert 1 <= noted.count(FACT) <= notes, f"{told}\n{noted}"
        assert (0 if later and notes > 1 else 1) <= noted.count(FLUSHED) <= notes, f"{told}\n{noted}"
        said = [str(entry.body["text"]) for entry in entries if entry.kind == "user"]
        assert [number for text in said for number in _NUMBER.findall(text)] == [f"#{n}" for n in range(1, 8)], told

    def _told(self) -> str:
        return f"hubs ended with {self.ends}; seen {self.answers()}\n{''.join(self.log)}"


def _through(numbers: Iterator[str], last: str) -> Iterator[str]:
    for number in numbers:
        yield number
        if number == last:
            return


def _under_top(sections: str, more: str) -> str:
    """``more`` behind ``sections``, whose first line belongs to the top of the file."""
    return f"{sections}\n{more}"
