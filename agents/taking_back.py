"""What a person is told of a write that was taken back, or could not be, whoever asked for it and on which way.

Knows no model and no command.
"""

from __future__ import annotations

from workspaces.memory import OutOfReach, Undone
from workspaces.scope import Level

LEAST_AMONG_OTHERS = Level.MEMBER
"""Who may have a note taken back in a chat of several people: there the last one may be anybody's."""

NOTHING_TO_TAKE_BACK = "I have noted nothing here that I could take back."
STAYS = "I have taken nothing back in {path}. {reason}"
LEADS_OUT = "I could not do that, and have changed nothing: {path} leads out of the memory by now."
NOT_DONE = "I could not do that: {why}."


def taken_back(undone: Undone | None) -> tuple[str, int]:
    """What became of the last write that was to be taken back: in words, and as an exit code."""
    if undone is None:
        return NOTHING_TO_TAKE_BACK, 1
    if undone.edited:
        return STAYS.format(path=undone.path, reason=undone.reason).rstrip(), 1
    taken = [f"Taken back from {undone.path}: {flat(undone.text)}"] if undone.text.strip() else []
    given = [f"Put back into {undone.path}: {flat(undone.removed)}"] if undone.removed.strip() else []
    return "\n\n".join(taken + given) or f"Taken back what I did last in {undone.path}.", 0


def not_done(error: OutOfReach | OSError) -> str:
    """What to say where the memory can't be read or written; names no place outside it."""
    if isinstance(error, OutOfReach):
        return LEADS_OUT.format(path=error.path)
    return NOT_DONE.format(why=error.strerror or "it can't be read or written")


def flat(note: str) -> str:
    """A note on one line, without its bullet."""
    return " ".join(note.split()).removeprefix("- ")
