"""A conversation on disk and as a model reads it: transcript entries ⇄ chat messages.

The transcript is complete for ever; what a model sees is a view, computed from the entries alone. What a crash left
half done is completed here: a provider never sees a tool call without its result. Knows no model and no window.

Beside messages ("user", "assistant", "tool") a transcript holds marks, one append each:

flushed    {through, noted, outcome}  all up to ``through`` was looked at by a flush; not so with the outcome "failed",
           which says {from, why} too, as does "given up": no model will look at what is between the two
compacted  {summary, from, before, after, trimmed, foreign}  the view is the summary, and what was said since ``from``
refused    {why}  a compaction that failed; the history stayed
trimmed    {through, before, after}  old results up to there are shown shortened
reset      {why}  the view begins anew after it
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeAlias, assert_never

from agents.budget import estimate
from agents.model import AssistantMessage, ChatMessage, Image, ToolCall, ToolResult, UserMessage
from agents.quoting import Quotation, accompanied, one_line, quoted
from agents.trimming import trimmed
from workspaces.transcript import Entry

Mark: TypeAlias = Literal["flushed", "compacted", "refused", "trimmed", "reset"]

_MESSAGES = ("user", "assistant", "tool")

INTERRUPTED = "Interrupted: the program was stopped while this ran. It may or may not have had an effect."

BEGUN = "[The conversation begins with the assistant's words.]"
SUMMARISED = "[What was said before is no longer shown. This record of it is no new request: go on from it.]"
DROPPED = "[Older messages are no longer shown, and nothing sums them up. Search the memory for what they said.]"
LEFT_OUT = "[left out: words from elsewhere]"


@dataclass(frozen=True, slots=True)
class Line:
    """A message where it stands: the ``id``, ``turn`` and time (``at``, ISO 8601) of its entry.

    ``tokens`` is the estimate for it, made once.
    """

    id: str
    turn: str
    at: str
    message: ChatMessage
    tokens: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", estimate(self.message))


@dataclass(frozen=True, slots=True)
class View:
    """What a model sees of a transcript: ``lines`` begin with a user message, and every call has its result.

    ``is_compacted``: the first line stands for the messages before; ``summary`` is what it says of them, "" where they
    were dropped without one. ``unflushed`` is the index of the first
    line that no flush has looked at, ``len(lines)`` when there is none. ``is_behind``: lines that have left the window
    wait for a flush too. ``is_tainted``: foreign text, or a summary of it, is among the lines.

    ``is_flushed``: a flush has worked since the last compaction or reset. ``flush_failures`` and ``refusals`` count the
    flushes and the compactions that failed since one worked; ``failed_at`` is when the last of these flushes failed.
    """

    lines: tuple[Line, ...] = ()
    is_compacted: bool = False
    summary: str = ""
    unflushed: int = 0
    is_behind: bool = False
    is_tainted: bool = False
    is_flushed: bool = False
    flush_failures: int = 0
    refusals: int = 0
    failed_at: str = ""
    tokens: int = field(init=False, compare=False)
    """The estimate for all of it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", sum([line.tokens for line in self.lines]))

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        return tuple([line.message for line in self.lines])

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(line.id for line in self.lines)


def body(message: ChatMessage) -> tuple[str, dict[str, Any]]:
    """The kind and the body of the entry that stores ``message``; of an image, where its file is."""
    match message:
        case UserMessage(text=text, images=images):
            kept = [{"path": image.path, "media_type": image.media_type} for image in images]
            return "user", {"text": text, "images": kept} if kept else {"text": text}
        case AssistantMessage():
            return "assistant", asdict(message)
        case ToolResult():
            return "tool", asdict(message)
        case _:
            assert_never(message)


def messages(entries: Iterable[Entry]) -> list[ChatMessage]:
    """The messages of a transcript, in order, every call followed by exactly one result."""
    return [line.message for line in _paired(_lines(entries))]


