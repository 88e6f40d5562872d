"""What is asked about the person themselves, and where the answer stands: in USER.md, and in what they told.

"What is my name?" is made of words that are in every second question, and that a search therefore takes for no find.
So for a few such questions the lines are looked for that say it. Knows no model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from workspaces.memory import Hit, Memory
from workspaces.profile import FILE
from workspaces.scope import Scope

MOST_LINES = 200
"""Of USER.md: it is short, or it is no profile."""

MOST_LOOKED_AT = 20
"""Notes with a topic's word in them, of which those that speak of the person are taken."""


@dataclass(frozen=True, slots=True)
class _Topic:
    """``asked`` is the question; ``words`` are looked up, each alone; ``says`` is a line that answers it."""

    asked: re.Pattern[str]
    words: tuple[str, ...]
    says: re.Pattern[str]


def _topic(asked: str, words: str, says: str) -> _Topic:
    flags = re.IGNORECASE | re.VERBOSE
    return _Topic(re.compile(asked, flags), tuple(words.split()), re.compile(says, flags))


_TOPICS = (
    _topic(
        r"\bmy\ (?:full\ |first\ |last\ |sur)?name\b | \bwho\ (?:am\ I|I\ am)\b | \bam\ I\ called\b"
        r"| \byou\ call\ me\b",
        "name called call",
        r"^(?:full\ |first\ |last\ |nick|sur)?names?: | \bmy\ (?:full\ |first\ |last\ |sur)?name\b | \bcall\ me\b"
        r"| \bI(?:'m|\ am)\ called\b",
    ),
    _topic(
        r"\bwhere\ (?:do|did|am)\ (?:I|we)\ (?:live|living|at\ home)\b"
        r"| \bmy\ (?:home\ )?(?:address|town|city|country)\b",
        "live address moved lives",
        r"^(?:lives|living|home|address|city|town|country|location)\b.*: | \b(?:I|we)\ (?:now\ )?live\b"
        r"| \b(?:I|we)(?:'ve|\ have)?\ moved\b | \b(?:my|our)\ (?:home\ )?(?:address|town|city|country)\b",
    ),
    _topic(
        r"^(?:so\W+)?(?:tell\ me\ )?what(?:\ else|\ things|\ kinds?\ of\ things)?\ (?:do\ )?I\ (?:do\ )?"
        r"(?:like|love|enjoy|prefer)(?:\ (?:most|best|doing|to\ do))?\W*$ | \bmy\ (?:likes|hobb(?:y|ies)|interests)\b",
        "like love enjoy prefer favourite favorite hobby",
        r"^(?:likes?|loves?|hobb(?:y|ies)|interests?|favou?rites?)\b.*: | \b(?:I|we)\b.*\b(?:like|love|enjoy|prefer)\b"
        r"| ^favou?rite\b | \b(?:my|our)\ (?:favou?rites?|hobb(?:y|ies)|interests?)\b",
    ),
    _topic(
        r"\b(?:what|which)\ languages?\ (?:do|can|should|shall)\b.*\b(?:I|we)\b | \bmy\ (?:language|mother\ tongue)\b",
        "language speak tongue",
        r"^languages?: | \b(?:I|we)\b.*\bspeak\b | \bmy\ (?:language|mother\ tongue)\b",
    ),
    _topic(r"\bmy\ time\ ?zone\b | \b(?:what|which)\ time\ ?zone\b.*\bI\b", "timezone zone", r"\btime\ ?zone\b"),
    _topic(
        r"\bhow\ old\ am\ I\b | \bmy\ (?:age|birthday)\b | \bwas\ I\ born\b",
        "birthday born age old",
        r"^(?:age|birthday|born|date\ of\ birth)\b.*: | \bI\ was\ born\b | \bmy\ (?:age|birthday)\b"
        r"| \bI(?:'m|\ am)\ \d+\b",
    ),
)

_BULLET = re.compile(r"^\s*(?:[-*+]\s+)?(?:\d\d:\d\d\s+)?")


async def told(question: str, memory: Memory, scope: Scope) -> tuple[Hit, ...]:
    """The lines that answer a question about the person, best first: USER.md's before notes; none for other questions.

    USER.md is home's and is read in its scope only.
    """
    topic = next((topic for topic in _TOPICS if topic.asked.search(question)), None)
    if topic is None:
        return ()
    found = {hit.citation: hit for hit in await _profile(topic, memory, scope)} if scope.is_home else {}
    for word in topic.words:
        for hit in (await memory.search(word, scope=scope, limit=MOST_LOOKED_AT, alone=True)).hits:
            if topic.says.search(bare(hit.text)):
                found.setdefault(hit.citation, hit)
    return tuple(found.values())


async def _profile(topic: _Topic, memory: Memory, scope: Scope) -> Iterator[Hit]:
    excerpt = await memory.get(FILE, scope=scope, lines=MOST_LINES)
    lines = enumerate(excerpt.text.split("\n"), excerpt.start)
    return (
        Hit(FILE, number, number, line, 1.0, None, None, (), None)
        for number, line in lines
        if topic.says.search(bare(line)) and not line.rstrip().endswith(":")
    )


def bare(note: str) -> str:
    """A note as a sentence: without its bullet and the time it was written at."""
    return _BULLET.sub("", " ".join(note.split()), count=1)
