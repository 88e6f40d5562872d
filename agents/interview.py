"""The first-run interview: name, language and time zone, asked once and one at a time.

Led by the program, so that it works the same with any model and with none. BOOTSTRAP.md marks that it is still to be
held. Whoever would rather just talk is not stopped: a reply that is no answer ends it for good.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from zoneinfo import available_timezones

from workspaces.profile import LANGUAGE, NAME, TIME_ZONE, Profile, read_profile, write_profile
from workspaces.workspace import INTERVIEW, Workspace

_HELLO = "Hello! I'm new here. I keep what you ask me to remember as plain Markdown files on your own disk."
_NAME = "What should I call you? (Or just start talking.)"
_LANGUAGE = "Nice to meet you, {name}. Which language shall we speak?"
_ZONE = "And your time zone? A city such as Berlin or New York will do. (This machine says {zone}: say yes to take it.)"
_DONE = "Thank you. It is all in USER.md, where you can change it. Tell me something to remember, or ask me anything."

_GREETING = re.compile(
    r"^(?:hi|hello|hey|hiya|good (?:morning|evening|afternoon|day)|hallo|hola|salut|ciao|/start)\b[\s!.,]*\w*[!.]*$",
    re.IGNORECASE,
)
_LONGEST_GREETING = 60

_SAID_NAME = re.compile(r"^(?:i'?m|i am|my name is|call me|it'?s|this is|you can call me)\s+(.+?)[.!]*$", re.IGNORECASE)
_NAME_LIKE = re.compile(r"^[^\W\d_][\w'’.-]*(?: [^\W\d_][\w'’.-]*){0,3}$")
_SENTENCE = re.compile(
    r"\b(?:remember|note|save|tell|what|who|when|where|why|how|show|list|forget|please|can|could|is|are|do|does|the|my|"
    r"your|an?|help|no|not|nothing|thanks?|yes|ok|okay|hi|hello|hey|later|skip)\b",
    re.IGNORECASE,
)
"""Words of a sentence rather than of a name."""


def is_greeting(text: str) -> bool:
    """Whether a message only says hello."""
    said = text.strip()
    return len(said) <= _LONGEST_GREETING and bool(_GREETING.match(said))


@dataclass(frozen=True, slots=True)
class Interview:
    """The interview with the owner of one workspace. ``zone`` is the machine's, offered as the default."""

    workspace: Workspace
    zone: str

    @property
    def is_due(self) -> bool:
        return (self.workspace.root / INTERVIEW).exists()

    def opening(self) -> str:
        """What is said first."""
        question = self._question(read_profile(self.workspace.root))
        return f"{_HELLO} {question}" if question else self._end()

    def reply(self, asked: str, text: str) -> str | None:
        """Take ``text`` as the answer to ``asked``, what was said last, and return what to say next.

        None when it is no answer: the interview is over and the message is to be treated like any other.
        """
        field = self._asked(asked)
        value = {NAME: _name, LANGUAGE: _language, TIME_ZONE: self._time_zone}[field](text.strip()) if field else None
        if field is None or value is None:
            self._end()
            return None
        write_profile(self.workspace.root, {field: value})
        return self._question(read_profile(self.workspace.root)) or self._end()

    def _question(self, profile: Profile) -> str | None:
        if not profile.name:
            return _NAME
        if not profile.language:
            return _LANGUAGE.format(name=profile.name)
        return None if profile.time_zone else _ZONE.format(zone=self.zone)

    def _asked(self, asked: str) -> str | None:
        if asked.endswith(_NAME):
            return NAME
        if asked.endswith(_LANGUAGE.rpartition("}.")[2]):
            return LANGUAGE
        return TIME_ZONE if asked.endswith(_ZONE.format(zone=self.zone)) else None

    def _end(self) -> str:
        self.workspace.end_interview()
        return _DONE

    def _time_zone(self, text: str) -> str | None:
        if text.lower().rstrip(".!") in ("yes", "y", "ok", "okay", "yes please", "sure", "right"):
            return self.zone
        return _zone_named(text.rstrip(".!"), sorted(available_timezones()))


def _name(text: str) -> str | None:
    said = _SAID_NAME.match(text)
    name = said[1] if said else text.rstrip(".!")
    if not _NAME_LIKE.match(name) or len(name) > 60 or _SENTENCE.search(name):
        return None
    return name


def _language(text: str) -> str | None:
    language = text.rstrip(".!").removeprefix("in ").strip()
    words = language.split()
    if not words or len(words) > 3 or any(not word.strip("(),-").isalpha() for word in words):
        return None
    return None if _SENTENCE.search(language) else language


def _zone_named(text: str, zones: Sequence[str]) -> str | None:
    """The zone whose name or city ``text`` is: "Europe/Berlin", "berlin", "New York"."""
    wanted = "_".join(text.lower().split())
    exact = next((zone for zone in zones if zone.lower() == wanted), None)
    cities = (zone for zone in zones if "/" in zone and not zone.startswith(("Etc/", "posix/", "right/")))
    return exact or next((zone for zone in cities if zone.lower().rpartition("/")[2] == wanted), None)
