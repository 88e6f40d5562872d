"""What a command line means before any command is loaded: global options, and what the first word stands for.

Standard library only. A word that may be meant for a command is never sent to a model: a typo must not cost money.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

from bot.cli.help import COMMANDS, Entry, find
from bot.errors import UsageError
from bot.spelling import closest, did_you_mean, distance

Colour: TypeAlias = Literal["auto", "always", "never"]

FORGIVEN = 2
"""Edits: a word this near to a command is taken for a mistyped one."""

# fmt: off
_ELSEWHERE = frozenset({
    "setup", "onboard", "login", "logout", "logs", "update", "upgrade", "uninstall", "backup",
    "restore", "agent", "keys", "key", "gateway", "start", "stop", "restart", "version", "quit", "exit",
    "sessions", "session", "cron", "plugins", "plugin", "import", "export", "forget", "usage", "cost", "why",
    "powers", "explain",
})
# fmt: on
"""Commands of programs like this one, which people type by habit."""

_OPTIONS = ("--config", "--color", "--no-color", "--version", "--help")


@dataclass(frozen=True, slots=True)
class CommandLine:
    """``words`` start with the name of a command, or are just ``["--help"]`` or ``["--version"]``."""

    words: list[str]
    config: str | None = None
    colour: Colour = "auto"

    @property
    def as_json(self) -> bool:
        """Whether the result, and so an error too, is wanted as JSON."""
        return wants_json(self.words)


def wants_json(words: list[str]) -> bool:
    end = words.index("--") if "--" in words else len(words)
    return "--json" in words[:end]


def parse(args: list[str], *, piped: bool = False) -> CommandLine:
    """The command line without its global options, which may stand anywhere before "--". Raises UsageError.

    ``piped``: standard input is no terminal, so that no words at all mean one message from there.
    """
    words: list[str] = []
    config: str | None = None
    colour: Colour = "auto"
    rest = iter(args)
    for arg in rest:
        name, equals, value = arg.partition("=")
        if arg == "--":
            words += [arg, *rest] if words else rest
        elif arg == "--no-color":
            colour = "never"
        elif name == "--config":
            config = _value(name, value if equals else next(rest, ""), "a path")
        elif name == "--color":
            colour = _colour(_value(name, value if equals else next(rest, ""), "auto, always or never"))
        else:
            words.append(arg)
    return CommandLine(_meaning(words or (["-"] if piped else [])), config, colour)


def _meaning(words: list[str]) -> list[str]:
    """The command that ``words`` stand for: nothing is ``chat``, a text is ``chat --once``."""
    if not words:
        return ["chat"]
    first, *rest = words
    if first in ("-V", "--version"):
        return ["--version"]
    if first in ("-h", "--help", "help"):
        return _meaning([*rest[:2], "--help"]) if first == "help" and rest else ["--help"]
    entry = find(first)
    if entry is not None:
        return _with_verb(entry, words)
    if first == "-" or (first.strip() and any(c.isspace() for c in first)) or (not rest and _is_text(first)):
        return ["chat", "--once", first, *rest]
    raise _unknown(first, rest)


def _is_text(word: str) -> bool:
    """Whether a single word is something to say, and not a command that was mistyped or is another program's."""
    if not word.strip() or word.startswith("-") or word.casefold() in _ELSEWHERE:
        return False
    if word.startswith("/"):
        return True  # a command of the chat is said there: limpet /status
    return all(distance(word.casefold(), entry.name) > FORGIVEN for entry in COMMANDS)


def _with_verb(entry: Entry, words: list[str]) -> list[str]:
    """``words`` if the verb is one of the command's; none, or a mistyped one, is refused here and at once."""
    verb = words[1] if len(words) > 1 else ""
    if not entry.verbs or verb in entry.verbs or verb in ("-h", "--help"):
        return words
    if not verb or verb.startswith("-"):
        raise UsageError(f"what should `limpet {entry.name}` do?", f"say one of: {', '.join(entry.verbs)}")
    raise UsageError(f"unknown command '{entry.name} {verb}'", did_you_mean(verb, entry.verbs))


def _unknown(word: str, rest: list[str]) -> UsageError:
    if not word.strip():
        return UsageError("there is no text to answer", 'say something: limpet "a question"')
    if word.startswith("-"):
        found = closest(word, _OPTIONS)
        return UsageError(f"unknown option {word!r}", f"did you mean {found!r}?" if found else "see: limpet --help")
    found = closest(word, (entry.name for entry in COMMANDS))
    if found:
        return UsageError(f"unknown command {word!r}", f"did you mean {found!r}?")
    if rest and not rest[0].startswith("-"):
        return UsageError(f"unknown command {word!r}", 'put a text in quotes: limpet "a question"')
    return UsageError(f"unknown command {word!r}", f"to send one word say: limpet chat --once {word}")


def _value(option: str, value: str, what: str) -> str:
    if not value:
        raise UsageError(f"{option} needs a value", f"say {what}")
    return value


def _colour(value: str) -> Colour:
    if value not in get_args(Colour):
        raise UsageError(f"--color is {value!r}", "say auto, always or never")
    return cast(Colour, value)
