"""The table of commands: what `limpet --help` prints, and where a command's name leads.

Imports nothing, so that the help is there at once. A test proves that the table is the real command tree.
"""

from __future__ import annotations


class Entry:
    """One command. ``verbs`` are its subcommands, none for a plain command; ``summary`` fits one line of the help.

    No dataclass: that import alone would cost more than all of the help.
    """

    __slots__ = ("group", "name", "summary", "verbs")

    def __init__(self, group: str, name: str, summary: str, verbs: tuple[str, ...] = ()) -> None:
        self.group, self.name, self.summary, self.verbs = group, name, summary, verbs


COMMANDS = (
    Entry("Talk", "chat", "talk here, or answer once: chat --once TEXT"),
    Entry("Talk", "run", "answer on all configured channels until stopped"),
    Entry("Talk", "demo", "see it remember and forget, offline, in a minute"),
    Entry("Set up", "init", "name, language, time zone and model, in one go"),
    Entry("Set up", "config", "check, read and change the settings", ("check", "get", "set", "unset", "path")),
    Entry("Set up", "channels", "connect Telegram, Discord, Slack and the like", ("list", "add", "login", "remove")),
    Entry("Set up", "agents", "who there is; one more, with its own memory", ("list", "add", "eject")),
    Entry("Set up", "models", "the embedded model: list, pull, remove", ("list", "pull", "remove")),
    Entry("Set up", "pairing", "who may talk to the bot: let in, send away", ("list", "approve", "revoke", "deny")),
    Entry("Set up", "allow", "let an account or a group in, without a code"),
    Entry("Set up", "deny", "block an account, or leave a group unanswered"),
    Entry(
        "Memory",
        "memory",
        "search and read what it knows, take back a change",
        ("search", "get", "changes", "undo", "path", "status", "index", "rebuild", "watch", "bench"),
    ),
    Entry("Look", "status", "is all well? a verdict first"),
    Entry("Look", "doctor", "the same, and the platforms are asked as well"),
    Entry("Look", "usage", "what the models were used for, and what it cost"),
    Entry("Look", "where", "the folders and files that are yours"),
    Entry("Look", "route", "why a message goes to which agent", ("explain",)),
    Entry("Look", "completion", "Tab completion for bash, zsh and fish"),
)

_HEAD = """\
limpet — a chat bot with a memory that you own

  limpet                 talk; a pipe is read as one message
  limpet "a question"    one answer, on stdout and nothing else
  limpet COMMAND -h      what a command does and takes
"""

_TAIL = """\
Options: --config PATH  --color auto|always|never  -V, --version  -h, --help
Exit codes: 0 ok · 1 finding or failure · 2 usage or settings · 3 another hub
            75 try later · 77 not permitted · 130 interrupted"""


def text() -> str:
    """The help of the program itself: under 40 lines of 80 columns."""
    lines = [_HEAD]
    group = None
    for entry in COMMANDS:
        if entry.group != group:
            lines += ["", f"{entry.group}:"] if group else [f"{entry.group}:"]
            group = entry.group
        lines.append(f"  {entry.name:<12}{entry.summary}")
    return "\n".join([*lines, "", _TAIL])


def find(name: str) -> Entry | None:
    return next((entry for entry in COMMANDS if entry.name == name), None)
