"""The first-run interview: name, language and time zone, asked one at a time and answered in any order.

Led by the program, so that it works the same with any model and with none. BOOTSTRAP.md marks that it is still to be
held. Whoever would rather just talk is answered, asked once more below the answer, and then never again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from zoneinfo import available_timezones

from workspaces.profile import FIELDS, LANGUAGE, NAME, TIME_ZONE, Profile, read_profile, write_profile
from workspaces.workspace import Workspace

_HELLO = "Hello! I'm new here. I keep what you ask me to remember as plain Markdown files on your own disk."
_NAME = "What should I call you? (Or just start talking.)"
_LANGUAGE = "Which language shall we speak?"
_ZONE = "And your time zone? A city such as Berlin or New York will do. (This machine says {zone}: say yes to take it.)"
_NAME_AGAIN = "By the way, what should I call you?"
_LANGUAGE_AGAIN = "By the way, which language shall we speak?"
_ZONE_AGAIN = "By the way, what is your time zone? (This machine says {zone}: say yes to take it.)"
_ZONE_UNKNOWN = "I know no time zone called {said}.{near} Name the nearest big city, or say skip."
_NEAR = " Did you mean {zone}? Then say yes."
_DONE = "Thank you. It is all in USER.md, where you can change it. Tell me something to remember, or ask me anything."
_LEFT_OPEN = "Then I leave it at that and don't ask again. What you want to fill in later has its lines in USER.md."

_GREETING = re.compile(
    r"^(?:hi|hello|hey|hiya|howdy|yo|greetings|good (?:morning|evening|afternoon|day)|hallo|moin|servus"
    r"|guten (?:tag|morgen|abend)|hola|salut|bonjour|ciao|buongiorno|ol[aá]|hej|привет|你好|こんにちは|/start)"
    r"(?!\w)(?: there)?[\s!.,]*\w*[!.\s👋]*$",
    re.IGNORECASE,
)
_GREETING_FIRST = re.compile(r"^(?:hi|hello|hey|hallo|hola)(?: there| limpet)?[\s,.!]+", re.IGNORECASE)
_LONGEST_GREETING = 60
_LONGEST_ANSWER = 200
_REFUSAL = re.compile(
    r"^(?:no|nope|nah|skip(?: (?:it|this|that))?|later|not now|(?:i'd )?rather not|none|nothing|never mind|stop"
    r"|(?:please )?don'?t ask(?: me)?(?: again)?|no,? thank(?:s| you))(?:[\s,]*please)?[\s.!]*$",
    re.IGNORECASE,
)
_YES = frozenset({"yes", "y", "ok", "okay", "yes please", "sure", "right", "yep", "ja", "correct", "that's right"})

_PIECES = re.compile(r"[,;\n]+|\.\s+|\s+(?:and|und|&)\s+", re.IGNORECASE)
_POLITE = re.compile(r"^(?:and|well|ok|okay|please)\s+|[\s,]*\b(?:please|thanks|thank you)?[\s.!]*$", re.IGNORECASE)
_SAID_NAME = re.compile(
    r"^(?:i'?m|i am|my name(?:'s| is)|(?:you (?:can|may) |please |just )?call me|it'?s|this is|just)\s+(.+)$",
    re.IGNORECASE,
)
_SAID_LANGUAGE = re.compile(
    r"^(?:(?:i|we|let'?s|you)\b.*?\b(?:speak|talk|use|write|prefer|choose)\s+(?:in\s+)?|(?:my )?language(?: is|:)?\s+"
    r"|in\s+|auf\s+)(.+)$",
    re.IGNORECASE,
)
_SAID_ZONE = re.compile(
    r"^(?:(?:i|we)(?:'m|'re| am| are)?\s+(?:in|from|at|near|live in|based in)|(?:my )?(?:time ?zone|city)(?: is|:)?"
    r"|in|from|near)\s+(.+)$",
    re.IGNORECASE,
)
_NAME_LIKE = re.compile(r"^[^\W\d_][\w'’.-]*(?: [^\W\d_][\w'’.-]*){0,3}$")
_ZONE_LIKE = re.compile(r"^[A-Za-z][\w+-]*(?:/[\w+-]+)+$|^(?:UTC|GMT)[\s+-]*\d", re.IGNORECASE)
_SENTENCE = re.compile(
    r"\b(?:remember|note|save|tell|what|who|when|where|why|how|show|list|forget|please|can|could|is|are|do|does|the|my|"
    r"your|an?|help|no|not|nothing|thanks?|yes|ok|okay|hi|hello|hey|later|skip|i|you|we|it|this|that|in|from|at|fine|"
    r"good|great|busy|hungry|tired|bored|new|here|back|sure|test)\b",
    re.IGNORECASE,
)
"""Words of a sentence rather than of a name."""

# fmt: off
_LANGUAGES = frozenset({
    "afrikaans", "albanian", "arabic", "armenian", "basque", "bengali", "bosnian", "bulgarian", "catalan", "chinese",
    "croatian", "czech", "danish", "dutch", "english", "estonian", "farsi", "filipino", "finnish", "french", "galician",
    "georgian", "german", "greek", "hebrew", "hindi", "hungarian", "icelandic", "indonesian", "irish", "italian",
    "japanese", "korean", "latin", "latvian", "lithuanian", "malay", "mandarin", "norwegian", "persian", "polish",
    "portuguese", "punjabi", "romanian", "russian", "serbian", "slovak", "slovenian", "spanish", "swahili", "swedish",
    "tagalog", "tamil", "thai", "turkish", "ukrainian", "urdu", "vietnamese", "welsh",
    "deutsch", "français", "francais", "español", "espanol", "italiano", "português", "portugues", "nederlands",
    "svenska", "dansk", "norsk", "suomi", "polski", "čeština", "magyar", "türkçe", "русский", "українська", "中文",
    "日本語", "한국어", "العربية", "हिन्दी",
})
# fmt: on
"""What is taken for a language also where something else was asked; asked for, any name will do."""


def is_greeting(text: str) -> bool:
    """Whether a message only says hello."""
    said = text.strip()
    return len(said) <= _LONGEST_GREETING and bool(_GREETING.match(said))


@dataclass(frozen=True, slots=True)
class Said:
    """The message was the interview's, and this is the answer to it."""

    text: str


