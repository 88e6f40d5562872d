"""The files: found, read, compared and written again. Knows no channel."""

from __future__ import annotations

import dataclasses
import difflib
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

Json: TypeAlias = Any
Way: TypeAlias = Literal["in", "out"]

HERE = Path(__file__).parent

ANSWERS: dict[Way, str] = {"in": "event", "out": "calls"}
"""The key of the second half of a pair."""

_SURROGATE = re.compile("[\ud800-\udfff]")

Recorder: TypeAlias = Callable[[Way, dict[str, Json], Path], Awaitable[Json]]
"""The second half for the first; the folder is for files."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One file."""

    path: Path

    @property
    def channel(self) -> str:
        return self.path.parent.parent.name

    @property
    def way(self) -> Way:
        return "in" if self.path.parent.name == "in" else "out"

    @property
    def name(self) -> str:
        return f"{self.channel}/{self.way}/{self.path.stem}"

    def read(self) -> dict[str, Json]:
        content: dict[str, Json] = json.loads(self.path.read_text())
        return content

    async def recorded(self, recorder: Recorder, folder: Path) -> dict[str, Json]:
        """The pair with the second half that belongs to its first."""
        content = self.read()
        content.pop(ANSWERS[self.way], None)
        return content | {ANSWERS[self.way]: await recorder(self.way, content, folder)}

    def write(self, content: dict[str, Json]) -> None:
        self.path.write_text(_shown(content))


def pairs() -> list[Pair]:
    return [Pair(path) for path in sorted(HERE.glob("*/*/*.json"))]


def difference(expected: Json, found: Json) -> str:
    """Line by line; "" for none."""
    lines = difflib.unified_diff(_shown(expected).splitlines(), _shown(found).splitlines(), "file", "now", lineterm="")
    return "\n".join(lines)


def plain(value: Any) -> Json:
    """A neutral value with its type, and without the fields that are as they always are."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    if dataclasses.is_dataclass(value):
        said = {
            field.name: plain(own) for field in dataclasses.fields(value) if (own := _own(value, field)) is not None
        }
        return {"type": type(value).__name__} | said
    return value


def _own(value: Any, field: dataclasses.Field[Any]) -> Any:
    own = getattr(value, field.name)
    return None if own == field.default else own


def _shown(content: Json) -> str:
    text = json.dumps(content, indent=1, ensure_ascii=False)
    return _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text) + "\n"
