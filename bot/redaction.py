"""Keeps secrets out of what is shown and logged: by their value where it is known, by their look where it is not.

Knows no settings and no log. A secret that is shorter than six characters and looks like nothing is not recognised:
taking it out would make holes in ordinary words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from workspaces.key_shapes import KEY

_SHORTEST = 6
REDACTED = "[secret]"

_NAME = re.compile(r"(?:^|[_-])(?:token|key|secret|password|passwd|credentials?)$", re.IGNORECASE)

_CARRIED = re.compile(
    r"(?P<lead>\bBearer\s+|[?&](?:api_?key|key|token|access_token)=)[^\s&\"']{4,}"
    r"|(?P<user>://[^/\s:@]*:)[^/\s@]+(?=@)",
    re.IGNORECASE,
)
"""A secret of any form that its place gives away: a header, a parameter of a query, the password of a URL."""

_SIGNS = ("?", "&", "://")
"""Of which one stands ahead of each of these but a header's."""


def names_a_secret(name: str) -> bool:
    """Whether what is called ``name`` ("api_key", "SLACK_APP_TOKEN") is not to be shown."""
    return bool(_NAME.search(name))


def masked(secret: str) -> str:
    """``secret`` as an owner may see it: enough to tell two apart, the last three characters of a long one."""
    return f"…{secret[-3:]}" if len(secret) >= 12 else "…"


def secrets_of(variables: Mapping[str, str]) -> set[str]:
    """The values of all variables that are called like secrets."""
    return {value for name, value in variables.items() if value and names_a_secret(name)}


class Redactor:
    """Takes secrets out of text. ``values`` are the known ones; each is also found escaped for JSON and for a URL."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        forms = {form for value in values if len(value) >= _SHORTEST for form in _forms(value)}
        longest_first = sorted(forms, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def __call__(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(REDACTED, text)
        text = KEY.sub(REDACTED, text)
        if not any(sign in text for sign in _SIGNS) and "bearer" not in text.lower():
            return text  # as nearly every line of a log: much quicker than to look for each of them everywhere
        return _CARRIED.sub(lambda match: (match["lead"] or match["user"]) + REDACTED, text)


def _forms(value: str) -> set[str]:
    return {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], quote(value, safe="")}
