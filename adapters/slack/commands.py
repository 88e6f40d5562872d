"""The one slash command of the app: its subcommands are the hub's commands, and its answers are for whoever gave it.

Slack shows an answer to a slash command in a channel to nobody else, and so do we. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from adapters.adapter import Offered

_PREFIX = "command"


def command_id(user: str, trigger: str) -> str:
    """The id of a command as a message: it names who is to see the answer."""
    return f"{_PREFIX}/{user}/{trigger}"


def asker(message_id: str) -> str | None:
    """Who gave the command of that id; None where it is a message."""
    prefix, _, rest = message_id.partition("/")
    user, _, trigger = rest.partition("/")
    return user if prefix == _PREFIX and user and trigger else None


class Commands:
    """What the hub offers."""

    def __init__(self, offered: Sequence[Offered] = ()) -> None:
        self._names = frozenset(each.name for each in offered)

    def text(self, words: str) -> str:
        """What was said with ``words`` behind the slash command: a command, known or misspelt, else a question."""
        words = words.strip().removeprefix("/")
        first, _, rest = words.partition(" ")
        if not words:
            return "/help"
        return f"/{words}" if not rest or first.casefold() in self._names else words
