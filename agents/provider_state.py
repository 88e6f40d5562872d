"""What a provider wants back unchanged with the calls that followed it: signed or sealed thinking.

It is streamed in pieces, in one of two forms: Anthropic's thinking blocks, as litellm gives them for every provider
that has such, and OpenRouter's reasoning details. Both are put together and kept as they are; nobody reads them but
the model that wrote them. Knows no transport.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

Field: TypeAlias = Literal["thinking_blocks", "reasoning_details"]

FIELDS: tuple[Field, ...] = ("thinking_blocks", "reasoning_details")
"""Where the two forms stand in a message, in both directions."""

_STREAMED = ("thinking", "text", "summary")
"""Fields that come piece by piece; any other is whole, and its last value counts."""

_SEALED = ("signature", "data")
"""What ends a thinking block; one without it is not taken back."""


class StateAssembler:
    """Takes the pieces of one answer in the order in which they come."""

    def __init__(self) -> None:
        self._blocks: list[dict[str, Any]] = []

    def add(self, pieces: Sequence[Mapping[str, Any]]) -> None:
        """The entries that one delta has in a field of ``FIELDS``."""
        for piece in pieces:
            if not isinstance(piece.get("type"), str):
                continue
            if self._blocks and _continues(self._blocks[-1], piece):
                _join(self._blocks[-1], piece)
            else:
                self._blocks.append({name: value for name, value in piece.items() if value is not None})

    def blocks(self) -> tuple[Mapping[str, Any], ...]:
        """The blocks to keep, in order."""
        return tuple(_kept(block) for block in self._blocks if field_of(block) != "thinking_blocks" or _sealed(block))


def field_of(block: Mapping[str, Any]) -> Field:
    """The field in which ``block`` goes back."""
    return "reasoning_details" if str(block.get("type")).startswith("reasoning.") else "thinking_blocks"


def _continues(block: Mapping[str, Any], piece: Mapping[str, Any]) -> bool:
    if block["type"] != piece["type"] or block.get("index") != piece.get("index"):
        return False
    return not (_sealed(block) and any(piece.get(name) for name in (*_STREAMED, "data")))


def _join(block: dict[str, Any], piece: Mapping[str, Any]) -> None:
    for name, value in piece.items():
        if name in _STREAMED and isinstance(value, str):
            block[name] = str(block.get(name) or "") + value
        elif value:
            block[name] = value


def _sealed(block: Mapping[str, Any]) -> bool:
    return any(block.get(name) for name in _SEALED)


def _kept(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """Without the place in the stream, which Anthropic's blocks don't have; OpenRouter's are taken back with it."""
    if field_of(block) == "reasoning_details":
        return block
    return {name: value for name, value in block.items() if name != "index"}
