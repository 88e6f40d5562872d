"""Compaction: where a conversation may be cut, and the summary that takes the place of what is before the cut.

A summary is audited before anything relies on it: its sections, its size, the exact identifiers. One that can't be used
is refused, and the history stays as it was. Knows no transcript; ``agents.upkeep`` says when.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from importlib.resources import files
from typing import TypeAlias

import structlog

from agents.budget import tokens
from agents.completion import Completion, Sleep, Spent, complete
from agents.conversation import Line, View
from agents.identifiers import identifiers, missing
from agents.model import AssistantMessage, Failed, Model, Request, ToolResult, UserMessage
from agents.quoting import one_line, quoted
from agents.record import batches, halves, record
from agents.window import Window

log = structlog.get_logger(__name__)

SECTIONS = ("Decisions", "Open to-dos", "Constraints", "Pending requests", "Identifiers")
NONE = "- none"

SECONDS = 120.0
MOST_IDENTIFIERS = 12
"""That a summary is asked for: as many lines as one section of it holds."""

WORDS_PER_TOKEN = 0.6
"""What a model is asked for is less than what it may take: models count badly."""

TOO_SLOW = "the summary took longer than {seconds:g} seconds"
WRONG = "That can't be used: {faults}. Write the whole summary again, and nothing else."

_HEADING = re.compile(r"^[ \t]*#{1,6}[ \t]*\**(?P<name>[^\n*:]+?)\**[ \t]*:?[ \t]*$", re.MULTILINE)
_EMPTY = re.compile(r"[\s*\-.]*(?:none|n/a|nothing)?[\s*\-.]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Summary:
    text: str
    spent: tuple[Spent, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """``why`` is one clause for a person. ``is_too_long``: what was to be summed up is, for the model."""

    why: str
    spent: tuple[Spent, ...] = ()
    is_too_long: bool = False


Summed: TypeAlias = Summary | Refused


def cut(view: View, room: int) -> int:
    """The index of the first line that stays when the newest ones are to be at most ``room`` estimated tokens.

    It is where a turn begins; in a turn that is longer than ``room``, where one of its steps begins, and the question
    of the turn stays with it. A call is never parted from its results, and what is newest stays even if it is over
    ``room``. 0 when nothing can go.
    """
    lines, first = view.lines, begin(view)
    spent, kept = 0, len(lines)
    for at in range(len(lines) - 1, first - 1, -1):
        spent += lines[at].tokens
        if spent > room and kept < len(lines):
            break
        if at == first or lines[at].turn != lines[at - 1].turn:
            kept = at
            if spent > room:
                kept = _within(lines, at, room)
                break
    return kept if first < kept < len(lines) else 0


def replaced(view: View, at: int) -> int:
    """The estimate for what a cut at ``at`` takes out: not the summary that was there, nor a question that stays."""
    gone = view.lines[begin(view) : at]
    stays = next((line for line in gone if line.turn == view.lines[at].turn), None)
    return sum(line.tokens for line in gone if line is not stays)


def begin(view: View) -> int:
    """How many of the first lines are the program's own: the summary of what was before."""
    return 1 if view.is_compacted else 0