def paired(conversation: Iterable[ChatMessage]) -> list[ChatMessage]:
    """The messages with every call followed by exactly one result, and no result without its call; idempotent."""
    return [line.message for line in _paired(Line("", "", "", message) for message in conversation)]


def view(entries: Sequence[Entry]) -> View:
    """What a model sees of a transcript: the newest summary, and what was said since."""
    return Views()(entries)


class Views:
    """``view`` for one transcript as it grows: what has been read of it is not read again."""

    def __init__(self) -> None:
        self._lines: dict[str, Line] = {}
        self._newest = ""
        self._view = View()

    def __call__(self, entries: Sequence[Entry]) -> View:
        newest = entries[-1].id if entries else ""
        if newest != self._newest:
            self._view = self._longer(entries) or self._made(entries)
            self._newest = newest
        return self._view

    def _longer(self, entries: Sequence[Entry]) -> View | None:
        """The last view with what came since, where that changes nothing of what it had: it is messages only, and no
        result of an earlier call. None where that is not so."""
        come: list[Entry] = []
        for entry in reversed(entries):
            if entry.id == self._newest:
                break
            come.insert(0, entry)
        else:
            return None
        if not self._view.lines or any(entry.kind not in _MESSAGES for entry in come):
            return None
        if next((entry.kind for entry in come if entry.kind != "user"), "") == "tool":
            return None
        lines = list(_lines(come))
        self._lines |= {line.id: line for line in lines}
        is_tainted = self._view.is_tainted or any(map(_is_foreign, come))
        return replace(self._view, lines=(*self._view.lines, *_paired(lines)), is_tainted=is_tainted)

    def _made(self, entries: Sequence[Entry]) -> View:
        marks = _Marks(entries)
        shown = [entry for entry in entries[marks.begin :] if entry.kind in _MESSAGES]
        read = [self._lines.get(entry.id) or _line(entry) for entry in shown]
        self._lines = {line.id: line for line in read if line is not None}
        lines = list(_paired(line for line in read if line is not None))
        compacted = marks.compacted
        if compacted is not None:
            lines = [_stand_in(compacted), *_question(entries[marks.reset : marks.begin], lines), *lines]
        elif lines and not isinstance(lines[0].message, UserMessage):
            lines.insert(0, replace(lines[0], message=UserMessage(BEGUN)))
        if marks.trimmed >= 0:
            lines = [replace(x, message=trimmed(x.message)) if marks.at(x) <= marks.trimmed else x for x in lines]
        unseen = range(marks.watermark + 1, marks.begin)
        return View(
            tuple(lines),
            is_compacted=compacted is not None,
            summary=str(compacted.body.get("summary", "")) if compacted else "",
            unflushed=next((i for i, line in enumerate(lines) if marks.at(line) > marks.watermark), len(lines)),
            is_behind=any(_message(entries[at], foreign=False) is not None for at in unseen),
            is_tainted=_is_tainted(entries, marks),
            is_flushed=marks.is_flushed,
            flush_failures=marks.flush_failures,
            refusals=marks.refusals,
            failed_at=marks.failed_at,
        )


def pending(entries: Sequence[Entry]) -> tuple[Line, ...]:
    """What no flush has looked at, whether or not it is still in the window, without what is foreign.

    Of a turn that foreign text came into, only a person's words are told from there on: the assistant's may repeat it.
    As it was written, and so not fit to be sent to a model as a conversation.
    """
    since, foreign, lines = _Marks(entries).watermark + 1, set[str](), list[Line]()
    for at, entry in enumerate(entries):
        if entry.kind in _MESSAGES and _is_foreign(entry):
            foreign.add(entry.turn)
        line = _line(entry, foreign=False) if at >= since else None
        if line is not None:
            lines.append(_untold(line) if entry.turn in foreign else line)
    return tuple(lines)


def is_pending_tainted(entries: Sequence[Entry]) -> bool:
    """Whether foreign text may be behind what is ``pending``: it is in the window, or among what waits.

    Of what waits since before a reset it isn't known any more, and taken for granted.
    """
    marks = _Marks(entries)
    waiting = [(at, entry) for at, entry in enumerate(entries) if at > marks.watermark and entry.kind in _MESSAGES]
    return _is_tainted(entries, marks) or any(at < marks.reset or _is_foreign(entry) for at, entry in waiting)


