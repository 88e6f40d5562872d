"""One agent: a workspace, a memory, a model, and the turns that bring them together.

It makes each step durable in the session's transcript before the next begins, and takes a turn up again where a crash
left it. Knows no chat platform: a question comes with its scope, an answer is a stream of events.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import structlog

from agents import conversation
from agents.budget import tokens
from agents.chain import backed
from agents.enclosing import enclosed
from agents.errors import ModelError
from agents.events import Answered, Broken, Delta, Event, MessageStarted, Notice, Recalled, Steered, Stepped
from agents.loop import EMPTY, Arrival
from agents.model import AssistantMessage, ChatMessage, Image, Model, UserMessage
from agents.provenance import is_foreign_path
from agents.quoting import Quotation
from agents.resets import Resets
from agents.session import UPKEEP, Composition, Session
from agents.silence import SpokenStream, may_be_silent, spoken
from agents.tools.permission import ChatKind
from agents.tools.settings import ToolSettings
from agents.tools.tool import Tool
from agents.trimming import shortened
from agents.upkeep import NOTHING_TO_COMPACT, ResetWhy
from agents.window import Window
from workspaces.confined import Confined
from workspaces.memory import Hit, Memory
from workspaces.names import portable_name
from workspaces.paths import OutOfReach
from workspaces.profile import read_profile
from workspaces.scope import Scope
from workspaces.transcript import Entry, Transcript
from workspaces.workspace import Workspace

if TYPE_CHECKING:
    from agents.interview import Interview

log = structlog.get_logger(__name__)

Recall: TypeAlias = Literal["auto", "tool", "off"]

MOST_OPEN = 256
"""Sessions that are kept in memory; one that was let go is read again from its transcript."""


async def _nothing() -> Sequence[Question]:
    return ()


@dataclass(frozen=True, slots=True)
class Thread:
    """Where something is said: the session's key, its audience, and the kind of chat."""

    session: str
    scope: Scope
    kind: ChatKind = "direct"


@dataclass(frozen=True, slots=True)
class Question:
    """What a person said. ``turn`` is the same on every try of the same message; ``at`` is aware.

    ``sender`` is the name to show the model where several people speak, None in a direct chat. ``may_interview`` is
    whether the person can be asked something in turn; not where one answer is all that is wanted. ``images`` are files
    of the workspace. ``arrivals`` gives what the same person said since it was last asked: it joins this turn.
    """

    turn: str
    session: str
    scope: Scope
    text: str
    at: datetime
    sender: str | None = None
    quotations: tuple[Quotation, ...] = ()
    may_interview: bool = True
    images: tuple[Image, ...] = ()
    kind: ChatKind = "direct"
    arrivals: Callable[[], Awaitable[Sequence[Question]]] = _nothing

    @property
    def thread(self) -> Thread:
        return Thread(self.session, self.scope, self.kind)


