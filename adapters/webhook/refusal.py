"""A request to us that is answered with an error."""

from __future__ import annotations


class Refusal(Exception):
    """``status`` is HTTP's; ``error`` is one clause and ``mend`` another, both for whoever wrote the other program."""

    def __init__(self, status: int, error: str, mend: str) -> None:
        super().__init__(error)
        self.status = status
        self.error = error
        self.mend = mend
