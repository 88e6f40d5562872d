"""A model's context window and the shares of it: what is left for the answer, what is kept, when to make room.

Formulas of the size alone, so that no setting can put one threshold above another. Knows no message and no model.
"""

from __future__ import annotations

from dataclasses import dataclass

CHARACTERS_PER_TOKEN = 4
"""Of Latin text; see ``agents.budget``."""

MOST_RESERVED = 20_000
MOST_KEPT = 20_000
MOST_AHEAD = 4_000
MOST_PREFIX_CHARACTERS = 60_000

LEAST = 1_024
"""Tokens of the smallest window that is taken: below it, the shares hold no sentence."""


@dataclass(frozen=True, slots=True)
class Window:
    """``context`` is the whole window; everything is in tokens unless its name says characters.

    The shares of a window W that has just been compacted, W/4 prefix + W/16 recall + W/16 summary + W/6 tail, are about
    W/2, well below ``flush_at``: so a compaction is never followed by another at once. For every size
    0 < flush_at < compact_at < W, and soft <= tail: what is said between the two thresholds is still in the tail.
    """

    context: int

    def __post_init__(self) -> None:
        if self.context < LEAST:
            raise ValueError(f"a context window has at least {LEAST:,} tokens, not {self.context:,}: raise context")

    @property
    def reserve(self) -> int:
        """Left for the answer; the most that a call may be allowed to write."""
        return min(MOST_RESERVED, self.context // 4)

    @property
    def tail(self) -> int:
        """The newest turns that stay word for word in a compaction."""
        return min(MOST_KEPT, self.context // 6)

    @property
    def soft(self) -> int:
        """How far ahead of a compaction the flush comes."""
        return min(MOST_AHEAD, self.tail)

    @property
    def compact_at(self) -> int:
        return self.context - self.reserve

    @property
    def flush_at(self) -> int:
        return self.compact_at - self.soft

    @property
    def prefix(self) -> int:
        """What always comes first: rules, tools, bootstrap files and notes."""
        return min(self.context // 4, MOST_PREFIX_CHARACTERS // CHARACTERS_PER_TOKEN)

    @property
    def prefix_characters(self) -> int:
        """The same for a cap that counts characters."""
        return min(MOST_PREFIX_CHARACTERS, self.context // 4 * CHARACTERS_PER_TOKEN)

    @property
    def recall(self) -> int:
        return self.context // 16

    @property
    def summary(self) -> int:
        return self.context // 16

    @property
    def message(self) -> int:
        """The longest single message or result; a longer one is kept as a file and shown as head, tail and path."""
        return self.context // 8

    @property
    def message_characters(self) -> int:
        return self.message * CHARACTERS_PER_TOKEN