@dataclass(frozen=True, slots=True)
class Agent:
    """``model`` gives the model, built when it is first asked for; None means notes mode. ``small`` gives the one that
    flushes and sums up, for which ``model`` stands in where it can't; None for the same.

    Where a configured one can't be built they raise ModelError, each time: what is there without a model (the memory,
    the workspace) can still be used. ``sessions`` is the folder of the transcripts.

    ``recall`` "auto" offers the notes that fit before every turn, "tool" leaves searching to the model, "off" does
    neither. ``zone_like`` finds the time zone that a mistyped name was meant for, None for none.
    """

    name: str
    workspace: Workspace
    memory: Memory
    model: Callable[[], Model | None]
    sessions: Path
    zone: Callable[[], tzinfo]
    clock: Callable[[], datetime]
    recall: Recall = "auto"
    zone_like: Callable[[str], str | None] = lambda _: None
    small: Callable[[], Model | None] = lambda: None
    toolbox: Sequence[Tool] = ()
    tools: ToolSettings = field(default_factory=ToolSettings)
    resets: Resets = field(default_factory=Resets)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _transcripts: OrderedDict[str, Transcript] = field(default_factory=OrderedDict, repr=False)
    _open: dict[Thread, Session] = field(default_factory=dict, repr=False)
    _busy: set[str] = field(default_factory=set, repr=False)

    def transcript(self, session: str) -> Transcript:
        if session not in self._transcripts:
            self._transcripts[session] = Transcript(self.sessions / f"{portable_name(session)}.jsonl", session)
        self._transcripts.move_to_end(session)
        if len(self._transcripts) > MOST_OPEN:
            oldest, _ = self._transcripts.popitem(last=False)
            for thread in [thread for thread in self._open if thread.session == oldest]:
                del self._open[thread]
        return self._transcripts[session]

    def opening(self, session: str, scope: Scope) -> str | None:
        """What to say first to somebody who comes into a home session: the interview's question, while it is due.

        None while a turn runs there: its steps are not to be parted.
        """
        if not scope.is_home or not self.workspace.awaits_interview or session in self._busy:
            return None
        last = _said_last(self.transcript(session).entries(), "") or ""
        opening = self._interview().opening(last)
        if opening is not None and opening != last:
            self._write(session, "opening", AssistantMessage(opening))
            self.transcript(session).flush()
        return opening

    def misgiving(self) -> str | None:
        """One sentence about a time zone in USER.md that there is none of, with the mend; None when all is well."""
        given = read_profile(self.workspace.root).unknown_zone
        if not given:
            return None
        near = self.zone_like(given)
        mend = f"Did you mean {near}?" if near else "A name such as Europe/Berlin is known."
        return f"USER.md gives the time zone as {given}, but there is none of that name: I go by {self.zone()}. {mend}"

    async def answer(self, question: Question) -> AsyncGenerator[Event, None]:
        """Run the turn, or what is left of it: its events as they are for people, each step durable before the next.

        The last event is ``Answered`` or ``Broken``. Raises ModelError, and has kept nothing, where the model can't be
        built.
        """
        transcript = self.transcript(question.session)
        mine = [entry for entry in transcript.entries() if entry.turn == question.turn]
        for entry in mine:  # what joined the turn before a crash is answered with it
            if source := entry.body.get("source"):
                yield Steered(UserMessage(str(entry.body.get("text", ""))), str(source))
        if (text := _answer_in(mine)) is not None:
            await transcript.durable()
            yield _as_said(Answered(text, None, enclosed=enclosed(mine, question.turn)), question)
            return
        model = self.model()
        for happened in await (self._resumed(question, model) if mine else self._begun(question, model)):
            yield happened
        stream, is_kept, is_foreign, later = SpokenStream(), False, False, dict[str, Question]()
        self._busy.add(question.session)
        try:
            async with aclosing(await self._turn(model, question, later)) as events:
                async for event in events:
                    match event:
                        case Delta(text=piece):
                            if said := stream.feed(piece):
                                yield Delta(said)
                            continue
                        case MessageStarted() | Answered():
                            if rest := stream.end():
                                yield Delta(rest)
                            stream = SpokenStream()
                        case Recalled(citations=citations):
                            is_foreign = any(is_foreign_path(citation.partition("#")[0]) for citation in citations)
                        case Stepped(message=message):
                            self._write(question.session, question.turn, message, is_foreign=is_foreign)
                            is_kept = isinstance(message, AssistantMessage) and not message.tool_calls
                        case Steered(source=source):
                            self._keep(later[source], question.turn, model)
                        case _:
                            pass
                    if isinstance(event, Answered):
                        if not is_kept:
                            self._write(question.session, question.turn, AssistantMessage(event.text))
                        sent = enclosed(transcript.entries(), question.turn)
                        event = _as_said(replace(event, enclosed=sent), question)
                    if isinstance(event, Stepped | Answered | Broken):
                        await transcript.durable()  # before a tool runs, and before the question is closed
                    yield event
        finally:
            self._busy.discard(question.session)
            transcript.flush()  # of a turn that was stopped the words stay

    def awaits_upkeep(self, thread: Thread) -> bool:
        """Whether ``keep`` has anything to do, as it rarely has."""
        with suppress(ModelError):
            session = self._session(thread)
            return session is not None and session.awaits_upkeep
        return False

    async def keep(self, thread: Thread) -> AsyncGenerator[Event, None]:
        """What is to be done after a turn, once its answer is on its way: notes are taken before they would be lost."""
        with suppress(ModelError):
            if session := self._session(thread):
                async with aclosing(session.keep()) as events:
                    async for event in events:
                        yield event

    async def compact(self, thread: Thread, focus: str = "") -> AsyncGenerator[Event, None]:
        """Sum up what was said, as a person asks; ``focus`` is what to keep in particular. Raises ModelError."""
        session = self._session(thread)
        if session is None:
            yield Notice(NOTHING_TO_COMPACT)
            return
        async with aclosing(session.keep("asked", focus)) as events:
            async for event in events:
                yield event

    async def reset(self, thread: Thread, why: ResetWhy) -> AsyncGenerator[Event, None]:
        """Begin the session anew, after noting what matters of it. It is done though no model can be had."""
        session = None
        with suppress(ModelError):
            session = self._session(thread)
        if session is not None:
            async with aclosing(session.reset(why)) as events:
                async for event in events:
                    yield event
        elif self.transcript(thread.session).entries():
            at = self.clock().isoformat()
            self.transcript(thread.session).append(turn=UPKEEP, kind="reset", at=at, body={"why": why})
            await self.transcript(thread.session).durable()

    def composition(self, thread: Thread) -> Composition | None:
        """What the next call is made of, by source; None for a model that is sent no conversation.

        Raises ModelError and agents.prefix.PrefixTooLong.
        """
        session = self._session(thread)
        return session.composition() if session else None

    async def _begun(self, question: Question, model: Model | None) -> list[Event]:
        """Make the question durable; in a session that is to begin anew with it, that comes first."""
        last = next((e for e in reversed(self.transcript(question.session).entries()) if e.turn != UPKEEP), None)
        why = self._due(last) if last is not None else None
        happened = [event async for event in self.reset(question.thread, why)] if why else []
        self._keep(question, question.turn, model)
        return happened

    async def _resumed(self, question: Question, model: Model | None) -> list[Event]:
        """Make durable what came since the turn was cut off: it goes on with that."""
        came = await question.arrivals()
        known = self._joined(question)
        new = [each for each in came if each.turn not in known]
        for each in new:
            self._keep(each, question.turn, model)
        return [Steered(UserMessage(each.text, each.images), each.turn) for each in new]

    def _joined(self, question: Question) -> dict[str, str]:
        """What joined the turn so far: the words, by the turn of their own that they came with."""
        mine = (entry.body for entry in self.transcript(question.session).entries() if entry.turn == question.turn)
        return {str(body["source"]): str(body.get("text", "")) for body in mine if body.get("source")}

    def _due(self, last: Entry) -> Literal["idle", "daily"] | None:
        try:
            return self.resets.due(datetime.fromisoformat(last.at), self.clock(), self.zone())
        except (ValueError, TypeError):  # a time that is none, or has no zone
            return None

    async def _turn(
        self, model: Model | None, question: Question, later: dict[str, Question]
    ) -> AsyncGenerator[Event, None]:
        """The events of what is to be done. ``later`` gets the questions that join this turn, by their own turn."""
        before = _said_last(self.transcript(question.session).entries(), question.turn)
        interviewed = self._interviewed(question, before)
        if isinstance(interviewed, Answered):
            return _alone(interviewed)
        if model is None or not model.uses_tools:
            events = self._without_tools(model, question, before or "")
        else:
            events = await self._with_tools(question, later)
        return _followed_by(interviewed, events) if interviewed else events

    def _without_tools(self, model: Model | None, question: Question, last: str) -> AsyncGenerator[Event, None]:
        from agents import guided, notebook  # what it takes to tell a wish; a model with tools never needs it

        text = "\n\n".join([question.text, *self._joined(question).values()])
        scope, turn, came = question.scope, question.turn, question.quotations
        among_others = question.sender is not None
        if model is None:
            return notebook.answer(text, self.memory, scope, turn, last, came, among_others=among_others)
        return guided.answer(text, model, self.memory, scope, turn, last, came, among_others=among_others)

    async def _with_tools(self, question: Question, later: dict[str, Question]) -> AsyncGenerator[Event, None]:
        session = self._session(question.thread)
        assert session is not None, "only a model that uses tools gets here"
        hits: tuple[Hit, ...] = ()
        if self.recall == "auto":
            hits = (await self.memory.search(question.text, scope=question.scope)).hits

        async def arrivals() -> Sequence[Arrival]:
            came = await question.arrivals()
            if not came:
                return ()
            known = self._joined(question)
            new = [each for each in came if each.turn not in known]
            later.update((each.turn, each) for each in new)
            return [Arrival(UserMessage(each.text, each.images), each.turn) for each in new]

        words = "" if question.quotations or question.images else question.text
        return session.answer(question.turn, words, question.at, hits, arrivals, with_tools=self.recall != "off")

    def _session(self, thread: Thread) -> Session | None:
        """The session as a model with tools has it; None for notes mode and for a model without. Raises ModelError."""
        model = self.model()
        if model is None or not model.uses_tools:
            return None
        transcript = self.transcript(thread.session)
        if thread not in self._open or self._open[thread].model is not model:  # a person may choose another meanwhile
            self._open[thread] = Session(
                self.name,
                self.workspace,
                self.memory,
                self.toolbox,
                self.tools,
                model,
                backed(self._small(), model),
                transcript,
                thread.scope,
                thread.kind,
                self.zone,
                self.clock,
                self.sleep,
            )
        return self._open[thread]

    def _small(self) -> Model | None:
        """The model for silent turns; where it can't be had, the one that answers does them."""
        try:
            return self.small()
        except ModelError as error:
            log.warning("agent.no_small_model", agent=self.name, reason=str(error))
            return None

    def _interviewed(self, question: Question, before: str | None) -> Answered | str:
        """What the interview makes of this message: the answer to it, or what it asks below another, "" for nothing."""
        if not question.scope.is_home or not question.may_interview or not self.workspace.awaits_interview:
            return ""
        from agents.interview import Said, is_greeting

        interview = self._interview()
        if before is None:
            opening = interview.opening() if is_greeting(question.text) else None
            return Answered(opening, None) if opening else ""
        made = interview.reply(before, question.text)
        if made is None:
            return ""
        return Answered(made.text, None) if isinstance(made, Said) else made.question

    def _interview(self) -> Interview:
        from agents.interview import Interview  # it is held once; what it takes to read the answers is of no use after

        return Interview(self.workspace, str(self.zone()), self.zone_like)

    def _keep(self, question: Question, turn: str, model: Model | None) -> None:
        """Put a person's words into the transcript, as a model is shown them and, where that is less, whole."""
        at = question.at.astimezone(self.zone())
        most = Window(model.limits.context).message if model is not None and model.uses_tools else None
        body: dict[str, Any] = self._shortened({"text": question.text}, question, question.turn, most)
        body |= {"said": f"{at:%a %Y-%m-%d %H:%M}", "sender": question.sender}
        body["quotations"] = [
            self._shortened(asdict(quotation), question, f"{question.turn}-quote{number}", most)
            for number, quotation in enumerate(question.quotations, 1)
        ]
        body["images"] = [{"path": image.path, "media_type": image.media_type} for image in question.images]
        if question.turn != turn:
            body["source"] = question.turn
        body = {key: value for key, value in body.items() if value}
        self.transcript(question.session).append(turn=turn, kind="user", at=question.at.isoformat(), body=body)

    def _shortened(self, said: dict[str, Any], question: Question, name: str, most: int | None) -> dict[str, Any]:
        """``said`` as a model is shown it: of a text of more than ``most`` tokens the head and the tail, and the file
        that holds all of it."""
        text = said["text"]
        if most is None or tokens(text) <= most:
            return said
        path = f"{question.scope.folder}media/{portable_name(name)}.txt"
        reach = Confined(self.workspace.root, question.scope)
        try:
            reach.write(reach.located(path, write=True), text.encode("utf-8", "replace"), read=None)
        except (OSError, OutOfReach):  # the transcript has every word
            path = ""
        room = len(text) * most // tokens(text)
        hint = f"all of it is in {path}" if path else "too long to be read at once"
        return said | {"text": shortened(text, room // 2, room // 4, hint), "whole": text}

    def _write(self, session: str, turn: str, message: ChatMessage, *, is_foreign: bool = False) -> None:
        """``is_foreign``: what the turn was given to read was not all the agent's own."""
        kind, body = conversation.body(message)
        body |= {"is_foreign": True} if is_foreign else {}
        self.transcript(session).append(turn=turn, kind=kind, at=self.clock().isoformat(), body=body)


def _as_said(answered: Answered, question: Question) -> Answered:
    """The answer without what is for the program. Silence is none to a question in a direct chat."""
    text = spoken(answered.text)
    if not text and not may_be_silent(question.text, is_direct=question.kind == "direct"):
        return replace(answered, text=EMPTY, complete=False)
    return replace(answered, text=text)


def _said_last(entries: Sequence[Entry], turn: str) -> str | None:
    """What the assistant said last ahead of ``turn``; None where the last word was another's, or there is none."""
    for entry in reversed(entries):
        if entry.kind == "reset":
            return None
        if entry.turn != turn and entry.kind in ("user", "assistant", "tool"):
            return str(entry.body.get("text", "")) if entry.kind == "assistant" else None
    return None


async def _alone(event: Event) -> AsyncGenerator[Event, None]:
    yield event


async def _followed_by(question: str, events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
    """``events`` with ``question`` below the answer that they end with."""
    async with aclosing(events):
        async for event in events:
            match event:
                case Stepped(message=AssistantMessage(tool_calls=(), text=text) as message) if text:
                    yield Stepped(replace(message, text=f"{text}\n\n{question}"))
                case Answered(text=text) if text:
                    yield replace(event, text=f"{text}\n\n{question}")
                case _:
                    yield event


def _answer_in(entries: Sequence[Entry]) -> str | None:
    """The answer of a turn that was finished, None while it isn't."""
    messages = conversation.messages(entries)
    last = messages[-1] if messages else None
    return last.text if isinstance(last, AssistantMessage) and not last.tool_calls and last.text else None
