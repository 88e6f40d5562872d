"""The slash commands: one table of what the hub answers by itself, before any model, on every channel.

A command is one entry: its name, a line about it, who may give it where, and the function that answers. A word that
looks like a command and is none gets the nearest one, and never reaches a model: a typo must not cost money. Knows no
platform and sends nothing: an answer is text and takes the way of any other.
"""

from __future__ import annotations

import re

from adapters.message import Kind, Message
from agents.errors import ModelError
from agents.quoting import one_line
from agents.taking_back import LEAST_AMONG_OTHERS, not_done
from bot.commands import about, conversation, notes, people
from bot.commands.order import LEVELS, NO_AGENT, Answer, Command, Given, Order, bullets
from bot.errors import NotPermitted, UsageError
from bot.spelling import closest
from workspaces.memory import OutOfReach
from workspaces.scope import Level

__all__ = ["COMMANDS", "NO_AGENT", "Answer", "Command", "Given", "Order", "answer", "find", "given", "listed"]

HELLO = "Hello! Talk to me, or ask me to remember something."
TO_SAY_IT = "If you meant to say it to me, begin with another sign than the slash."

_GIVEN = re.compile(r"/(?P<name>[^\W\d_][\w-]*)[.,:;!?]*(?:\s+(?P<words>.*))?", re.DOTALL)
"""One word after the slash: "/etc/hosts is broken" and "/2" are no commands."""


def given(message: Message) -> Given | None:
    """The command in ``message``, known or not; None where it is something to say.

    Words behind a slash are a command's where the first is the name of one, or nearly. What was forwarded, or stands
    under a file, gives no orders.
    """
    match = _GIVEN.fullmatch(message.text.strip())
    if match is None or message.forwarded_from is not None or message.attachments:
        return None
    name, words = match["name"].casefold(), (match["words"] or "").strip()
    if words and closest(name, [command.name for command in COMMANDS]) is None:
        return None
    return Given(name, words)


def find(name: str) -> Command | None:
    return next((command for command in COMMANDS if command.name == name), None)


def listed(level: Level, kind: Kind) -> list[Command]:
    """What somebody of this level can be offered in such a chat."""
    return [command for command in COMMANDS if command.is_listed and command.is_open(level, kind)]


async def answer(order: Order) -> Answer:
    """Carry out ``order`` if its sender may give it here."""
    name, level, kind = order.given.name, order.scope.level, order.message.address.kind
    command = find(name)
    if command is None:
        if kind != "direct" and not order.message.mentions_me:
            return Answer("")  # said to a group: it may be another bot's
        nearest = closest(name, [known.name for known in listed(level, kind)])
        word = f"I know no command /{one_line(name, 40)}." + (f" Did you mean /{nearest}?" if nearest else "")
        return Answer(f"{word}\n\n{_list(order)}\n\n{TO_SAY_IT}", UsageError.exit_code)
    if not command.is_open(level, kind):
        whom = f"{LEVELS[level]} here" if command.is_open(Level.OWNER, kind) else "a group"
        return Answer(f"/{name} is not for {whom}.", NotPermitted.exit_code)
    try:
        return await command.function(order)
    except ModelError as error:
        return Answer(str(error) if order.is_private else NO_AGENT, 1)
    except (OutOfReach, OSError) as error:
        return Answer(not_done(error), 1)


async def _help(order: Order) -> Answer:
    return Answer(_list(order))


async def _start(order: Order) -> Answer:
    """What a person sends who opens a chat on Telegram for the first time."""
    agent = await order.agent()
    opening = agent.opening(order.route.session, order.scope)
    return Answer(opening or f"{HELLO}\n\n{_list(order)}")


def _list(order: Order) -> str:
    return bullets([command.line for command in listed(order.scope.level, order.message.address.kind)])


COMMANDS: tuple[Command, ...] = (
    Command("help", "what I answer to", _help, at_once=True),
    Command("memory", "what I noted today, or anything that fits your words", notes.memory, "today | search WORDS"),
    Command("undo", "take back what I noted last", notes.undo, group=LEAST_AMONG_OTHERS),
    Command(
        "new", "begin a new conversation; what matters of this one is noted first", conversation.new, group=Level.MEMBER
    ),
    Command("reset", "the same as /new", conversation.new, group=Level.MEMBER, is_listed=False),
    Command(
        "compact",
        "sum up our older messages now, with what you name kept in particular",
        conversation.compact,
        "[what to keep]",
        direct=Level.MEMBER,
        group=Level.MEMBER,
    ),
    Command(
        "context", "what is in my window, in tokens, by source", conversation.context, group=Level.MEMBER, at_once=True
    ),
    Command("stop", "stop the answer that I am working on", conversation.stop, at_once=True),
    Command(
        "queue",
        "what becomes of a message that comes while I answer",
        conversation.queue,
        "[MODE]",
        group=Level.MEMBER,
        at_once=True,
    ),
    Command("model", "which model answers here, and to change it", conversation.model, "[NAME]", group=Level.MEMBER),
    Command("status", "which model, memory and session answer here", about.status, at_once=True),
    Command("whoami", "who you are to me", about.whoami, at_once=True),
    Command(
        "usage",
        "what the models were used for today, and what that cost",
        about.usage,
        direct=Level.OWNER,
        group=None,
        at_once=True,
    ),
    Command("pair", "who waits to be let in", people.pair, direct=Level.OWNER, group=None, at_once=True),
    Command("approve", "let in whoever has this code", people.approve, "CODE [member]", direct=Level.OWNER, group=None),
    Command(
        "allow",
        "answer in this group, or let an account in",
        people.allow,
        "[WHO]",
        direct=Level.OWNER,
        group=Level.OWNER,
    ),
    Command(
        "deny", "answer in this group no more, or block an account", people.deny, "[WHO]", Level.OWNER, Level.OWNER
    ),
    Command("start", "say hello", _start, is_listed=False),
)
