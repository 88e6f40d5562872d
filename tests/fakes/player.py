"""A model server's script that plays every part of a long talk: who answers, who notes, who sums up.

It is no model: it finds facts by their form, keeps those that it is shown, and forgets nearly all of them in its
summaries. What nobody may ever be told is marked, so that a leak is seen.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.agents.sessions import is_flush, is_summary
from tests.fakes.model_server import Call, Recorded, Reply

FACT = re.compile(r"The code of the (\w+) is ([A-Z]{3}-\d{4})\.")
ASKED = re.compile(r"What is the code of the (\w+)\?\Z")

UNSPOKEN = "nobody-reads-this"
"""In every text that is no answer to a person."""

SILENCES = ("NO_REPLY", "no_reply.", "**NO_REPLY**", "`NO_REPLY`\n")

SUMMARY = """## Decisions
- {facts}
## Open to-dos
- {unspoken}
## Constraints
- none
## Pending requests
- none
## Identifiers
- none"""

_WORDS = "garden window kettle letter river market summer winter ladder candle basket carpet violin orchard saddle"


def prose(rng: random.Random, words: int) -> str:
    """Sentences about nothing, without an identifier and without a question."""
    text = " ".join(rng.choices(_WORDS.split(), k=words))
    return f"We talked of {text}."


@dataclass
class Player:
    """``fails`` says of a flush or a summary, by its number, whether it goes wrong. ``context`` is in tokens.

    What it was asked: ``flushes`` and ``summaries`` are counted, ``largest`` is the longest request in tokens as it
    counts them, ``spoken`` are its answers to the person, ``silent`` how many of them were silence. ``read`` is what it
    was shown to take notes of.
    """

    context: int = 8_000
    fails: Callable[[str, int], bool] = lambda _what, _number: False
    rng: random.Random = field(default_factory=lambda: random.Random(4))
    flushes: int = 0
    summaries: int = 0
    largest: int = 0
    silent: int = 0
    read: str = ""
    spoken: list[str] = field(default_factory=list)

    def __call__(self, request: Recorded) -> Reply:
        size = len(request.data) // 4
        self.largest = max(self.largest, size)
        if size > self.context:
            return Reply(status=400, body={"error": {"code": "context_length_exceeded", "message": "too long"}})
        usage = (size, 50, 0)
        if is_flush(request):
            return self._flush(request, usage)
        if is_summary(request):
            return self._summary(request, usage)
        return self._answer(request, usage)

    def _flush(self, request: Recorded, usage: tuple[int, int, int]) -> Reply:
        if request.messages[-1]["role"] == "tool":
            return Reply(f"All of it is noted. {UNSPOKEN}", usage=usage)
        self.flushes += 1
        if self.fails("flush", self.flushes):
            return Reply(status=401, body={"error": {"message": "the key is being changed"}})
        self.read += request.messages[-1]["content"]
        facts = _facts(request.messages[-1]["content"])
        if not facts:
            return Reply(self.rng.choice(SILENCES), usage=usage)
        calls = [Call("memory_append", json.dumps({"text": fact}), f"note{n:05d}") for n, fact in enumerate(facts)]
        return Reply(UNSPOKEN, calls, usage=usage)

    def _summary(self, request: Recorded, usage: tuple[int, int, int]) -> Reply:
        """The newest two facts: what is older has to be in the notes."""
        if len(request.messages) == 2:
            self.summaries += 1
        if self.fails("summary", self.summaries):
            return Reply(f"We had a nice talk. {UNSPOKEN}", usage=usage)
        facts = _facts(request.messages[1]["content"])[-2:]
        return Reply(SUMMARY.format(facts=" ".join(facts) or "nothing", unspoken=UNSPOKEN), usage=usage)

    def _answer(self, request: Recorded, usage: tuple[int, int, int]) -> Reply:
        last = request.messages[-1]
        said = str(last["content"])
        if last["role"] == "tool":
            return self._said(prose(self.rng, 20), usage)
        if asked := ASKED.search(said):
            found = re.search(rf"The code of the {asked[1]} is ([A-Z]{{3}}-\d{{4}})\.", request.text)
            return self._said(f"It is {found[1]}." if found else "I don't know.", usage)
        if said.endswith("Look it up."):
            call = Call("read", '{"path": "almanac.md"}', f"read{len(self.spoken):05d}")
            return Reply("", [call], usage=usage)
        if said.endswith("Thanks."):
            self.silent += 1
            return Reply(self.rng.choice(SILENCES), usage=usage)
        return self._said(prose(self.rng, self.rng.randint(5, 180)), usage)

    def _said(self, text: str, usage: tuple[int, int, int]) -> Reply:
        self.spoken.append(text)
        return Reply(text, pieces=[text[: len(text) // 2], text[len(text) // 2 :]], usage=usage)


def _facts(text: str) -> Sequence[str]:
    """The facts in a text, each once, oldest first."""
    return list(dict.fromkeys(match[0] for match in FACT.finditer(text)))
