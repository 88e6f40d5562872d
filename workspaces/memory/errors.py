"""Why a write was refused. In every case nothing was written, and the message says what would do.

WriteRefused
├── EmptyNote      there is nothing in the text
├── TooLong        more than one write may hold
├── UnfitName      no name for a file of the memory
└── NotOnePlace    the text to change is nowhere in the file, or in several places
"""

from __future__ import annotations


class WriteRefused(ValueError):
    """Nothing was written."""


class EmptyNote(WriteRefused):
    """There is nothing in the text to note down."""


class TooLong(WriteRefused):
    """The text is longer than one write may be."""


class UnfitName(WriteRefused):
    """The path is within reach, but not a file of the memory, or not a name that every system takes."""


class NotOnePlace(WriteRefused):
    """``lines`` are those that hold the text, counted from 1; where none does, the nearest to it."""

    def __init__(self, message: str, lines: tuple[int, ...]) -> None:
        super().__init__(message)
        self.lines = lines