async def summarise(
    model: Model,
    view: View,
    at: int,
    *,
    most: int,
    zone: tzinfo | None,
    focus: str = "",
    seconds: float = SECONDS,
    sleep: Sleep = asyncio.sleep,
) -> Summed:
    """Sum up the lines before ``at``, and the summary before them, in at most ``most`` tokens.

    ``focus`` is what the person wants kept in particular. What is longer than the model's window is summed up in parts,
    each with the summary so far. Never raises for what a model does.
    """
    spent: list[Spent] = []
    words = max(60, int(most * WORDS_PER_TOKEN))
    system = files("agents").joinpath("prompts/summary.md").read_text(encoding="utf-8").strip().format(words=words)
    window = Window(model.limits.context)
    room = max(window.message, window.flush_at - tokens(system) - 2 * most)
    summary = view.summary
    try:
        async with asyncio.timeout(seconds):
            waiting = list(batches(view.lines[begin(view) : at], room))
            while waiting:
                batch = waiting.pop(0)
                asked = _asked(summary, record(batch, zone, room // 2), focus)
                call = _Call(model, Request(system, (UserMessage(asked),), max_output=window.reserve), sleep, spent)
                result = await call.summary(most, _wanted(summary, batch))
                if isinstance(result, Summary):
                    summary = result.text
                elif result.is_too_long and len(parts := halves(batch)) > 1:
                    waiting = [*parts, *waiting]  # its tokenizer counts more than the estimate
                else:
                    return result
    except TimeoutError:
        return Refused(TOO_SLOW.format(seconds=seconds), tuple(spent))
    return Summary(summary, tuple(spent))


def sections(text: str) -> dict[str, str]:
    """The body of each section that a summary has, by its name; what is before the first heading is dropped."""
    names = {name.casefold(): name for name in SECTIONS}
    parts = _HEADING.split(text)
    return {names[name.strip().casefold()]: body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True)
            if name.strip().casefold() in names}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Call:
    """One summary: a first try, and one with what was wrong about it."""

    model: Model
    request: Request
    sleep: Sleep
    spent: list[Spent]

    async def summary(self, most: int, wanted: Sequence[str]) -> Summed:
        usable, why, is_too_long, request = "", "", False, self.request
        for _ in range(2):
            answer = await complete(self.model, request, sleep=self.sleep)
            if isinstance(answer, Failed):
                why, is_too_long = why or answer.message, answer.kind == "overflow"
                break
            self.spent.append(answer.spent)
            text, faults = _audited(answer, most)
            lost = missing(wanted, text)
            if not faults:
                usable = text
                if not lost:
                    break
                faults = [f"it lacks {', '.join(lost)}"]
            why = f"the summary can't be used: {'; '.join(faults)}"
            log.info("compaction.wrong", faults=faults)
            again = AssistantMessage(answer.text or "(nothing)"), UserMessage(WRONG.format(faults="; ".join(faults)))
            request = Request(request.system, (*self.request.messages, *again), max_output=request.max_output)
        if not usable:
            return Refused(why.rstrip("."), tuple(self.spent), is_too_long)
        return Summary(_completed(usable, missing(wanted, usable), most), tuple(self.spent))


def _asked(summary: str, said: str, focus: str) -> str:
    before = f"The summary of what came before:\n{quoted(summary, 'the summary so far')}" if summary else ""
    wish = f"The person wants this in particular to be kept: {one_line(focus, 200)}" if focus.strip() else ""
    return "\n\n".join(filter(None, (before, said, wish, "Write the summary.")))


def _wanted(summary: str, batch: Sequence[Line]) -> tuple[str, ...]:
    """What the summary has to copy: from what people and the assistant said, and from the summary before."""
    said = [line.message.text for line in batch if not isinstance(line.message, ToolResult)]
    return identifiers([sections(summary).get("Identifiers", ""), *said], MOST_IDENTIFIERS)


def _audited(answer: Completion, most: int) -> tuple[str, list[str]]:
    """The summary in its own form, and what makes it useless: nothing when it can be used."""
    if not answer.text.strip():
        return "", ["it is empty"]
    found = sections(answer.text)
    text = _formed(found)
    faults = [f"the heading {name!r} is missing" for name in SECTIONS if name not in found]
    if answer.is_cut:
        faults.append("it was cut off at the output limit")
    if not faults and all(_EMPTY.fullmatch(found[name]) for name in SECTIONS):
        faults.append("every section is empty")
    if (size := tokens(text)) > most:
        faults.append(f"it is too long: about {size:,} tokens where {most:,} are the most")
    return text, faults


def _formed(found: dict[str, str]) -> str:
    return "\n".join(f"## {name}\n{found[name] or NONE}" for name in SECTIONS if name in found)


def _completed(text: str, lost: Sequence[str], most: int) -> str:
    """The summary with the identifiers that the model left out, as many as there is room for."""
    for each in lost:
        found = sections(text)
        listed = "" if _EMPTY.fullmatch(found["Identifiers"]) else found["Identifiers"] + "\n"
        longer = _formed({**found, "Identifiers": f"{listed}- {each}"})
        text = longer if tokens(longer) <= most else text
    return text


def _within(lines: Sequence[Line], start: int, room: int) -> int:
    """Where to cut inside the turn that begins at ``start`` and is longer than ``room``; its question stays."""
    spent = lines[start].tokens
    kept = 0
    for at in range(len(lines) - 1, start, -1):
        spent += lines[at].tokens
        if spent > room and kept:
            break
        if not isinstance(lines[at].message, ToolResult):
            kept = at
    return kept or start
