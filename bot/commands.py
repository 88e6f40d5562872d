"""The slash commands: one table of what the hub answers by itself, before any model, on every channel.

A command is one entry: its name, a line about it, who may give it where, and the function that answers. A word that
looks like a command and is none gets the nearest one, and never reaches a model: a typo must not cost money. Knows no
platform and sends nothing: an answer is text and takes the way of any other.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from adapters.message import Kind, Message
from agents.agent import Agent, Thread
from agents.errors import ModelError
from agents.events import Event, Notice
from agents.prefix import PrefixTooLong
from agents.quoting import one_line
from agents.taking_back import LEAST_AMONG_OTHERS, not_done, taken_back
from agents.upkeep import KEPT
from bot.admission import Admission
from bot.errors import NotPermitted, UsageError
from bot.metering import NOT_TODAY, keeper, refusal
from bot.router import Route
from bot.spelling import closest
from workspaces.memory import Hit, Mode, OutOfReach
from workspaces.profile import read_profile
from workspaces.scope import Level, Scope

MOST_FOUND = 5
MOST_LINES = 60
"""Of today's note: one or two messages; the rest is in the file."""

BEGUN_ANEW = "A new conversation begins. What was said before is in the transcript, what mattered in the notes."
COMPACTED = "Our older messages are summed up."
HELLO = "Hello! Talk to me, or ask me to remember something."
NOTHING_TODAY = "Nothing was noted today."
NOT_FOUND = "Nothing in the memory fits that."
NO_AGENT = "I can't do that now: please try again later."
TO_SAY_IT = "If you meant to say it to me, begin with another sign than the slash."

_GIVEN = re.compile(r"/(?P<name>[^\W\d_][\w-]*)[.,:;!?]*(?:\s+(?P<words>.*))?", re.DOTALL)
"""One word after the slash: "/etc/hosts is broken" and "/2" are no commands."""

_LEVELS = {Level.GUEST: "a guest", Level.MEMBER: "a member", Level.OWNER: "my owner"}
_MODES: dict[Mode, str] = {
    "hybrid": "searched by words and by meaning",
    "keyword": "searched by words only",
    "scan": "read file by file: the index can't be used",
}


@dataclass(frozen=True, slots=True)
class Given:
    """A command as it was typed: its ``name`` without the slash, in lower case, and the ``words`` behind it."""

    name: str
    words: str = ""


@dataclass(frozen=True, slots=True)
class Order:
    """A command on its way to its answer.

    ``turn`` is the same on every try of the same message. ``agent`` opens the agent it was said to, without building
    its model; it raises ModelError for an embedder that means nothing. ``stop`` ends what the sender may end in the
    session and returns what to say of it.
    """

    given: Given
    message: Message
    route: Route
    turn: str
    agent: Callable[[], Awaitable[Agent]]
    admission: Admission
    stop: Callable[[], Awaitable[str]]

    @property
    def thread(self) -> Thread:
        return Thread(self.route.session, self.scope, self.message.address.kind)

    @property
    def scope(self) -> Scope:
        return self.route.scope

    @property
    def is_private(self) -> bool:
        """Whether only the owner reads the answer: what went wrong, and where, is for nobody else."""
        return self.scope.level is Level.OWNER and self.message.address.kind == "direct"


@dataclass(frozen=True, slots=True)
class Answer:
    """``text`` is Markdown, "" for silence; ``code`` is the exit code of a single question in the terminal.

    ``noted`` is how many notes were written for it, below zero where one was taken back.
    """

    text: str
    code: int = 0
    noted: int = 0


