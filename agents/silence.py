"""What of an answer is said: silence is told from words, and directives are taken out, whole or as a stream.

An answer of exactly NO_REPLY, in any case and whatever white space, markup or punctuation is around it, is silence. On
a line of its own at the start or the end, or behind the last sentence, it is left out; inside a sentence it is text.
What has been streamed is always a beginning of what is said in the end. Knows no channel.
"""

from __future__ import annotations

import re

SILENT = "NO_REPLY"

_BEFORE = " \t\n\r*_~`\"'“”„‘’«»([{<>#|-–—"
_AFTER = " \t\n\r*_~`\"'“”‘’«»)]}>.!?…,;:|"
_SENTENCE_ENDS = ".!?…:;)]}\"'”’»*_`~。！？"

_SPELT = r"NO\\?_REPLY"  # a model that writes Markdown may escape the line
_LAST = re.compile(rf"{_SPELT}\Z", re.IGNORECASE)
_FIRST_LINE = re.compile(rf"[{re.escape(_BEFORE)}]*+{_SPELT}[{re.escape(_AFTER.replace(chr(10), ''))}]*+\n\s*", re.I)
_BEGUN = re.compile(r"N(?:O(?:\\?(?:_(?:R(?:E(?:P(?:L)?)?)?)?)?)?)?\Z", re.IGNORECASE)
_LONGEST = len(SILENT) + 1

_DIRECTIVE = re.compile(
    r"\[\[[ \t]{0,4}(?:reply_to\w{0,20}|audio_as_voice|no_?reply|silent|react\w{0,20}|tts\w{0,20})[ \t]{0,4}"
    r"(?::[^\[\]\n]{0,60})?\]\]",
    re.IGNORECASE,
)
"""Orders to the program that models know from other assistants. A link between notes, [[Ada]], is none."""

_LONGEST_DIRECTIVE = 120


def spoken(text: str) -> str:
    """What of an answer is said to people; "" for silence."""
    stream = SpokenStream()
    return stream.feed(text) + stream.end()


def is_silent(text: str) -> bool:
    """Whether an answer is silence. An empty one is not: nothing was answered yet."""
    return bool(text.strip()) and not spoken(text)


def may_be_silent(asked: str, *, is_direct: bool) -> bool:
    """Whether ``asked`` may be left without an answer: never a question or a wish in a direct chat."""
    from agents.intent import Talk, intent  # silence is rare, and what it takes to tell a wish is not

    return not is_direct or (isinstance(intent(asked), Talk) and not re.search(r"[?？؟]", asked))


class SpokenStream:
    """Passes on what is sure to be said, piece by piece, however the answer was cut into pieces.

    The pieces joined are ``spoken`` of the whole, which has no spaces or line ends around it.
    """

    def __init__(self) -> None:
        self._raw = ""
        """Not looked at yet: it may become a directive."""
        self._held = ""
        """Free of directives, and not given out: it may become silence."""
        self._last = ""
        """The last character given out, "" before the first."""

    def feed(self, piece: str) -> str:
        self._raw += piece
        sure = _before_directive(self._raw)
        self._held += _DIRECTIVE.sub("", self._raw[:sure])
        self._raw = self._raw[sure:]
        return self._given()

    def end(self) -> str:
        """What was held back and is said after all."""
        self._held += self._raw
        self._raw = ""
        given = self._given()
        held, self._held = self._held, ""
        return given + self._rest(held).rstrip() if self._last else self._rest(held).strip()

    def _given(self) -> str:
        at = _before_silence(self._held)
        if not self._last and at > 0 and (line := _FIRST_LINE.match(self._held)):
            self._held = self._held[line.end() :]
            return self._given()
        given, self._held = self._held[:at], self._held[at:]
        if not self._last:
            given = given.lstrip()
        self._last = given[-1:] or self._last
        return given

    def _rest(self, held: str) -> str:
        """What is said of the end of an answer that may be silence."""
        words = held.rstrip(_AFTER)
        token = _LAST.search(words, max(0, len(words) - _LONGEST))
        if token is None:
            return held
        if not self._last:
            return ""
        lead = held[: token.start()]
        kept = lead[: len(lead) - len(lead.lstrip("".join(set(_BEFORE) - set(" \t\n\r"))))]
        gap = lead[len(kept) :]
        ends = (self._last + kept)[-1] in _SENTENCE_ENDS
        is_alone = "\n" in gap or (gap[:1].isspace() and ends)
        return kept if is_alone and "```" not in lead else held


def _before_directive(text: str) -> int:
    """How much of ``text`` can be looked at: all but a directive that has only begun."""
    start = text.rfind("[[")
    if start >= 0 and len(text) - start <= _LONGEST_DIRECTIVE and not re.search(r"\]\]|\n", text[start:]):
        return start
    return len(text) - text.endswith("[")


def _before_silence(text: str) -> int:
    """How much of ``text`` is sure not to belong to a silent end: all but white space, markup and the token begun."""
    words = text.rstrip(_AFTER)
    token = _LAST.search(words, max(0, len(words) - _LONGEST))
    begun = token or _BEGUN.search(text, max(0, len(text) - _LONGEST))
    return len(text[: begun.start() if begun else len(text)].rstrip(_BEFORE))