@dataclass(frozen=True, slots=True)
class Aside:
    """The message is to be answered like any other, and this question put once more below the answer."""

    question: str


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was asked last. ``near`` is the zone that was offered for an unknown one, "" for none."""

    field: str
    is_again: bool = False
    near: str = ""


@dataclass(frozen=True, slots=True)
class Interview:
    """The interview with the owner of one workspace.

    ``zone`` is the machine's, offered as the default; ``zone_like`` finds the one that a mistyped name was meant for.
    """

    workspace: Workspace
    zone: str
    zone_like: Callable[[str], str | None] = lambda _: None

    def opening(self, last: str = "") -> str | None:
        """What is said first; ``last`` is what was said last. None, and it is over, for whoever was asked twice."""
        asked = self._asked(last)
        if asked is not None and asked.is_again:
            self.workspace.end_interview()
            return None
        question = self._question(read_profile(self.workspace.root))
        return f"{_HELLO} {question}" if question else self._end()

    def reply(self, last: str, text: str) -> Said | Aside | None:
        """Take ``text`` as an answer to ``last``, which was said last.

        None, and the interview is over, for somebody who would rather talk.
        """
        asked, said = self._asked(last), text.strip()
        if asked is None:
            self.workspace.end_interview()
            return None
        if _REFUSAL.match(said):
            self.workspace.end_interview()
            return Said(_LEFT_OPEN)
        greets = is_greeting(said)
        values = {} if greets else self._values(asked, said)
        if values:
            write_profile(self.workspace.root, values)
            question = self._question(read_profile(self.workspace.root))
            nice = f"Nice to meet you, {values[NAME]}. " if NAME in values and question else ""
            return Said(f"{nice}{question}" if question else self._end())
        is_unknown_zone = asked.field == TIME_ZONE and not greets and self._is_unknown_zone(said)
        if asked.is_again:
            self.workspace.end_interview()
            return Said(_LEFT_OPEN) if is_unknown_zone else None
        if is_unknown_zone:
            near = self.zone_like(said)
            return Said(_ZONE_UNKNOWN.format(said=said, near=_NEAR.format(zone=near) if near else ""))
        return Said(f"Hello! {self._first(asked.field)}") if greets else Aside(self._again(asked.field))

    # What is asked

    def _question(self, profile: Profile) -> str | None:
        """The next question, None when all is known."""
        known = {NAME: profile.name, LANGUAGE: profile.language, TIME_ZONE: profile.time_zone}
        return next((self._first(field) for field, value in known.items() if not value), None)

    def _first(self, field: str) -> str:
        return {NAME: _NAME, LANGUAGE: _LANGUAGE, TIME_ZONE: _ZONE.format(zone=self.zone)}[field]

    def _again(self, field: str) -> str:
        return {NAME: _NAME_AGAIN, LANGUAGE: _LANGUAGE_AGAIN, TIME_ZONE: _ZONE_AGAIN.format(zone=self.zone)}[field]

    def _asked(self, last: str) -> _Asked | None:
        """The question that ``last`` ends in: read from the words, so that it outlives a restart."""
        for field in FIELDS:
            if last.endswith(self._first(field)):
                return _Asked(field)
            if last.endswith(self._again(field)):
                return _Asked(field, is_again=True)
        if last.endswith(_ZONE_UNKNOWN.rpartition("}")[2]):
            near = re.search(_NEAR.format(zone=r"(\S+)").replace("?", r"\?"), last)
            return _Asked(TIME_ZONE, is_again=True, near=near[1] if near else "")
        return None

    def _end(self) -> str:
        self.workspace.end_interview()
        return _DONE

    # What is answered

    def _values(self, asked: _Asked, said: str) -> dict[str, str]:
        """The fields that ``said`` fills, all of it being answers; empty where it is anything else."""
        if len(said) > _LONGEST_ANSWER or said.endswith("?"):
            return {}
        pieces = [piece for piece in _PIECES.split(_GREETING_FIRST.sub("", said)) if _clean(piece)]
        found: dict[str, str] = {}
        for piece in pieces:
            field, value = self._value(asked, _clean(piece), may_be_place=asked.field != NAME or NAME in found)
            if not value or field in found:
                break
            found[field] = value
        else:
            return found
        value = self._as(asked, asked.field, _clean(said))
        return {asked.field: value} if value else {}

    def _value(self, asked: _Asked, said: str, *, may_be_place: bool) -> tuple[str, str]:
        """The field that a piece of an answer fills, and with what; "" for what is no answer.

        ``may_be_place``: a bare word that is a city's is a time zone, and not a name (Paris, Florence).
        """
        named = said if _known_language(said) else _inside(_SAID_LANGUAGE, said)
        if named and (_known_language(named) or asked.field == LANGUAGE):
            return LANGUAGE, _language(named)
        zone = _zone_named(_inside(_SAID_ZONE, said) or (said if may_be_place or "/" in said else ""))
        if zone:
            return TIME_ZONE, zone
        return (NAME, _name(said)) if _inside(_SAID_NAME, said) else (asked.field, self._as(asked, asked.field, said))

    def _as(self, asked: _Asked, field: str, said: str) -> str:
        """``said`` as the value of ``field``; "" where it can't be."""
        if field == NAME:
            return _name(said)
        if field == LANGUAGE:
            return _language(_inside(_SAID_LANGUAGE, said) or said)
        if said.lower() in _YES:
            return asked.near or self.zone
        return _zone_named(said) or _zone_named(said.partition(",")[0])

    def _is_unknown_zone(self, said: str) -> bool:
        """Whether ``said`` is meant for a time zone, and is none."""
        said = _inside(_SAID_ZONE, said) or said
        return bool(_ZONE_LIKE.match(said) or _name(said))


