"""Words as the keyword leg sees them: which carry meaning, and how scripts without spaces become searchable.

Text in Chinese, Japanese, Korean, Thai and the like is indexed as overlapping pairs of characters, so that two
characters are enough to find a line and any shared pair counts; an emoji is a word of its own. Knows no index.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

_STOP_WORDS = """
    a about above after again against all also am an and any are aren't as at be because been before being below
    between both but by can can't cannot could couldn't did didn't do does doesn't doing don't done down during each
    either else ever few for from further had hadn't has hasn't have haven't having he he'd he'll he's hello her
    here here's hers herself hey hi him himself his how how's i i'd i'll i'm i've if in into is isn't it it's its
    itself just let let's may me might mine more most must my myself neither no nor not now of off ok okay on once
    only or other our ours ourselves out over own please same shall she she'd she'll she's should shouldn't so some
    such than thank thanks that that's the their theirs them themselves then there there's these they they'd they'll
    they're they've this those through to too under until up upon us very was wasn't we we'd we'll we're we've were
    weren't what what's when when's where where's whether which while who who's whom whose why why's will with won't
    would wouldn't yes you you'd you'll you're you've your yours yourself yourselves s t ll re ve
"""
STOP = frozenset(_STOP_WORDS.split())
"""English words that say nothing about what is looked for (the usual list, with contractions)."""

_WEAK_WORDS = """
    actually ago always anyone anything ask asked asking back become call called calling calls came come comes
    coming describe discuss discussed enjoy everything explain favorite favourite feel felt find first found gave
    get gets getting give given gives go goes going gone good got great happen happened happens hear heard help
    information keep kept kind kinds knew know known knows last later like liked likes list little long look looked
    looking lot made make makes making many maybe mean means mention mentioned much name named names need needed
    needs never new next note noted notes number old one ones people person put really recall recently remember
    remembered remind said saw say saying says see seen show something sort still stuff take taken takes talk talked
    tell telling tells thing things think thinking thought time times told took try trying type types use used uses
    using usually want wanted wants way ways well went word words year years yesterday today tomorrow day days
    helpful nice morning evening night
"""
WEAK = frozenset(_WEAK_WORDS.split())
"""Words that a question is made with ("what is my dog *called*"): they support a find, and don't make one."""

_DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, Han, Kana and Hangul: scripts without spaces, or with spaces at other places."""


@cache
def _dense() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A run of such letters, and a word that has one. (Made for the first text that may have some: 10 ms of CPU.)"""
    return re.compile(rf"[{_DENSE}]+"), re.compile(rf"[^\W{_DENSE}]*[{_DENSE}][\w{_DENSE}]*")


_ENDINGS = ("ings", "ing", "ies", "edly", "ed", "es", "ly", "s", "e", "y")

_LABEL = re.compile(
    r"\s*(?:[-*+]|\d{1,9}[.)])?\s*(?:\d\d:\d\d\s+)?[*_]*([^\s:*_][^:\n]{0,39}?)[*_]*[:\uff1a][*_]*(?=\s|$)"
)
"""A name and a colon at the beginning of a line, also in bold: "- 10:05 Ada: ...", "**Shoe size**: 38"."""

_ITEM = re.compile(r"([-*+]|\d{1,9}[.)])[ \t]")


_NO_WORD = {code: " " for code in range(128) if not chr(code).isalnum() and chr(code) != "'"}


def words(text: str) -> list[str]:
    """The words of ``text`` in lower case, a trailing "'s" removed; marks stay with their letters."""
    if text.isascii():
        spaced = text.lower().translate(_NO_WORD)
    else:
        plain = unicodedata.normalize("NFC", text).lower().replace("’", "'")
        spaced = "".join(ch if ch == "'" or unicodedata.category(ch)[0] in "LNM" else " " for ch in plain)
    found = (word.strip("'").removesuffix("'s") for word in spaced.split())
    return [word for word in found if word]


def runs(text: str) -> list[str]:
    """The stretches of ``text`` that are written without spaces, marks removed."""
    if text.isascii():
        return []
    return _dense()[0].findall("".join(ch for ch in _plain(text) if unicodedata.category(ch)[0] != "M"))


def without_runs(text: str) -> str:
    """The rest of it."""
    return text if text.isascii() else _dense()[0].sub(" ", text)


def pairs(run: str) -> list[str]:
    """Neighbouring characters, two by two; the one character of a run of one."""
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def emoji(text: str) -> list[str]:
    """A word for each pictograph: "u1f3a9" for a top hat."""
    if text.isascii():
        return []
    return [f"u{ord(ch):x}" for ch in text if ch > "\u2000" and unicodedata.category(ch) == "So"]


def grams(text: str) -> str:
    """What the keyword index gets beside ``text``, separated by spaces; "" for most text.

    Pairs of characters, each run's last character (so that a single one is found as the beginning of a pair), the
    words of other scripts that touch such a run, and emoji.
    """
    if text.isascii():
        return ""
    found: list[str] = []
    for run in runs(text):
        found += pairs(run)
        found.append(run[-1])
    dense, mixed = _dense()
    for word in mixed.findall(_plain(text)):
        found += dense.sub(" ", word).split()
    return " ".join([*found, *emoji(text)])


def tokens(text: str) -> int:
    """About how many tokens a model sees in it: four bytes of UTF-8 each."""
    return (len(text if text.isascii() else text.encode("utf-8", "replace")) + 3) // 4


def stem(word: str) -> str:
    """The word without the first of the usual English endings that leaves three letters of it: a poor man's stem."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def label(text: str) -> str:
    """The name that ``text`` begins with, as in "- 10:05 Ada: ..."; "" where it has none."""
    match = _LABEL.match(text)
    return match[1] if match else ""


def is_item(text: str) -> bool:
    """Whether it is an item of a list."""
    return _ITEM.match(text) is not None


def asks(text: str) -> bool:
    """Whether it ends in a question mark, so that the answer is rather in another line."""
    return text.rstrip(" \t\n*_\"')]").endswith(("?", "\uff1f", "\u061f"))


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).lower()
