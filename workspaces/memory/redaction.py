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
    text, keys = KEY.subn(WITHHELD, text)
    text, logins = _LOGIN.subn(rf"\1:{WITHHELD}", text)
    count = keys + logins

    def named(match: re.Match[str]) -> str:
        nonlocal count
        value = match["value"].rstrip(".,;!?)")
        if not value or value.startswith("[secret") or not _is_secret(match["link"], value):
            return match[0]
        count += 1
        at = match.start("value") - match.start()
        return match[0][:at] + WITHHELD + match[0][at + len(value) :]

    return _NAMED.sub(named, text), count


def _is_secret(link: str, value: str) -> bool:
    """Told by the link when there is one, else by the look: a letter run with a digit or sign among it."""
    told = link.strip("\"'`* \t\n")
    if told in (":", "=", "->"):
        return True
    if told:
        return value.casefold() not in _PLAIN
    return len(value) >= 4 and any(ch.isalpha() for ch in value) and any(not ch.isalpha() for ch in value[1:])
