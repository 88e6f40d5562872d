"""What a Slack message holds: its text, its files, what it shares of others, and in square brackets what is neither.

Nothing that a person sent is passed over in silence. Only what Slack itself says (somebody joined, the topic changed)
says nothing here. Pure: names are given. Knows no sender and no chat.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from adapters.message import Attachment
from adapters.slack import markdown
from adapters.slack.markdown import Mentioned, Names
from adapters.text import sanitize

Said: TypeAlias = Mapping[str, Any]

SAYING = frozenset({"", "file_share", "me_message", "thread_broadcast", "bot_message", "file_comment"})
"""The subtypes of messages that somebody says; all others are Slack's own."""

_ELSEWHERE = {
    "external": "file",
    "post": "post",
    "space": "canvas",
    "canvas": "canvas",
    "quip": "canvas",
    "list": "list",
    "email": "mail",
}
"""By a file's mode, what is kept in a form of Slack's own, or not by Slack."""

_LOST = {"tombstone": "a file that was deleted", "hidden_by_limit": "a file that the workspace's plan hides"}


def mentioned(said: Said) -> Mentioned:
    """The ids of the people and channels in it."""
    blocks = _tables(said.get("blocks"))
    found = [markdown.mentioned_in_rich_text(blocks), markdown.mentioned_in_mrkdwn(_mrkdwn(said))]
    found += (markdown.mentioned_in_mrkdwn(str(one.get("text") or "")) for one in _tables(said.get("attachments")))
    return Mentioned(frozenset().union(*(one.users for one in found)), frozenset().union(*(one.chats for one in found)))


def addressed(said: Said) -> frozenset[str]:
    """The ids of those who are called by name in what the sender wrote themselves."""
    blocks = _tables(said.get("blocks"))
    if any(block.get("type") == "rich_text" for block in blocks):
        return markdown.mentioned_in_rich_text(blocks).users
    return markdown.mentioned_in_mrkdwn(_mrkdwn(said)).users


def text(said: Said, names: Names) -> str:
    """What the sender wrote, as Markdown, with a mark for each mention of us; below it what can't be read."""
    written = markdown.from_rich_text(_tables(said.get("blocks")), names)
    if not written:
        written = markdown.from_mrkdwn(_mrkdwn(said), names)
    return sanitize("\n".join(filter(None, (written, *_notes(said, bool(written))))))


def attachments(said: Said) -> tuple[Attachment, ...]:
    """The files that Slack keeps."""
    return tuple(_attachment(file) for file in _tables(said.get("files")) if _is_kept(file))


def shared(said: Said, names: Names) -> Iterator[tuple[str, str]]:
    """The messages of others that it shares: author and text."""
    for one in _tables(said.get("attachments")):
        if one.get("is_share") or one.get("is_msg_unfurl"):
            words = markdown.from_mrkdwn(str(one.get("text") or one.get("fallback") or ""), names)
            files = " ".join(f"[{_title(file)}]" for file in _tables(one.get("files")))
            if quoted := "\n".join(filter(None, (files, words))):
                yield sanitize(str(one.get("author_name") or "somebody")), sanitize(quoted)


def summary(said: Said, names: Names) -> str:
    """What others are shown of it, on as few lines as it has: its files are named, because a quotation brings none."""
    files = " ".join(f"[{file.kind}{f' {file.name}' if file.name else ''}]" for file in attachments(said))
    return "\n".join(filter(None, (files, text(said, names))))


# Files --------------------------------------------------------------------------------------------------------------


def _is_kept(file: Said) -> bool:
    return bool(file.get("id")) and file.get("mode") not in _LOST and file.get("mode") not in _ELSEWHERE


def _attachment(file: Said) -> Attachment:
    media_type = str(file.get("mimetype") or "")
    family = media_type.partition("/")[0]
    kind: Any = family if family in ("image", "audio", "video") else "document"
    if file.get("subtype") == "slack_audio":
        kind = "voice"
    size, lasts = file.get("size"), file.get("duration_ms")
    return Attachment(
        kind,
        str(file["id"]),
        sanitize(str(file.get("name") or file.get("title") or "")),
        size if isinstance(size, int) else None,
        sanitize(media_type) or None,
        lasts / 1000 if isinstance(lasts, int | float) else None,
    )


def _title(file: Said) -> str:
    return sanitize(str(file.get("title") or file.get("name") or "a file"))


# Notes --------------------------------------------------------------------------------------------------------------


def _notes(said: Said, has_text: bool) -> Iterator[str]:
    """In brackets and on one line each."""
    for file in _tables(said.get("files")):
        mode = str(file.get("mode"))
        if mode in _LOST:
            yield f"[{_LOST[mode]}]"
        elif mode in _ELSEWHERE:
            where = file.get("external_url") or file.get("url_private") or file.get("permalink") or ""
            yield _note(f"{_ELSEWHERE[mode]}: {_title(file)} {where}")
    for one in _tables(said.get("attachments")):
        if not (one.get("is_share") or one.get("is_msg_unfurl") or one.get("is_app_unfurl") or one.get("from_url")):
            words = one.get("fallback") or one.get("title") or one.get("text") or ""
            if words and not (has_text and one.get("service_name")):
                yield _note(f"attached: {words}")
    if not has_text:
        yield from _unreadable(said)


def _unreadable(said: Said) -> Iterator[str]:
    """For blocks of kinds that this program knows no words for."""
    if said.get("files") or said.get("attachments"):
        return
    kinds = {str(block.get("type")) for block in _tables(said.get("blocks"))} - {"rich_text", "divider"}
    if kinds:
        yield _note(f"something this program can't read: {', '.join(sorted(kinds))}")


def _note(words: str) -> str:
    return f"[{' '.join(words.split())}]"


def _mrkdwn(said: Said) -> str:
    """The text beside the blocks, or what blocks of other kinds show."""
    if words := said.get("text"):
        return str(words)
    return "\n".join(words for block in _tables(said.get("blocks")) for words in _block_text(block))


def _block_text(block: Said) -> Iterator[str]:
    for holder in (block.get("text"), *(block.get("fields") or ()), *(block.get("elements") or ())):
        if isinstance(holder, Mapping) and isinstance(holder.get("text"), str):
            yield holder["text"]


def _tables(found: object) -> list[Said]:
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
