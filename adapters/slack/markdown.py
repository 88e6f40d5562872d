"""What a person wrote in Slack as Markdown: rich text, which says what is what, or mrkdwn, where there is none.

What the sender typed is not escaped: a model reads it as it was written. Mentions become names. Pure: the names are
given. Knows no message and no network.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from adapters.slack.emoji import character_of

ME = "\ue000"
"""Stands for a mention of us, until it is cut out; a private character, which nothing that people send means."""

_REFERENCE = re.compile(r"<([@#!])([^<>|]*)(?:\|([^<>]*))?>")
_LINK = re.compile(r"<([a-zA-Z][a-zA-Z0-9+.-]*:[^<>|\s]+)(?:\|([^<>]*))?>")
_CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
_EMPHASIS = tuple(
    (re.compile(rf"(?<![\w{mark}]){mark}(?=\S)([^\n{mark}]*?\S){mark}(?![\w{mark}])"), markdown)
    for mark, markdown in ((r"\*", r"**\1**"), ("~", r"~~\1~~"))
)
_SALUTATION = re.compile(rf"\A\s*{ME}[\s,:;]*")
_MENTION = re.compile(rf"(?<=\s){ME}[ \t]*|{ME}")
_MARKS = (("strike", "~~"), ("italic", "_"), ("bold", "**"))


@dataclass(frozen=True, slots=True)
class Names:
    """What people and channels are called, by id; ``me`` is our own id."""

    me: str = ""
    users: Mapping[str, str] = field(default_factory=dict)
    chats: Mapping[str, str] = field(default_factory=dict)

    def user(self, user: str, said: str = "") -> str:
        return ME if user == self.me else f"@{self.users.get(user) or said or user}"

    def chat(self, chat: str, said: str = "") -> str:
        return f"#{self.chats.get(chat) or said or chat}"


@dataclass(frozen=True, slots=True)
class Mentioned:
    """The ids in a text."""

    users: frozenset[str] = frozenset()
    chats: frozenset[str] = frozenset()


def without_me(text: str) -> str:
    """``text`` without the mentions of us: with "@bot, " before it, or in its middle, it would read oddly."""
    return _MENTION.sub("", _SALUTATION.sub("", text)).strip()


def named_me(text: str, name: str) -> str:
    """``text`` with our name where we are mentioned: for what others said to each other."""
    return text.replace(ME, f"@{name}")


# Rich text ----------------------------------------------------------------------------------------------------------


def from_rich_text(blocks: Iterable[Mapping[str, Any]], names: Names) -> str:
    """All rich text in ``blocks``; "" where there is none."""
    parts = [_element(element, names) for element in _rich(blocks)]
    return "\n".join(part.removesuffix("\n") for part in parts if part).strip("\n")


def mentioned_in_rich_text(blocks: Iterable[Mapping[str, Any]]) -> Mentioned:
    inline = [one for element in _rich(blocks) for one in _inline(element)]
    return Mentioned(
        frozenset(str(one.get("user_id")) for one in inline if one.get("type") == "user"),
        frozenset(str(one.get("channel_id")) for one in inline if one.get("type") == "channel"),
    )


def _elements(of: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = of.get("elements")
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _rich(blocks: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for block in blocks:
        if block.get("type") == "rich_text":
            yield from _elements(block)


def _inline(element: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for one in _elements(element):
        if one.get("type") == "rich_text_section":
            yield from _inline(one)
        else:
            yield one


def _element(element: Mapping[str, Any], names: Names) -> str:
    text = "".join(_piece(one, names) for one in _inline(element))
    match element.get("type"):
        case "rich_text_list":
            return _list(element, names)
        case "rich_text_quote":
            return "\n".join(f"> {line}".rstrip() for line in text.strip("\n").split("\n"))
        case "rich_text_preformatted":
            return _fenced("".join(str(one.get("text") or one.get("url") or "") for one in _inline(element)))
        case _:
            return text


def _list(element: Mapping[str, Any], names: Names) -> str:
    indent = element.get("indent")
    space = "  " * (indent if isinstance(indent, int) and 0 <= indent < 9 else 0)  # Slack has eight
    offset = element.get("offset")
    first = 1 + (offset if isinstance(offset, int) else 0)
    lines = []
    for number, item in enumerate(_elements(element)):
        bullet = f"{first + number}." if element.get("style") == "ordered" else "-"
        lines.append(f"{space}{bullet} {''.join(_piece(one, names) for one in _inline(item))}")
    return "\n".join(lines)


def _piece(one: Mapping[str, Any], names: Names) -> str:
    style = one.get("style")
    style = style if isinstance(style, Mapping) else {}
    match one.get("type"):
        case "text":
            return _styled(_plain(one.get("text")), style)
        case "link":
            return _styled(_link(str(one.get("url", "")), _plain(one.get("text"))), style)
        case "user":
            return names.user(str(one.get("user_id", "")))
        case "channel":
            return names.chat(str(one.get("channel_id", "")))
        case "usergroup":
            return f"@{one.get('usergroup_id', 'a group')}"
        case "broadcast":
            return f"@{one.get('range', 'everyone')}"
        case "emoji":
            return character_of(str(one.get("name", "")), str(one.get("unicode", "")))
        case "color":
            return str(one.get("value", ""))
        case "date":
            return str(one.get("fallback") or one.get("timestamp", ""))
        case "team":
            return str(one.get("team_id", ""))
    return _plain(one.get("text"))


def _plain(text: object) -> str:
    return text.replace(ME, "") if isinstance(text, str) else ""


def _link(url: str, label: str) -> str:
    return f"[{label}]({url})" if label and label not in (url, url.partition("mailto:")[2]) else label or url


def _styled(text: str, style: Mapping[str, Any]) -> str:
    """Markdown knows no emphasis that begins or ends with white space, or goes over a blank line."""
    inner = text.strip()
    if not inner:
        return text
    lead, tail = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    if style.get("code"):
        return f"{lead}{_coded(inner)}{tail}"
    marks = [mark for name, mark in _MARKS if style.get(name)]
    for mark in marks:
        inner = "\n".join(f"{mark}{line}{mark}" if line.strip() else line for line in inner.split("\n"))
    return f"{lead}{inner}{tail}"


def _coded(code: str) -> str:
    fence = "`" * (_longest_run(code) + 1)
    pad = " " if code.startswith("`") or code.endswith("`") else ""
    return f"{fence}{pad}{code}{pad}{fence}"


def _fenced(code: str) -> str:
    fence = "`" * max(3, _longest_run(code) + 1)
    return f"{fence}\n{code.strip(chr(10))}\n{fence}"


def _longest_run(code: str) -> int:
    return max((len(run) for run in re.findall("`+", code)), default=0)


# mrkdwn -------------------------------------------------------------------------------------------------------------


def from_mrkdwn(text: str, names: Names) -> str:
    """Slack's own markup, in which ``&``, ``<`` and ``>`` are escaped, and everything in ``<>`` means something."""
    pieces = []
    place = 0
    for code in _CODE.finditer(text):
        pieces += [_prose(text[place : code.start()], names), _code(code[0])]
        place = code.end()
    pieces.append(_prose(text[place:], names))
    return "".join(pieces).strip("\n")


