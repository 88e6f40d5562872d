"""One agent: a workspace, a memory, a model, and the turns that bring them together.

It makes each step durable in the session's transcript before the next begins, and takes a turn up again where a crash
left it. Knows no chat platform: a question comes with its scope, an answer is a stream of events.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass, replace
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Literal, TypeAlias

from agents import conversation, guided, notebook
from agents.context import question_text, request, system_text
from agents.events import Answered, Event, Recalled, Stepped
from agents.interview import Interview, is_greeting
from agents.loop import Turn, run
from agents.model import AssistantMessage, ChatMessage, Model, UserMessage
from agents.quoting import quoted
from agents.tools.memory import memory_tools
from workspaces.memory import Hit, Memory
from workspaces.names import portable_name
from workspaces.scope import Scope
from workspaces.transcript import Entry, Transcript
from workspaces.workspace import Workspace

Recall: TypeAlias = Literal["auto", "tool", "off"]

MOST_RECALLED = 6


@dataclass(frozen=True, slots=True)
class Quotation:
    """Somebody's words that came with a question: a quoted or forwarded message. ``source`` says whose."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Question:
    """What a person said. ``turn`` is the same on every try of the same message; ``at`` is aware.

    ``sender`` is the name to show the model where several people speak, None in a direct chat. ``may_interview`` is
    whether a mere greeting may be answered with the first-run interview; not where one answer is all that is wanted.
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
    neither.
    """

    name: str
    workspace: Workspace
    memory: Memory
    model: Model | None
    sessions: Path
    zone: Callable[[], tzinfo]
    clock: Callable[[], datetime]
    recall: Recall = "auto"

    def transcript(self, session: str) -> Transcript:
        return Transcript(self.sessions / f"{portable_name(session)}.jsonl", session)

    def opening(self, session: str, scope: Scope) -> str | None:
        """What to say first in a new home session: the interview's first question, while it is due."""
        interview = self._interview()
        if not scope.is_home or not interview.is_due:
            return None
        transcript = self.transcript(session)
        opening = interview.opening()
        if not any(entry.kind == "user" for entry in transcript.entries()):
            self._write(transcript, "opening", AssistantMessage(opening))
        return opening

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
        if words := self._interviewed(question, before):
            yield Answered(words, None)
            return
        if self.model is None:
            events = notebook.answer(question.text, self.memory, question.scope)
        elif not self.model.uses_tools:
            events = guided.answer(question.text, self.model, self.memory, question.scope)
        else:
            events = self._with_tools(self.model, question, before, done)
        async for event in events:
            yield event

    async def _with_tools(
        self, model: Model, question: Question, before: list[ChatMessage], done: list[ChatMessage]
    ) -> AsyncIterator[Event]:
        hits: tuple[Hit, ...] = ()
        if self.recall == "auto":
            hits = (await self.memory.search(question.text, scope=question.scope, limit=MOST_RECALLED)).hits
        if hits:
            yield Recalled(tuple(hit.citation for hit in hits))
        foreign = [quoted(quotation.text, quotation.source) for quotation in question.quotations]
        at = question.at.astimezone(self.zone())
        said = UserMessage(question_text(question.text, at, question.sender, hits, foreign))
        first = request(system_text(self.name, self.workspace, question.scope), before, said, model.limits)
        tools = () if self.recall == "off" else memory_tools(self.memory, question.scope)
        turn = Turn(model, replace(first, messages=(*first.messages, *done)), tools)
        async for event in run(turn):
            yield event

    def _interviewed(self, question: Question, before: list[ChatMessage]) -> str | None:
        """What the interview says to this message; None when it has no part in it."""
        interview = self._interview()
        if not question.scope.is_home or not interview.is_due:
            return None
        last = before[-1] if before else None
        if isinstance(last, AssistantMessage) and (words := interview.reply(last.text, question.text)):
            return words
        if question.may_interview and interview.is_due and is_greeting(question.text):
            return interview.opening()
        return None

    def _interview(self) -> Interview:
        return Interview(self.workspace, str(self.zone()))

    def _write(self, transcript: Transcript, turn: str, message: ChatMessage) -> Entry:
        kind, body = conversation.body(message)
        return transcript.append(turn=turn, kind=kind, at=self.clock().isoformat(), body=body)


def _answer_in(entries: list[Entry]) -> str | None:
    """The answer of a turn that was finished, None while it isn't."""
    messages = conversation.messages(entries)
    last = messages[-1] if messages else None
    return last.text if isinstance(last, AssistantMessage) and not last.tool_calls and last.text else None
