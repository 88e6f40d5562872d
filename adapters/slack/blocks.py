"""A formatted text, and buttons, as Slack's blocks.

Rich text says what is what, so nothing in a text can be taken for markup, a mention or a command of Slack's; the plain
text beside it, for notifications, is escaped. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from adapters.errors import Rejected
from adapters.message import Button
from adapters.text import FormattedText, Span

Json: TypeAlias = dict[str, Any]

_STYLES = {"bold": "bold", "heading": "bold", "italic": "italic", "strike": "strike", "code": "code"}
"""What Slack has no style for is shown as it is."""

_CONTROL = re.compile(r"(?<=<)(?=[!@#])")
"""Where a text is cut in two, so that nobody downstream takes any of it for a mention or a command."""

_ADDRESS = re.compile(r"://|\S[.。．｡][^\W\d_]{2,}|\d+(?:\.\d+){3}")  # with what browsers take for dots
"""What in the words of a link reads as if it were where it leads to."""

_LABEL_LIMIT = 75
_VALUE_LIMIT = 2000
_ROW_LIMIT = 25
_MOST_ROWS = 40


def rendered(text: FormattedText, buttons: Sequence[Sequence[Button]] = ()) -> tuple[str, list[Json]]:
    """The text for notifications, and the blocks of a message. Raises Rejected for a button that Slack doesn't take."""
    elements = [element for kind, start, end in _blocks(text) if (element := _element(text, kind, start, end))]
    blocks: list[Json] = [{"type": "rich_text", "elements": elements}] if elements else []
    return escaped(text.plain), [*blocks, *_rows(buttons)]


def escaped(text: str) -> str:
    """As Slack wants text that is not markup: nothing in it is a mention, a link or a command."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


# Rich text ----------------------------------------------------------------------------------------------------------

_Piece: TypeAlias = tuple[str, int, int]
"""What a run of whole lines is ("pre", "quoted pre", "quote" or "section"), and where."""


def _blocks(text: FormattedText) -> list[_Piece]:
    """The text in runs of whole lines, without the line end between two of them."""
    edges = sorted(
        {0, len(text.plain), *(e for s in text.spans if s.kind in ("pre", "quote") for e in (s.start, s.end))}
    )
    pieces: list[_Piece] = []
    for start, end in pairwise(edges):
        around = {span.kind for span in text.spans if span.start <= start and end <= span.end}
        kind = "quote" if "quote" in around else "section"
        if "pre" in around:
            kind = "quoted pre" if kind == "quote" else "pre"
        pieces.append((kind, start, end))
    return [_trimmed(text.plain, piece, last=piece is pieces[-1], first=piece is pieces[0]) for piece in pieces]


def _trimmed(plain: str, piece: _Piece, *, first: bool, last: bool) -> _Piece:
    """A block is a line of its own already: one line end before and after it is none to see."""
    kind, start, end = piece
    if not first and plain[start:end].startswith("\n"):
        start += 1
    if not last and start < end and plain[start:end].endswith("\n"):
        end -= 1
    return kind, start, end


def _element(text: FormattedText, kind: str, start: int, end: int) -> Json | None:
    inline = list(_inline(text, start, end, is_code="pre" in kind))
    if not inline:
        return None
    match kind:
        case "pre":
            return {"type": "rich_text_preformatted", "elements": inline}
        case "quoted pre":
            return {"type": "rich_text_preformatted", "elements": inline, "border": 1}
        case "quote":
            return {"type": "rich_text_quote", "elements": inline}
    return {"type": "rich_text_section", "elements": inline}


def _inline(text: FormattedText, start: int, end: int, *, is_code: bool) -> Iterator[Json]:
    """The runs between two places, each with the style that it has throughout."""
    spans = [span for span in text.spans if span.start < end and span.end > start]
    edges = sorted({start, end, *(e for s in spans for e in (s.start, s.end) if start < e < end)})
    for left, right in pairwise(edges):
        around = [span for span in spans if span.start <= left and right <= span.end]
        style = {} if is_code else {_STYLES[span.kind]: True for span in around if span.kind in _STYLES}
        link = next((span for span in around if span.kind == "link"), None)
        link = None if is_code else link
        tells = link is not None and _misleads(text.plain[link.start : link.end], link.value)
        for run in filter(None, _CONTROL.split(text.plain[left:right])):
            yield _styled(run, style, None if tells else link)
        if link is not None and tells and right == min(link.end, end):
            yield from ({"type": "text", "text": " ("}, _styled(link.value, {}, link), {"type": "text", "text": ")"})


def _misleads(label: str, target: str) -> bool:
    """Whether the words of a link look like an address, and of another place than it leads to."""
    words, place = (re.sub(r"^https?://", "", one.strip()).rstrip("/") for one in (label, target))
    is_begun = place.startswith(words) and place[len(words) :][:1] in ("", "/", "?", "#")
    return _ADDRESS.search(label) is not None and not is_begun


def _styled(run: str, style: dict[str, bool], link: Span | None) -> Json:
    shown: Json = {"type": "text", "text": run}
    if link is not None:
        url = link.value.replace("<", "%3C").replace(">", "%3E")
        shown = {"type": "link", "url": url} | ({"text": run} if run != link.value else {})
    return shown | ({"style": style} if style else {})


# Buttons ------------------------------------------------------------------------------------------------------------


def _rows(rows: Sequence[Sequence[Button]]) -> list[Json]:
    rows = [row for row in rows if row]
    if len(rows) > _MOST_ROWS or any(len(row) > _ROW_LIMIT for row in rows):
        raise Rejected(f"Slack takes at most {_MOST_ROWS} rows of {_ROW_LIMIT} buttons")
    return [
        {"type": "actions", "elements": [_button(button, f"{number}.{place}") for place, button in enumerate(row)]}
        for number, row in enumerate(rows)
    ]


def _button(button: Button, name: str) -> Json:
    if not button.label.strip() or not 0 < len(button.data) <= _VALUE_LIMIT:
        raise Rejected(f"the button {button.label!r} needs a label, and data of 1 to {_VALUE_LIMIT} characters")
    label = button.label if len(button.label) <= _LABEL_LIMIT else f"{button.label[: _LABEL_LIMIT - 1]}…"
    return {
        "type": "button",
        "action_id": name,
        "text": {"type": "plain_text", "text": label, "emoji": True},
        "value": button.data,
    }
