"""Text as the numbers of a vocabulary's pieces: byte-pair encoding as the tokenizer of Llama 2 has it.

A piece never reaches from one word into the next, so each word is worked out once and kept. It does without a library:
to load one and its tables costs a search from the shell five times the CPU. A test holds it against the library's.
"""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Mapping
from pathlib import Path

_SPACE = "▁"
_WORD = re.compile("▁+[^▁]*")
_FIRST_BYTE = 3
"""The number of the piece for byte 0, which stands before the pieces for text; 0 to 2 are marks that text never has."""

_KEPT = 20_000
"""Words whose pieces are kept: about 5 MB. When there are more, all are forgotten."""

_LONGEST_KEPT = 40
"""Characters. Longer runs (of CJK, of base64) hardly come twice."""


class Pieces:
    """May be used by several threads at once."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        """``vocabulary`` has the number of each piece; the lower it is, the earlier two parts join to that piece."""
        self._numbers = vocabulary
        self._known: dict[str, tuple[int, ...]] = {}

    @classmethod
    def read(cls, path: Path) -> Pieces:
        """From a tokenizer.json of the ``tokenizers`` library. Raises OSError, and ValueError for another file."""
        text = path.read_text("utf-8")
        start = text.index("{", text.index('"vocab"'))
        return cls(json.JSONDecoder().raw_decode(text, start)[0])  # the merges after it say nothing new

    def of(self, text: str) -> list[int]:
        """The numbers of the pieces, without marks; none for an empty text."""
        numbers: list[int] = []
        if text:
            for word in _WORD.findall(_SPACE + text.replace(" ", _SPACE)):
                numbers += self._known.get(word) or self._learn(word)
        return numbers

    def _learn(self, word: str) -> tuple[int, ...]:
        numbers = tuple(n for part in self._joined(word) for n in self._of_part(part))
        if len(word) <= _LONGEST_KEPT:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[word] = numbers
        return numbers

    def _of_part(self, part: str) -> list[int]:
        """One number, or those of its bytes for a character that the vocabulary has not."""
        number = self._numbers.get(part)
        return [number] if number is not None else [_FIRST_BYTE + b for b in part.encode("utf-8", "replace")]

    def _joined(self, word: str) -> list[str]:
        """The word in pieces: of all neighbours the pair with the lowest number joins, the leftmost of equals."""
        parts = list(word)
        after = list(range(1, len(parts) + 1))  # by where a part starts: where the next one does
        before = list(range(-1, len(parts) - 1))
        waiting: list[tuple[int, int, str]] = []

        def offer(left: int, right: int) -> None:
            pair = parts[left] + parts[right]
            if (number := self._numbers.get(pair)) is not None:
                rank = number if pair.strip(_SPACE) else number + len(self._numbers)  # runs of spaces join last
                heapq.heappush(waiting, (rank, left, pair))

        for left in range(len(parts) - 1):
            offer(left, left + 1)
        while waiting:
            _, left, pair = heapq.heappop(waiting)
            right = after[left]
            if not parts[left] or right == len(word) or parts[left] + parts[right] != pair:
                continue  # one of the two has joined another since
            parts[left], parts[right] = pair, ""
            after[left] = after[right]
            if after[left] < len(word):
                before[after[left]] = left
                offer(left, after[left])
            if before[left] >= 0:
                offer(before[left], left)
        return [part for part in parts if part]