def _clean(said: str) -> str:
    return _POLITE.sub("", said.strip()).strip(" \t.!")


def _inside(pattern: re.Pattern[str], said: str) -> str:
    match = pattern.match(said)
    return match[1] if match else ""


def _name(said: str) -> str:
    name = _inside(_SAID_NAME, said) or said
    return name if _NAME_LIKE.match(name) and len(name) <= 60 and not _SENTENCE.search(name) else ""


def _known_language(said: str) -> bool:
    return said.casefold() in _LANGUAGES


def _language(said: str) -> str:
    words = said.split()
    if not words or len(words) > 3 or any(not word.strip("(),-").isalpha() for word in words):
        return ""
    return "" if _SENTENCE.search(said) else said


def _zone_named(said: str) -> str:
    """The zone whose name or city ``said`` is: "Europe/Berlin", "berlin", "New York"; "" for none."""
    wanted = "_".join(said.lower().split())
    zones: Sequence[str] = sorted(available_timezones()) if wanted else ()
    exact = next((zone for zone in zones if zone.lower() == wanted), "")
    cities = (zone for zone in zones if "/" in zone and not zone.startswith(("Etc/", "posix/", "right/")))
    return exact or next((zone for zone in cities if zone.lower().rpartition("/")[2] == wanted), "")
