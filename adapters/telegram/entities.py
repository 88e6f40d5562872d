"""Text with Telegram's entities, both ways: to send a formatted text, and to read a message as Markdown.

Telegram counts offsets and lengths in UTF-16 code units; everything else here counts code points.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from telegram import MessageEntity

from adapters.text import FormattedText, Span, utf16_length

Range: TypeAlias = tuple[int, int]
"""[start, end) in code points."""

_MOST_ENTITIES = 100
"""Telegram ignores further ones (``telegram.constants.MessageLimit.MESSAGE_ENTITIES``)."""

_LONG_QUOTE = 600
"""Code points; a longer block quote is shown folded."""

_TYPES = {
    "bold": MessageEntity.BOLD,
    "heading": MessageEntity.BOLD,
    "italic": MessageEntity.ITALIC,
    "underline": MessageEntity.UNDERLINE,
    "strike": MessageEntity.STRIKETHROUGH,
    "spoiler": MessageEntity.SPOILER,
    "code": MessageEntity.CODE,
    "pre": MessageEntity.PRE,
    "link": MessageEntity.TEXT_LINK,
    "quote": MessageEntity.BLOCKQUOTE,
}

_MARKS = {MessageEntity.BOLD: "**", MessageEntity.ITALIC: "_", MessageEntity.STRIKETHROUGH: "~~"}
_QUOTES = (MessageEntity.BLOCKQUOTE, MessageEntity.EXPANDABLE_BLOCKQUOTE)


# Out ----------------------------------------------------------------------------------------------------------------


def rendered(text: FormattedText) -> tuple[str, list[MessageEntity]]:
    """The text and its entities, well nested, each kind at most once around a character."""
    astral = [i for i, char in enumerate(text.plain) if char > "\uffff"]
    entities: list[MessageEntity] = []
    open_spans: list[Span] = []
    for span in sorted(text.spans, key=lambda span: (span.start, -span.end)):
        open_spans = [outer for outer in open_spans if outer.end > span.start]
        around = {_TYPES[outer.kind] for outer in open_spans}
        # Nothing may stand inside code, and a link to itself is made by Telegram.
        if around & {_TYPES[span.kind], MessageEntity.CODE, MessageEntity.PRE}:
            continue
        if span.kind == "link" and text.plain[span.start : span.end] == span.value:
            continue
        open_spans.append(span)
        entities.append(_entity(span, astral))
    return text.plain, _most_needed(entities)


def _entity(span: Span, astral: Sequence[int]) -> MessageEntity:
    kind = _TYPES[span.kind]
    if span.kind == "quote" and span.end - span.start > _LONG_QUOTE:
        kind = MessageEntity.EXPANDABLE_BLOCKQUOTE
    offset = span.start + bisect_left(astral, span.start)
    return MessageEntity(
        kind,
        offset,
        span.end + bisect_left(astral, span.end) - offset,
        url=span.value if span.kind == "link" else None,
        language=(span.value or None) if span.kind == "pre" else None,
    )


def _most_needed(entities: list[MessageEntity]) -> list[MessageEntity]:
    """All that Telegram will show; where there are too many, links and code rather than emphasis."""
    if len(entities) <= _MOST_ENTITIES:
        return entities
    emphasis = (*_MARKS, MessageEntity.UNDERLINE)
    chosen = sorted(range(len(entities)), key=lambda i: (entities[i].type in emphasis, i))[:_MOST_ENTITIES]
    return [entities[i] for i in sorted(chosen)]


# In -----------------------------------------------------------------------------------------------------------------


def located(text: str, entities: Iterable[MessageEntity]) -> Iterator[tuple[MessageEntity, Range]]:
    """Each entity with the part of ``text`` it covers; one that leaves the text or cuts a character is passed over."""
    places = {}
    units = 0
    for i, char in enumerate(text):
        places[units] = i
        units += utf16_length(char)
    places[units] = len(text)
    for entity in entities:
        start, end = places.get(entity.offset), places.get(entity.offset + entity.length)
        if start is not None and end is not None and start < end:
            yield entity, (start, end)


def as_markdown(text: str, entities: Iterable[MessageEntity], cuts: Sequence[Range] = ()) -> str:
    """``text`` as Markdown, without the ``cuts``.

    What the sender typed is not escaped: a model reads it as it was written.
    """
    removed = {i for start, end in cuts for i in range(start, end)}
    before: dict[int, str] = {}
    after: dict[int, str] = {}
    ends: list[int] = []
    for entity, place in sorted(located(text, entities), key=lambda found: (found[1][0], -found[1][1])):
        start, end = _trimmed(text, place)
        ends = [outer for outer in ends if outer > start]
        if removed.issuperset(range(start, end)) or (ends and end > ends[-1]):  # nothing to show, or it crosses another
            continue
        marks = _marks(entity, text, start, end)
        if marks is None:
            continue
        ends.append(end)
        before[start] = before.get(start, "") + marks[0]
        after[end] = marks[1] + after.get(end, "")
        if entity.type in _QUOTES:
            for i in range(start, end - 1):
                if text[i] == "\n":
                    before[i + 1] = "> " + before.get(i + 1, "")
    pieces = [
        after.get(i, "") + before.get(i, "") + ("" if i in removed else text[i : i + 1]) for i in range(len(text) + 1)
    ]
    return "".join(pieces)


def _trimmed(text: str, place: Range) -> Range:
    """Markdown knows no emphasis that begins or ends with white space."""
    inner = text[place[0] : place[1]]
    return place[0] + len(inner) - len(inner.lstrip()), place[1] - len(inner) + len(inner.rstrip())


def _marks(entity: MessageEntity, text: str, start: int, end: int) -> tuple[str, str] | None:
    """What to write before and after; None for an entity that Markdown has no word for."""
    inner = text[start:end]
    match entity.type:
        case MessageEntity.PRE:
            fence = _fence(inner, 3)
            head = "" if start == 0 or text[start - 1] == "\n" else "\n"
            tail = "" if text[end : end + 1] in ("", "\n") else "\n"
            return f"{head}{fence}{entity.language or ''}\n", f"\n{fence}{tail}"
        case MessageEntity.CODE:
            fence = _fence(inner, 1)
            pad = " " if inner.startswith("`") or inner.endswith("`") else ""
            return fence + pad, pad + fence
        case MessageEntity.TEXT_LINK if entity.url:
            return "[", f"]({entity.url})"
        case kind if kind in _QUOTES:
            return "> ", ""
        case kind if mark := _MARKS.get(kind):
            return mark, mark
    return None


def _fence(code: str, shortest: int) -> str:
    """More backticks than stand in a row anywhere in ``code``."""
    longest = run = 0
    for char in code:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    return "`" * max(shortest, longest + 1)
