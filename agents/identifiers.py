"""The exact strings in a conversation that must survive being summed up: links, addresses, paths, codes, numbers.

A name can be told in other words; these are worth nothing when one character is lost. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_SHAPES = re.compile(
    r"""(?x)
      \bhttps?://[^\s<>"'`)\]]{0,300}[^\s<>"'`)\].,;:!?]                    # a link
    | (?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}          # an address
    | (?<![\w/.~])(?:~|\.{1,2})?/(?:[\w.-]{1,100}/){1,20}[\w.-]{0,100}\w   # a path from the root, home or here
    | (?<![\w/.~])(?:~|\.{1,2})/[\w.-]{0,100}\w
    | (?<![\w/.~-])(?:[\w-]{1,100}/){1,20}[\w.-]{1,100}\.\w{1,8}\b         # a file in a folder
    | (?<![\w-])(?=[\w-]{0,80}\d)(?=[\w-]{0,80}[A-Za-z])[A-Za-z0-9]{1,80}(?:[-_][A-Za-z0-9]{1,80}){0,9}\b   # a code
    | (?<![\w.,-])\+?\d[\d ()./-]{3,18}\d(?![\w-])                        # a number to dial or to look up
    """
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d)?|\d{1,2}[./]\d{1,2}[./](?:\d{2}|\d{4})(?: \d\d)?")

SHORTEST = 4
LONGEST = 200
"""Characters: what is shorter is no identifier, what is longer is no line of a summary."""


def identifiers(texts: Iterable[str], most: int) -> tuple[str, ...]:
    """At most ``most`` identifiers, each once: those that come up most often, and of these the newest, first."""
    times: dict[str, int] = {}
    newest: dict[str, int] = {}
    for at, text in enumerate(texts):
        for found in (match[0] for match in _SHAPES.finditer(text)):
            if SHORTEST <= len(found) <= LONGEST and not _DATE.fullmatch(found):
                times[found] = times.get(found, 0) + 1
                newest[found] = at
    return tuple(sorted(times, key=lambda found: (-times[found], -newest[found]))[:most])


def missing(wanted: Iterable[str], text: str) -> tuple[str, ...]:
    """Those of ``wanted`` that ``text`` doesn't have, character for character."""
    return tuple(each for each in wanted if each not in text)
