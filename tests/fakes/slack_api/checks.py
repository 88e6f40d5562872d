"""What the real server refuses in texts, blocks and metadata, by its own words; and what a person sees of blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

TEXT_LIMIT = 40_000
RICH_TEXT_LIMIT = 12_000
"""Characters of all blocks together, above which Slack finds them too long."""

MOST_BLOCKS = 50
_INLINE = {
    "text": {"type", "text", "style"},
    "link": {"type", "url", "text", "unsafe", "style"},
    "user": {"type", "user_id", "style"},
    "channel": {"type", "channel_id", "style"},
    "usergroup": {"type", "usergroup_id", "style"},
    "broadcast": {"type", "range", "style"},
    "emoji": {"type", "name", "unicode", "style"},
    "date": {"type", "timestamp", "format", "url", "fallback", "style"},
    "color": {"type", "value", "style"},
}
_STYLES = {"bold", "italic", "strike", "code"}
_BLOCKS = {
    "rich_text_section": {"type", "elements"},
    "rich_text_quote": {"type", "elements", "border"},
    "rich_text_preformatted": {"type", "elements", "border"},
    "rich_text_list": {"type", "elements", "style", "indent", "offset", "border"},
}
_CONTROL = re.compile(r"<[!@#]")


class RefusalError(Exception):
    """``fields`` go into the answer as they are."""

    def __init__(self, error: str, status: int = 200, **fields: object) -> None:
        super().__init__(error)
        self.error = error
        self.status = status
        self.fields = fields


def check_content(text: str, blocks: list[Json], *, has_files: bool = False) -> None:
    """Refuse what is no message."""
    if len(text) > TEXT_LIMIT:
        raise RefusalError("msg_too_long")
    if not blocks and not text.strip() and not has_files:
        raise RefusalError("no_text")
    if len(blocks) > MOST_BLOCKS:
        raise _invalid("no more than 50 items allowed [json-pointer:/blocks]")
    names = [block["block_id"] for block in blocks if "block_id" in block]
    if len(names) != len(set(names)) or any(not 0 < len(name) <= 255 for name in names):
        raise _invalid("block_id is not unique, or too long")
    for block in blocks:
        _check_block(block)
    if sum(len(shown) for shown in _texts(blocks)) > RICH_TEXT_LIMIT:
        raise RefusalError("msg_blocks_too_long")


def _check_block(block: Json) -> None:
    match block.get("type"):
        case "rich_text":
            if not block.get("elements"):
                raise _invalid("must have at least 1 item [json-pointer:/blocks/0/elements]")
            for element in block["elements"]:
                _check_element(element)
        case "actions":
            buttons = block.get("elements") or []
            if not 1 <= len(buttons) <= 25:
                raise _invalid("must have 1 to 25 items [json-pointer:/blocks/0/elements]")
            if len({button.get("action_id") for button in buttons}) != len(buttons):
                raise _invalid("`action_id` already exists")
            for button in buttons:
                _check_button(button)
        case kind:
            raise _invalid(f"unsupported type: {kind}")


def _check_element(element: Json) -> None:
    kind = str(element.get("type"))
    if kind not in _BLOCKS or element.keys() - _BLOCKS[kind]:
        raise _invalid(f"invalid element {kind}: {sorted(element)}")
    if not element.get("elements"):
        raise _invalid(f"{kind} has no elements")
    for inline in element["elements"]:
        if kind == "rich_text_list":
            _check_element(inline)
        else:
            _check_inline(inline, is_code=kind == "rich_text_preformatted")


def _check_inline(inline: Json, *, is_code: bool) -> None:
    kind = str(inline.get("type"))
    if kind not in (("text", "link") if is_code else _INLINE) or inline.keys() - _INLINE[kind]:
        raise _invalid(f"invalid inline element {kind}: {sorted(inline)}")
    if kind == "text" and not inline["text"]:
        raise _invalid("must be more than 0 characters")
    if kind == "link" and not re.match(r"https?://[^/\s]+|mailto:", inline["url"]):
        raise _invalid("invalid url")
    style = inline.get("style", {})
    if style.keys() - _STYLES or not all(value is True for value in style.values()) or (is_code and style):
        raise _invalid("invalid style")


def _check_button(button: Json) -> None:
    label = button.get("text", {})
    if button.get("type") != "button" or label.get("type") != "plain_text":
        raise _invalid("a button has a plain_text")
    if not 0 < len(label.get("text", "")) <= 75:
        raise _invalid("must be less than 76 characters [json-pointer:/blocks/0/elements/0/text/text]")
    if not 0 < len(button.get("value", "x")) <= 2000 or not 0 < len(button.get("action_id", "x")) <= 255:
        raise _invalid("value or action_id is too long, or empty")


def check_metadata(metadata: Any) -> None:
    """Refuse metadata that is not a name and a flat table."""
    if metadata is None:
        return
    payload = metadata.get("event_payload") if isinstance(metadata, dict) else None
    if not isinstance(payload, dict) or not isinstance(metadata.get("event_type"), str):
        raise RefusalError("invalid_metadata_format")
    if any(isinstance(value, dict) for value in payload.values()):
        raise RefusalError("invalid_metadata_format")


def controls(text: str, blocks: list[Json]) -> list[str]:
    """What would ping somebody, or look as if it could, in the text or anywhere in the blocks."""
    found = [match[0] for shown in (text, *_texts(blocks)) for match in _CONTROL.finditer(shown)]
    return found + [one["type"] for one in _inlines(blocks) if one["type"] in ("user", "usergroup", "broadcast")]


def plain(text: str, blocks: list[Json]) -> str:
    """What a person sees, without markup."""
    elements = [element for block in blocks if block["type"] == "rich_text" for element in block["elements"]]
    if not elements:
        return "" if blocks else _unescaped(text)
    return "\n".join("".join(_shown(one) for one in _inline_of(element)) for element in elements)


def buttons_of(blocks: list[Json]) -> list[list[tuple[str, str]]]:
    """Rows of label and value."""
    rows = [block["elements"] for block in blocks if block["type"] == "actions"]
    return [[(button["text"]["text"], button.get("value", "")) for button in row] for row in rows]


def _shown(inline: Json) -> str:
    return str(inline.get("text") or inline.get("url") or f":{inline.get('name', '')}:")


def _texts(blocks: list[Json]) -> Iterator[str]:
    for inline in _inlines(blocks):
        yield from (inline[name] for name in ("text", "url") if name in inline)


def _inlines(blocks: list[Json]) -> Iterator[Json]:
    for block in blocks:
        if block["type"] == "rich_text":
            for element in block["elements"]:
                yield from _inline_of(element)


def _inline_of(element: Json) -> Iterator[Json]:
    for one in element["elements"]:
        yield from _inline_of(one) if "elements" in one else (one,)


def _unescaped(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _invalid(why: str) -> RefusalError:
    return RefusalError("invalid_blocks", errors=[why], response_metadata={"messages": [f"[ERROR] {why}"]})
