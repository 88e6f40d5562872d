"""One agent: a workspace, a memory, a model, and the turns that bring them together.

It makes each step durable in the session's transcript before the next begins, and takes a turn up again where a crash
left it. Knows no chat platform: a question comes with its scope, an answer is a stream of events.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Literal, TypeAlias

from agents import conversation, guided, notebook
from agents.context import question_text, request, system_text
from agents.events import Answered, Event, Recalled, Stepped
from agents.interview import Aside, Interview, Said, is_greeting
from agents.loop import Turn, run
from agents.model import AssistantMessage, ChatMessage, Model, UserMessage
from agents.quoting import Quotation
from agents.tools.memory import memory_tools
from workspaces.memory import Hit, Memory
from workspaces.names import portable_name
from workspaces.profile import read_profile
from workspaces.scope import Scope
from workspaces.transcript import Entry, Transcript
from workspaces.workspace import Workspace

Recall: TypeAlias = Literal["auto", "tool", "off"]

MOST_RECALLED = 6


@dataclass(frozen=True, slots=True)
class Question:
    """What a person said. ``turn`` is the same on every try of the same message; ``at`` is aware.

    ``sender`` is the name to show the model where several people speak, None in a direct chat. ``may_interview`` is
    whether the person can be asked something in turn; not where one answer is all that is wanted.
    """

    turn: str
    session: str
    scope: Scope
    text: str
    at: datetime
    sender: str | None = None
    quotations: tuple[Quotation, ...] = ()
    may_interview: bool = True


@dataclass(frozen=True, slots=True)
class Agent:
    """``model`` None means notes mode. ``sessions`` is the folder of the transcripts.

    ``recall`` "auto" offers the notes that fit before every turn, "tool" leaves searching to the model, "off" does
    neither. ``zone_like`` finds the time zone that a mistyped name was meant for, None for none.
    """

    name: str
    workspace: Workspace
    memory: Memory
    model: Model | None
    sessions: Path
    zone: Callable[[], tzinfo]
    clock: Callable[[], datetime]
    recall: Recall = "auto"
    zone_like: Callable[[str], str | None] = lambda _: None

    def transcript(self, session: str) -> Transcript:
        return Transcript(self.sessions / f"{portable_name(session)}.jsonl", session)

    def opening(self, session: str, scope: Scope) -> str | None:
        """What to say first to somebody who comes into a home session: the interview's question, while it is due."""
        interview = self._interview()
        if not scope.is_home or not interview.is_due:
            return None
        transcript = self.transcript(session)
        last = _last_said(conversation.messages(transcript.entries()))
        opening = interview.opening(last)
        if opening is not None and opening != last:
            self._write(transcript, "opening", AssistantMessage(opening))
        return opening

    def misgiving(self) -> str | None:
        """One sentence about a time zone in USER.md that there is none of, with the mend; None when all is well."""
        given = read_profile(self.workspace.root).unknown_zone
        if not given:
            return None
        near = self.zone_like(given)
        mend = f"Did you mean {near}?" if near else "A name such as Europe/Berlin is known."
        return f"USER.md gives the time zone as {given}, but there is none of that name: I go by {self.zone()}. {mend}"

    async def answer(self, question: Question) -> AsyncIterator[Event]:
        """Run the turn, or what is left of it. The last event is ``Answered`` or ``Broken``."""
        transcript = self.transcript(question.session)
        mine = [entry for entry in transcript.entries() if entry.turn == question.turn]
        if text := _answer_in(mine):
            yield Answered(text, None)
            return
        before = conversation.messages(e for e in transcript.entries() if e.turn != question.turn)
        if not mine:
            quotations = [asdict(quotation) for quotation in question.quotations]
            said = {"text": question.text, "sender": question.sender, "quotations": quotations}
            at = question.at.isoformat()
            transcript.append(turn=question.turn, kind="user", at=at, body=said)
        spoken = False
        async for event in self._turn(question, before, conversation.messages(mine)[1:]):
            match event:
                case Stepped(message=message):
                    self._write(transcript, question.turn, message)
                    spoken = isinstance(message, AssistantMessage) and not message.tool_calls and bool(message.text)
                case Answered(text=text) if not spoken:
                    self._write(transcript, question.turn, AssistantMessage(text))
            yield event

    async def _turn(
        self, question: Question, before: list[ChatMessage], done: list[ChatMessage]
    ) -> AsyncIterator[Event]:
        """``before`` is the conversation up to the question, ``done`` the steps that a crashed try has behind it."""
        interviewed = self._interviewed(question, before)
        if isinstance(interviewed, Said):
            yield Answered(interviewed.text, None)
            return
        text, scope, turn, came = question.text, question.scope, question.turn, question.quotations
        if self.model is None:
            events = notebook.answer(text, self.memory, scope, turn, _last_said(before), came)
        elif not self.model.uses_tools:
            events = guided.answer(text, self.model, self.memory, scope, turn, _last_said(before), came)
        else:
            events = self._with_tools(self.model, question, before, done)
        async for event in events:
            yield event if interviewed is None else _followed_by(interviewed.question, event)

    async def _with_tools(
        self, model: Model, question: Question, before: list[ChatMessage], done: list[ChatMessage]
    ) -> AsyncIterator[Event]:
        hits: tuple[Hit, ...] = ()
        if self.recall == "auto":
            hits = (await self.memory.search(question.text, scope=question.scope, limit=MOST_RECALLED)).hits
        if hits:
            yield Recalled(tuple(hit.citation for hit in hits))
        at = question.at.astimezone(self.zone())
        said = UserMessage(question_text(question.text, at, question.sender, hits, question.quotations))
        first = request(system_text(self.name, self.workspace, question.scope), before, said, model.limits)
        tools = () if self.recall == "off" else memory_tools(self.memory, question.scope)
        turn = Turn(model, replace(first, messages=(*first.messages, *done)), tools)
        async for event in run(turn):
            yield event

    def _interviewed(self, question: Question, before: list[ChatMessage]) -> Said | Aside | None:
        """What the interview makes of this message; None when it has no part in it."""
        interview = self._interview()
        if not question.scope.is_home or not question.may_interview or not interview.is_due:
            return None
        if before and isinstance(before[-1], AssistantMessage):
            return interview.reply(_last_said(before), question.text)
        opening = interview.opening() if is_greeting(question.text) else None
        return Said(opening) if opening else None

    def _interview(self) -> Interview:
        return Interview(self.workspace, str(self.zone()), self.zone_like)

    def _write(self, transcript: Transcript, turn: str, message: ChatMessage) -> Entry:
        kind, body = conversation.body(message)
        return transcript.append(turn=turn, kind=kind, at=self.clock().isoformat(), body=body)


def _last_said(messages: Sequence[ChatMessage]) -> str:
    """What the assistant said last, "" where the last word was another's."""
    last = messages[-1] if messages else None
    return last.text if isinstance(last, AssistantMessage) else ""


def _followed_by(question: str, event: Event) -> Event:
    """``event`` with ``question`` below the answer that it ends with."""
    match event:
        case Stepped(message=AssistantMessage(tool_calls=(), text=text) as message) if text:
            return Stepped(replace(message, text=f"{text}\n\n{question}"))
        case Answered(text=text) if text:
            return replace(event, text=f"{text}\n\n{question}")
        case _:
            return event


def _answer_in(entries: list[Entry]) -> str | None:
    """The answer of a turn that was finished, None while it isn't."""
    messages = conversation.messages(entries)
    last = messages[-1] if messages else None
    return last.text if isinstance(last, AssistantMessage) and not last.tool_calls and last.text else None
