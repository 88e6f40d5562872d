"""One thread of talk with a model that uses tools: what it is sent, and what keeps that within the window.

What a model sees is computed from the transcript, so that a crash, a compaction and another process leave nothing to be
put right. Knows no chat platform and writes no message: the agent makes each step durable.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo

from agents.approval import approved, waiting
from agents.approval import shown as asked_for
from agents.budget import Meter, tokens, tools_estimate
from agents.completion import Spent
from agents.conversation import View, Views, needed
from agents.events import Answered, Broken, Delta, Event, MessageStarted, Notice, Recalled, Stepped, ToolStarted, Used
from agents.loop import Arrival, Fitted, Turn, run
from agents.model import AssistantMessage, ChatMessage, Failed, Image, Model, Request, ToolResult, UserMessage
from agents.prefix import Prefix, PrefixTooLong, holds, rules, shown, taken
from agents.provenance import is_foreign_path
from agents.quoting import quoted
from agents.tools.permission import ChatKind, Permission
from agents.tools.registry import offered
from agents.tools.settings import ToolSettings
from agents.tools.tool import Tool
from agents.upkeep import Kept, Load, Mark, Occasion, ResetWhy, Upkeep, decide
from agents.window import Window
from workspaces.confined import Confined
from workspaces.memory import Hit, Memory
from workspaces.paths import OutOfReach
from workspaces.scope import Level, Scope
from workspaces.transcript import Transcript
from workspaces.workspace import Workspace

MOST_RECALLED = 6

MOST_IMAGES = 10
"""The newest pictures of a conversation that are sent; of older ones the model is told where they lie."""

LARGEST_IMAGE = 10_000_000
"""Bytes; providers take no larger one."""

LARGEST_IMAGES = 20_000_000
"""Bytes of all pictures of a call, the newest first."""

SMALL_WINDOW = 8_000
"""Tokens. Below it the tools for files would take the room of what is said."""

UPKEEP = "upkeep"
"""The turn of the marks in a transcript."""


@dataclass(frozen=True, slots=True)
class Share:
    """A source of what is in the window, with its tokens; ``remark`` is what is to be said of it, "" for nothing."""

    source: str
    tokens: int
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Composition:
    """What the next call of a session is made of. ``window`` is that of ``model``."""

    model: str
    window: Window
    shares: tuple[Share, ...]

    @property
    def total(self) -> int:
        return sum(share.tokens for share in self.shares)


@dataclass(slots=True)
class Session:
    """``small`` flushes and sums up, None for the model that answers. One turn at a time: its caller holds a lock.

    ``clock`` gives aware times; ``zone`` is where the agent's days begin.
    """

    name: str
    workspace: Workspace
    memory: Memory
    toolbox: Sequence[Tool]
    settings: ToolSettings
    model: Model
    small: Model | None
    transcript: Transcript
    scope: Scope
    kind: ChatKind
    zone: Callable[[], tzinfo]
    clock: Callable[[], datetime]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _tools: tuple[Tool, ...] = ()
    _prefix: Prefix | None = None
    _views: Views = field(default_factory=Views)
    _meter: Meter = field(default_factory=Meter)
    _sent: int = 0
    _allowed: frozenset[tuple[str, str]] = frozenset()
    _recalls_foreign: bool = False

    def __post_init__(self) -> None:
        self._tools = self._offered()
        self._forget()

    async def answer(
        self,
        turn: str,
        words: str,
        at: datetime,
        recall: Sequence[Hit],
        arrivals: Callable[[], Awaitable[Sequence[Arrival]]],
        *,
        with_tools: bool,
    ) -> AsyncGenerator[Event, None]:
        """Answer the message of ``turn``, which the transcript has, or go on where a crash left it.

        ``words`` are its own, "" where some are not, said ``at``; ``recall`` are notes that may help, best first.
        """
        window = self._window
        self._allowed = approved(self.transcript.entries(), turn, words, at) if self._is_owners else frozenset()
        tools = self._tools if with_tools else ()
        try:
            prefix = self._renewed(tools, window)
        except PrefixTooLong as error:
            yield Broken(Failed("refused", str(error)))
            return
        notes, citations = _noted(recall, self._meter.estimated(window.recall))
        self._recalls_foreign = any(is_foreign_path(hit.path) for hit in recall[: len(citations)])
        if citations:
            yield Recalled(citations)

        async def fit(_: tuple[ChatMessage, ...], *, overflowed: bool) -> Fitted | None:
            return await self._fitted(turn, notes, prefix, overflowed=overflowed)

        request = Request(prefix.system, (), max_output=min(window.reserve, self.model.limits.output))
        readers = {tool.spec.name for tool in tools if tool.read_only}
        ask, is_own = "", False
        async with aclosing(run(Turn(self.model, request, tools, arrivals, fit, self.sleep))) as events:
            async for event in events:
                match event:
                    case Delta():
                        pass
                    case MessageStarted():
                        is_own = True
                    case Used(usage=usage) if is_own:  # a flush and a summary are other texts
                        self._meter, is_own = self._meter.learned(self._sent, usage), False
                    case ToolStarted(call=call) if call.name not in readers:
                        self._settle()
                    case Stepped(message=AssistantMessage(tool_calls=(), text=text) as message):
                        if ask := self._ask(turn):
                            yield Delta(f"\n\n{ask}")
                            event = Stepped(replace(message, text=f"{text}\n\n{ask}"))
                    case Answered(text=text) if ask:
                        event = replace(event, text=f"{text}\n\n{ask}")
                    case _:
                        pass
                yield event
                if isinstance(event, Stepped) and isinstance(event.message, ToolResult):
                    self._own(may_have_written=event.message.name not in readers)

    async def keep(self, occasion: Occasion = "turn", focus: str = "") -> AsyncGenerator[Event, None]:
        """What is to be done between two turns; or, "asked", because a person wants it."""
        try:
            prefix = self._prefix or self._renewed(self._tools, self._window)
        except PrefixTooLong:
            return
        if occasion == "turn" and not self._is_due(prefix):
            return
        self._settle()
        async with aclosing(self._kept(self._upkeep.keep(occasion, self._meter, prefix.size, focus))) as events:
            async for event in events:
                yield event
        self._own(may_have_written=True)

    @property
    def awaits_upkeep(self) -> bool:
        """Whether ``keep`` has anything to do after a turn, as it rarely has."""
        return self._prefix is None or self._is_due(self._prefix)

    def _is_due(self, prefix: Prefix) -> bool:
        load = Load(self._window, self._meter, self._view(), prefix.size)
        return decide(load, "turn", self.clock(), may_flush=True) != "nothing"

    async def reset(self, why: ResetWhy) -> AsyncGenerator[Event, None]:
        """Begin anew; what was said stays in the transcript, and what of it matters in the notes."""
        async with aclosing(self._kept(self._upkeep.reset(why))) as events:
            async for event in events:
                yield event

    def composition(self) -> Composition:
        """What is in the window now. Raises PrefixTooLong."""
        prefix = self._renewed(self._tools, self._window)
        seen = self._view()
        said = seen.lines[1:] if seen.is_compacted else seen.lines
        files = [
            Share(file.name, tokens(shown(file)) if file.text.strip() else 0, file.warning) for file in prefix.files
        ]
        shares = [
            Share("rules", tokens(rules(self.name))),
            *files,
            Share(f"{len(prefix.specs)} tools", tools_estimate(prefix.specs)),
            *([Share("summary of older messages", seen.lines[0].tokens)] if seen.is_compacted else []),
            *([Share(f"{len(said)} messages", sum(line.tokens for line in said))] if said else []),
        ]
        counted = tuple(replace(share, tokens=self._meter.counted(share.tokens)) for share in shares)
        return Composition(self.model.name, self._window, counted)

    @property
    def _window(self) -> Window:
        return Window(self.model.limits.context)

    @property
    def _is_owners(self) -> bool:
        return self.kind == "direct" and self.scope.level is Level.OWNER

    @property
    def _upkeep(self) -> Upkeep:
        return Upkeep(
            self.small or self.model,
            self._window,
            self.memory,
            self.scope,
            self.transcript.entries,
            self.clock,
            self.zone(),
            self.sleep,
            view=self._views,
        )

    def _view(self) -> View:
        return self._views(self.transcript.entries())

    def _offered(self) -> tuple[Tool, ...]:
        """The tools of this session, which ask for its permission each time they run."""
        window = self._window
        longest = min(self.settings.longest_result, window.message_characters)
        permission = Permission(
            self.scope,
            self.kind,
            self.settings.model_copy(update={"longest_result": longest}),
            is_tainted=lambda: self._recalls_foreign or self._view().is_tainted,
            approved=self._use_up,
        )
        tools = offered(self.toolbox, permission)
        if window.context >= SMALL_WINDOW:
            return tools
        return tuple(tool for tool in tools if tool.spec.name in ("memory_search", "memory_get", "memory_append"))

    def _renewed(self, tools: Sequence[Tool], window: Window) -> Prefix:
        """The prefix of this session; the one that it has, where that still holds."""
        specs = tuple(tool.spec for tool in tools)
        marks = (entry.id for entry in reversed(self.transcript.entries()) if entry.kind in ("compacted", "reset"))
        since = next(marks, "")
        if self._prefix is None or not holds(self._prefix, self.workspace, self.scope, specs, since):
            self._prefix = taken(self.name, self.workspace, self.scope, specs, window, since)
        return self._prefix

    def _use_up(self, name: str, arguments: str) -> bool:
        """Whether the owner said yes to this very call; a yes is for one time."""
        is_allowed = (name, arguments) in self._allowed
        self._allowed -= {(name, arguments)}
        return is_allowed

    def _ask(self, turn: str) -> str:
        """What the owner is asked at the end of a turn, "" for nothing."""
        return asked_for(waiting(self.transcript.entries(), turn)) if self._is_owners else ""

    def _settle(self) -> None:
        """Before something of our own writes: let a change by anyone else be seen as one."""
        if self._prefix is not None and self._prefix.stamps != self.workspace.stamps(self.scope):
            self._prefix = None

    def _own(self, *, may_have_written: bool) -> None:
        """After it wrote: what changed since is the session's own, and no reason to renew the prefix."""
        if may_have_written and self._prefix is not None:
            self._prefix = replace(self._prefix, stamps=self.workspace.stamps(self.scope))

    async def _fitted(self, turn: str, notes: str, prefix: Prefix, *, overflowed: bool) -> Fitted | None:
        """The messages of the next call, from the transcript; with less of them where they would not fit."""
        events: list[Event] = []
        seen = self._view()
        fixed = prefix.size + tokens(notes)
        load = Load(self._window, self._meter, seen, fixed)
        if overflowed or load.is_full:
            occasion: Occasion = "overflow" if overflowed else "call"
            kept = self._upkeep.keep(occasion, self._meter, fixed)
            events = [event async for event in self._kept(kept)]
            before, seen = seen, self._view()
            if overflowed and seen == before:
                return None
        messages = await self._messages(seen, turn, notes)
        self._sent = fixed + seen.tokens
        return Fitted(messages, tuple(events))

    async def _messages(self, seen: View, turn: str, notes: str) -> tuple[ChatMessage, ...]:
        messages = list(seen.messages)
        if self.model.sees_images and (pictures := [image for each in messages for image in _images(each)]):
            loaded = await self._loaded(pictures[-MOST_IMAGES:])
            messages = [_pictured(each, loaded) for each in messages]
        for at, line in enumerate(seen.lines if notes else ()):
            message = messages[at]
            if line.turn == turn and isinstance(message, UserMessage):
                messages[at] = replace(message, text=f"{notes}\n\n{message.text}")
                break
        return tuple(messages)

    async def _loaded(self, pictures: Sequence[Image]) -> dict[str, Image]:
        """The pictures with their bytes, by path; one that is gone, too large or out of the scope stays a name."""
        reach, found, room = Confined(self.workspace.root, self.scope), dict[str, Image](), LARGEST_IMAGES
        for image in reversed(pictures):
            with suppress(OSError, OutOfReach):
                data = await asyncio.to_thread(_bytes, reach, image.path)
                room -= len(data)
                if room < 0:
                    break
                found[image.path] = replace(image, data=data)
        return found

    def _forget(self) -> None:
        """Let go of what no view, no flush and no turn will ask for."""
        entries = self.transcript.entries()
        if entries:
            self.transcript.forget(entries[needed(entries)].id)

    async def _kept(self, kept: AsyncGenerator[Kept, None]) -> AsyncGenerator[Event, None]:
        """Make each mark durable before the next one is asked for."""
        async with aclosing(kept):
            async for one in kept:
                match one:
                    case Mark(kind=kind, body=body):
                        self.transcript.append(turn=UPKEEP, kind=kind, at=self.clock().isoformat(), body=body)
                        await self.transcript.durable()
                        self._forget()
                    case Spent(model=model, usage=usage):
                        yield Used(model, usage)
                    case Notice():
                        yield one


def _images(message: ChatMessage) -> Sequence[Image]:
    return message.images if isinstance(message, UserMessage) else ()


def _pictured(message: ChatMessage, loaded: Mapping[str, Image]) -> ChatMessage:
    if not isinstance(message, UserMessage) or not message.images:
        return message
    return replace(message, images=tuple(loaded.get(each.path, each) for each in message.images))


def _bytes(reach: Confined, path: str) -> bytes:
    return reach.read(reach.located(path), most=LARGEST_IMAGE)


def _noted(recall: Sequence[Hit], most: int) -> tuple[str, tuple[str, ...]]:
    """The recalled notes as text, as many of the best as fit into ``most`` tokens, and their citations."""
    texts: list[str] = []
    citations: list[str] = []
    for hit in recall[:MOST_RECALLED]:
        text = quoted(hit.text, hit.citation)
        if tokens(text) > most:
            break
        most -= tokens(text)
        texts.append(text)
        citations.append(hit.citation)
    return ("Notes from your memory that may help:\n" + "\n".join(texts) if texts else ""), tuple(citations)