def mentioned_in_mrkdwn(text: str) -> Mentioned:
    found = [match.groups() for match in _REFERENCE.finditer(_CODE.sub("", text))]
    return Mentioned(
        frozenset(name for kind, name, _ in found if kind == "@"),
        frozenset(name for kind, name, _ in found if kind == "#"),
    )


def _code(code: str) -> str:
    if code.startswith("```"):
        return _fenced(html.unescape(_LINK.sub(lambda link: link[2] or link[1], code[3:-3])))
    return html.unescape(code)


def _prose(text: str, names: Names) -> str:
    text = text.replace(ME, "")
    for pattern, markdown in _EMPHASIS:
        text = pattern.sub(markdown, text)
    text = _LINK.sub(lambda link: _link(link[1], link[2] or ""), text)
    text = _REFERENCE.sub(lambda found: _reference(found, names), text)
    return html.unescape(text)


def _reference(found: re.Match[str], names: Names) -> str:
    kind, name, said = found[1], found[2], found[3] or ""
    match kind:
        case "@":
            return names.user(name, said)
        case "#":
            return names.chat(name, said)
    if name.startswith("date^"):
        return said
    if name.startswith("subteam^"):
        return f"@{said.removeprefix('@') or name.partition('^')[2]}"
    return f"@{said.removeprefix('@') or name}"