def needed(entries: Sequence[Entry]) -> int:
    """The index of the first entry that still says something: of a view, of what waits for a flush, of the last turns.

    ``view`` and ``pending`` of the rest are the same as of all.
    """
    marks = _Marks(entries)
    turns = dict.fromkeys(entry.turn for entry in reversed(entries) if entry.kind in _MESSAGES)
    shown, waiting = (
        next((entry.turn for entry in entries[since:] if entry.kind in _MESSAGES), "")
        for since in (marks.begin, marks.watermark + 1)
    )
    turns_kept = {*list(turns)[:2], shown, waiting}
    of_turns = (at for at, entry in enumerate(entries) if entry.turn in turns_kept)
    first = min(marks.watermark, marks.begin, next(of_turns, len(entries)))
    return max(0, first if marks.compacted else min(first, marks.reset - 1))


class _Marks:
    """What the marks of a transcript say: positions are indices of entries, -1 for nowhere.

    A mark that names an entry that isn't there, or lies on the wrong side of a reset, says nothing.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._places = {entry.id: at for at, entry in enumerate(entries)}
        self.reset = self.begin = 0
        self.watermark = self.trimmed = -1
        self.compacted: Entry | None = None
        self.is_flushed = False
        self.flush_failures = self.refusals = 0
        self.failed_at = ""
        for at, entry in enumerate(entries):
            if entry.kind not in _MESSAGES:
                self._read(at, entry)

    def at(self, line: Line) -> int:
        """Where a line was said; a summary comes before everything."""
        return -1 if self.compacted and line.id == self.compacted.id else self._places.get(line.id, -1)

    def _read(self, at: int, entry: Entry) -> None:
        match entry.kind:
            case "flushed":
                self._flushed(at, entry)
            case "compacted" if self.begin <= (first := self._place(entry, "from")) < at:
                self.begin, self.compacted = first, entry
                self.is_flushed, self.refusals = False, 0
            case "refused":
                self.refusals += 1
            case "trimmed" if (through := self._place(entry, "through")) < at:
                self.trimmed = max(self.trimmed, through)
            case "reset":
                self.reset = self.begin = at + 1
                self.compacted = None
                self.is_flushed, self.refusals = False, 0
            case _:
                pass

    def _flushed(self, at: int, entry: Entry) -> None:
        if entry.body.get("outcome") == "failed":
            self.flush_failures += 1
            self.failed_at = entry.at
        elif max(0, self.watermark) <= (through := self._place(entry, "through")) < at:
            self.watermark, self.is_flushed, self.flush_failures, self.failed_at = through, True, 0, ""

    def _place(self, entry: Entry, key: str) -> int:
        return self._places.get(str(entry.body.get(key)), -1)


def _stand_in(compacted: Entry) -> Line:
    """The summary as a message that is marked as context, and no words of a person."""
    summary = str(compacted.body.get("summary", ""))
    parts = [SUMMARISED, quoted(summary, "what was said before")] if summary else []
    if compacted.body.get("trimmed"):
        parts.append(DROPPED)
    return Line(compacted.id, "", compacted.at, UserMessage("\n\n".join(parts)))


def _question(before: Sequence[Entry], lines: Sequence[Line]) -> list[Line]:
    """The question of a turn whose first steps have left the window: what is done in the rest is still about it."""
    asked = (entry for entry in before if lines and entry.turn == lines[0].turn and entry.kind == "user")
    return list(_lines(asked))[:1]


def _paired(lines: Iterable[Line]) -> Iterator[Line]:
    """The lines with the results of each batch of calls right behind it, in the order of the calls.

    What a person says meanwhile comes after the batch; a call of the same id twice in one batch is one call.
    """
    calling: Line | None = None
    calls: dict[str, ToolCall] = {}
    results: dict[str, Line] = {}
    said: list[Line] = []

    def ended() -> Iterator[Line]:
        if calling is not None:
            for call in calls.values():
                missing = ToolResult(call.id, call.name, INTERRUPTED, is_error=True)
                yield results.get(call.id) or replace(calling, message=missing)
        yield from said

    for line in lines:
        message = line.message
        if isinstance(message, ToolResult):
            if message.call_id in calls:
                results.setdefault(message.call_id, line)
        elif isinstance(message, UserMessage) and calls:
            said.append(line)
        else:
            yield from ended()
            calls, results, said, calling = {}, {}, [], line
            if isinstance(message, AssistantMessage) and message.tool_calls:
                for call in message.tool_calls:
                    calls.setdefault(call.id, call)
                line = replace(line, message=replace(message, tool_calls=tuple(calls.values())))
            yield line
    yield from ended()


def _lines(entries: Iterable[Entry], *, foreign: bool = True) -> Iterator[Line]:
    return (line for entry in entries if (line := _line(entry, foreign=foreign)) is not None)


def _line(entry: Entry, *, foreign: bool = True) -> Line | None:
    message = _message(entry, foreign=foreign)
    return None if message is None else Line(entry.id, entry.turn, entry.at, message)


def _message(entry: Entry, *, foreign: bool) -> ChatMessage | None:
    """The message of an entry; None for one that holds none, or is damaged."""
    try:
        return _read(entry, foreign=foreign)
    except (KeyError, TypeError, AttributeError):
        return None


def _read(entry: Entry, *, foreign: bool) -> ChatMessage | None:
    body = entry.body
    match entry.kind:
        case "user":
            images = tuple(Image(str(i["path"]), str(i["media_type"])) for i in body.get("images", ()))
            return UserMessage(_said(body, foreign=foreign), images)
        case "assistant":
            calls = tuple(ToolCall(c["id"], c["name"], c["arguments"]) for c in body.get("tool_calls", ()))
            state = tuple(dict(part) for part in body.get("state", ()))
            words = str(body.get("text", "")), str(body.get("reasoning", "")), str(body.get("model", ""))
            return AssistantMessage(words[0], calls, words[1], words[2], state)
        case "tool":
            text = str(body["text"]) if foreign or not _is_foreign(entry) else LEFT_OUT
            is_error, is_foreign = bool(body.get("is_error")), bool(body.get("is_foreign"))
            return ToolResult(body["call_id"], body["name"], text, is_error, is_foreign)
        case _:
            return None


def _untold(line: Line) -> Line:
    """The line without what the assistant said, told a tool and was told by one: that something was, and no word."""
    match line.message:
        case AssistantMessage(text=text, tool_calls=calls):
            bare = tuple(replace(call, arguments="…") for call in calls)
            return replace(line, message=AssistantMessage(LEFT_OUT if text.strip() else "", bare))
        case ToolResult() as result:
            return replace(line, message=replace(result, text=LEFT_OUT))
        case _:
            return line


def _is_tainted(entries: Sequence[Entry], marks: _Marks) -> bool:
    """Whether foreign text, or a summary of it, is in the view."""
    shown = (entry for entry in entries[marks.begin :] if entry.kind in _MESSAGES)
    return bool(marks.compacted and marks.compacted.body.get("foreign")) or any(map(_is_foreign, shown))


def _is_foreign(entry: Entry) -> bool:
    """Whether an entry brought words from elsewhere into the conversation."""
    return bool(entry.body.get("is_foreign") or entry.body.get("quotations"))


def _said(body: Mapping[str, Any], *, foreign: bool) -> str:
    """A person's words as they were: when they were said, who spoke where several do, what they quoted in its fence."""
    quotations = body.get("quotations", ()) if foreign else ()
    came = [Quotation(str(q["text"]), str(q["source"]), bool(q.get("below"))) for q in quotations]
    label = " ".join(one_line(str(body[key]), 60) for key in ("said", "sender") if body.get(key))
    return accompanied((f"[{label}] " if label else "") + str(body.get("text", "")), came)
