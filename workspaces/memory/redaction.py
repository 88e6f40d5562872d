"""Takes secrets out of a text before it touches the disk. Knows no file.

It errs on the side of taking out: a password that is a plain word is taken for one only after "is", ":" or "=".
"""

from __future__ import annotations

import re

from workspaces.key_shapes import KEY

WITHHELD = "[secret withheld]"

_LOGIN = re.compile(r"(?<=://)([^\s:/@]+):([^\s/@]+)(?=@)")
_NAMED = re.compile(
    r"""(?ix)
    (?<!\[)\b(pass(?:word|phrase|code|wd)s?|passwort|kennwort|mot\ de\ passe|contraseña|pin(?:\ code)?|secret|token
      |(?:api|access|secret|private)[ _-]?key)\b
    (?P<link>["'`*]{0,3}\s{0,8}(?:[:=]|->|\bis\b|\bwas\b|\bare\b|\bist\b|\best\b|\bes\b)?\s{0,8})
    ["'`*]*(?P<value>[^\s"'`*]+)
    """
)
_PLAIN_WORDS = """
    a an the in on at for to of and or not no my your our his her their its it same stored kept saved known written
    hidden changed different safe there here with by under now still wrong right required needed expired reset too
    very also only what who where when how if that this long short good bad good one none empty missing gone lost
    forgotten
"""
_PLAIN = frozenset(_PLAIN_WORDS.split())
"""Words after "the password is" that go on with the sentence."""


def redacted(text: str) -> tuple[str, int]:
    """``text`` with each secret replaced, and how many there were."""
    return redacted_within(text, 0, len(text))


def redacted_within(text: str, start: int, end: int) -> tuple[str, int]:
    """The same, but only what lies between two offsets is replaced: the text around it tells what it is."""
    parts, done, count = [], 0, 0
    for first, last in _secrets(text):
        first, last = max(first, start), min(last, end)
        if first < last:
            parts += [text[done:first], WITHHELD]
            done, count = last, count + 1
    return "".join([*parts, text[done:]]), count


def _secrets(text: str) -> list[tuple[int, int]]:
    """Where secrets begin and end, from the first to the last, none within another."""
    found = [match.span() for match in KEY.finditer(text)]
    named = [(m.start("value"), m["link"], m["value"].rstrip(".,;!?)")) for m in _NAMED.finditer(text)]
    for first, last in [
        *(match.span(2) for match in _LOGIN.finditer(text)),
        *((at, at + len(value)) for at, link, value in named if value and _is_secret(link, value)),
    ]:
        if not text.startswith("[secret", first) and all(last <= start or first >= end for start, end in found):
            found.append((first, last))
    return sorted(found)


def _is_secret(link: str, value: str) -> bool:
    """Told by the link when there is one, else by the look: a letter run with a digit or sign among it."""
    told = link.strip("\"'`* \t\n")
    if told in (":", "=", "->"):
        return True
    if told:
        return value.casefold() not in _PLAIN
    return len(value) >= 4 and any(ch.isalpha() for ch in value) and any(not ch.isalpha() for ch in value[1:])