Function: TypeAlias = Callable[[Order], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Command:
    """``usage`` is what may stand behind the name. ``direct`` and ``group`` are the least level there, None for nobody.

    ``at_once``: it doesn't wait behind the turns of its session; only for what changes nothing, or stops them.
    ``is_listed`` False leaves it out of every list.
    """

    name: str
    summary: str
    function: Function
    usage: str = ""
    direct: Level | None = Level.GUEST
    group: Level | None = Level.GUEST
    at_once: bool = False
    is_listed: bool = True

    @property
    def line(self) -> str:
        """How it is shown in a list."""
        return f"/{self.name}{f' {self.usage}' if self.usage else ''} — {self.summary}"

    def is_open(self, level: Level, kind: Kind) -> bool:
        least = self.direct if kind == "direct" else self.group
        return least is not None and level >= least


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
        return Answer(f"/{name} is not for {_LEVELS[level]} here.", NotPermitted.exit_code)
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


async def _whoami(order: Order) -> Answer:
    address, sender = order.message.address, order.message.sender
    account, level = f"{address.channel}:{sender.id}", _LEVELS[order.scope.level]
    called = await _called(order)
    lines = [f"You are {called} ({account}), {level}." if called else f"You are {level} ({account})."]
    if address.kind != "direct":
        lines.append(f"This is the {address.kind} {address.chat}; what I note here is for all who read it.")
    elif order.scope.is_home and order.scope.level is Level.OWNER:
        lines.append("What you ask me to note goes into the home memory.")
    else:
        lines.append("What you ask me to note is kept for this chat alone.")
    return Answer(" ".join(lines))


async def _called(order: Order) -> str:
    """The sender's name: for the owner the one in USER.md, else as the platform has it; "" where nobody knows it."""
    own = ""
    if order.scope.is_home and order.scope.level is Level.OWNER:
        own = read_profile((await order.agent()).workspace.root).name
    return one_line(own or order.message.sender.name, 60)


async def _status(order: Order) -> Answer:
    agent = await order.agent()
    memory = await agent.memory.status()
    code = 0
    try:
        model = agent.model()
        known = model.name if model else "none, I answer from notes only"
    except ModelError as error:
        known, code = f"none can be had: {error}" if order.is_private else "none can be had now", 1
    lines = [f"agent: {order.route.agent}", f"model: {known}", f"memory: {_MODES[memory.mode]}"]
    if order.is_private:
        lines += [f"memory: {warning}" for warning in memory.warnings]
    lines.append(f"session: {order.route.session}")
    return Answer(_bullets(lines), code)


async def _new(order: Order) -> Answer:
    agent = await order.agent()
    noted = await _carried_out(agent.reset(order.thread, "new"), order)
    return Answer("\n\n".join([BEGUN_ANEW, *noted]))


async def _compact(order: Order) -> Answer:
    agent = await order.agent()
    model = keeper(agent)
    if model is not None and (reason := await refusal(model)):
        return Answer(reason if order.is_private else NOT_TODAY, 1)
    said = await _carried_out(agent.compact(order.thread, order.given.words), order)
    return Answer("\n\n".join(said) or COMPACTED)


async def _carried_out(events: AsyncIterator[Event], order: Order) -> list[str]:
    """What there is to say of it."""
    return [_for_all(each.text, order) async for each in events if isinstance(each, Notice)]


def _for_all(notice: str, order: Order) -> str:
    """``notice`` without its cause, which names the server and the budget, where others read it."""
    without, _, _ = KEPT.partition(": {why}")
    return f"{without}." if notice.startswith(without) and not order.is_private else notice


async def _context(order: Order) -> Answer:
    agent = await order.agent()
    try:
        made = agent.composition(order.thread)
    except PrefixTooLong as error:
        return Answer(str(error) if order.is_private else NO_AGENT, 1)
    if made is None:
        return Answer("Nothing of our conversation is kept in a window here: each message is answered by itself.")
    window = made.window
    lines = [
        f"{share.tokens:,} {share.source}" + (f" ({share.remark})" if share.remark else "") for share in made.shares
    ]
    head = f"{made.total:,} of {window.context:,} tokens are used in the window of {made.model}:"
    foot = f"Notes are taken at {window.flush_at:,}, and older messages summed up at {window.compact_at:,}."
    return Answer(f"{head}\n\n{_bullets(lines)}\n\n{foot}")


async def _undo(order: Order) -> Answer:
    memory = (await order.agent()).memory
    words, code = taken_back(await memory.undo(scope=order.scope, by=order.turn))
    return Answer(words, code, noted=0 if code else -1)


async def _memory(order: Order) -> Answer:
    verb, _, words = order.given.words.partition(" ")
    match verb.casefold():
        case "today" if not words.strip():
            return await _today(order)
        case "search" if words.strip():
            return await _search(order, words)
        case other:
            meant = closest(other, ["today", "search"]) if other else None
            hint = f" Did you mean /memory {meant}?" if meant and meant != other else ""
            return Answer(f"Say /memory today, or /memory search and what to look for.{hint}", UsageError.exit_code)


async def _today(order: Order) -> Answer:
    agent = await order.agent()
    path = f"{order.scope.notes}{agent.clock().astimezone(agent.zone()):%Y-%m-%d}.md"
    excerpt = await agent.memory.get(path, scope=order.scope, lines=1)
    start = max(1, excerpt.total - MOST_LINES + 1)
    excerpt = await agent.memory.get(path, scope=order.scope, start=start, lines=MOST_LINES)
    if not excerpt.text.strip():
        return Answer(NOTHING_TODAY)
    above = f"({start - 1} lines before these are in {path}.)\n\n" if start > 1 else ""
    return Answer(above + excerpt.text)


async def _search(order: Order, words: str) -> Answer:
    agent = await order.agent()
    result = await agent.memory.search(words, scope=order.scope, limit=MOST_FOUND)
    found = _bullets([_quote(hit) for hit in result.hits]) if result.hits else NOT_FOUND
    amiss = [f"({warning})" for warning in result.warnings] if order.is_private else []
    return Answer("\n\n".join([found, *amiss]), 0 if result.hits else 1)


async def _stop(order: Order) -> Answer:
    return Answer(await order.stop())


async def _pair(order: Order) -> Answer:
    return Answer(await order.admission.waiting())


async def _approve(order: Order) -> Answer:
    return _decided(await order.admission.approve(order.given.words))


async def _allow(order: Order) -> Answer:
    return _decided(await order.admission.allow(order.given.words, order.message.address))


async def _deny(order: Order) -> Answer:
    return _decided(await order.admission.deny(order.given.words, order.message.address))


def _decided(said: tuple[str, bool]) -> Answer:
    words, is_done = said
    return Answer(words, 0 if is_done else UsageError.exit_code)


def _list(order: Order) -> str:
    return _bullets([command.line for command in listed(order.scope.level, order.message.address.kind)])


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _quote(hit: Hit) -> str:
    return f"{' '.join(hit.text.split()).removeprefix('- ')} ({hit.citation})"


COMMANDS: tuple[Command, ...] = (
    Command("help", "what I answer to", _help, at_once=True),
    Command("memory", "what I noted today, or anything that fits your words", _memory, "today | search WORDS"),
    Command("undo", "take back what I noted last", _undo, group=LEAST_AMONG_OTHERS),
    Command("new", "begin a new conversation; what matters of this one is noted first", _new, group=Level.MEMBER),
    Command("reset", "the same as /new", _new, group=Level.MEMBER, is_listed=False),
    Command(
        "compact",
        "sum up our older messages now, with what you name kept in particular",
        _compact,
        "[what to keep]",
        direct=Level.MEMBER,
        group=Level.MEMBER,
    ),
    Command("context", "what is in my window, in tokens, by source", _context, group=Level.MEMBER, at_once=True),
    Command("stop", "stop the answer that I am working on", _stop, at_once=True),
    Command("status", "which model, memory and session answer here", _status, at_once=True),
    Command("whoami", "who you are to me", _whoami, at_once=True),
    Command("pair", "who waits to be let in", _pair, direct=Level.OWNER, group=None, at_once=True),
    Command("approve", "let in whoever has this code", _approve, "CODE [member]", direct=Level.OWNER, group=None),
    Command(
        "allow", "answer in this group, or let an account in", _allow, "[WHO]", direct=Level.OWNER, group=Level.OWNER
    ),
    Command("deny", "answer in this group no more, or block an account", _deny, "[WHO]", Level.OWNER, Level.OWNER),
    Command("start", "say hello", _start, is_listed=False),
)
