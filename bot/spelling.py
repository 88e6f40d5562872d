"""Finds the word a person meant when they mistyped one: a key, a command, a name."""

from __future__ import annotations

from collections.abc import Iterable


def distance(left: str, right: str) -> int:
    """Edits from ``left`` to ``right``: insert, delete, replace, or swap two neighbours (optimal string alignment)."""
    before: list[int] = []
    last = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        row = [i]
        for j, b in enumerate(right, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]


def closest(word: str, known: Iterable[str]) -> str | None:
    """The word of ``known`` that ``word`` is a misspelling of, or None.

    Two edits are forgiven, in a word of up to three letters only one; case and "-" for "_" cost nothing. Among equally
    near words the one that starts with the same letter wins, then the one of the same length, then the first.
    """
    folded = _fold(word)
    best: tuple[int, bool, int] | None = None
    found = None
    for candidate in known:
        other = _fold(candidate)
        if abs(len(other) - len(folded)) > 2:
            continue
        edits = distance(folded, other)
        rank = (edits, other[:1] != folded[:1], abs(len(other) - len(folded)))
        if edits <= (1 if len(folded) <= 3 else 2) and (best is None or rank < best):
            best, found = rank, candidate
    return found


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The mend for an unknown ``word``: the one that was meant, else what there is."""
    known = list(known)
    found = closest(word, known)
    return f"did you mean {found!r}?" if found else f"there are: {', '.join(known) or 'none'}"


def _fold(word: str) -> str:
    return word.casefold().replace("-", "_")
