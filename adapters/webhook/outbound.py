"""What the other program is given: a part as JSON, its text plain and, where there is markup, as HTML. Pure but for the
file it reads. Knows no network.
"""

from __future__ import annotations

import base64
import html
import mimetypes
from pathlib import Path
from typing import Any

from adapters.errors import Rejected
from adapters.message import File, Part
from adapters.text import FormattedText, Span, marked

_TAGS = {
    "heading": "b",
    "bold": "b",
    "italic": "i",
    "underline": "u",
    "strike": "s",
    "spoiler": "details",
    "code": "code",
    "quote": "blockquote",
}


def payload_of(part: Part, key: str, file_limit: int) -> dict[str, Any]:
    """What is posted for ``part``; what it doesn't have is left out. Reads its file, of at most ``file_limit`` bytes.

    Raises Rejected for a file that is gone or larger.
    """
    said = {
        "type": "message",
        "key": key,
        "chat": part.address.chat,
        "kind": part.address.kind,
        "thread": part.address.thread,
        "reply_to": part.reply_to,
        "text": part.text.plain,
        "html": as_html(part.text) if part.text.spans else None,
        "file": _enclosed(part.files[0], file_limit) if part.files else None,
        "buttons": [[{"label": button.label, "data": button.data} for button in row] for row in part.buttons],
    }
    return {name: value for name, value in said.items() if value or name == "text"}


def as_html(text: FormattedText) -> str:
    """``text`` as HTML, its line ends as they are: to be shown with ``white-space: pre-wrap``."""
    return marked(text, _tags, lambda run, _: html.escape(run))


def _tags(span: Span) -> tuple[str, str]:
    match span.kind:
        case "link":
            return f'<a href="{html.escape(span.value)}">', "</a>"
        case "pre":
            language = f' class="language-{html.escape(span.value)}"' if span.value else ""
            return f"<pre><code{language}>", "</code></pre>"
        case kind:
            return f"<{_TAGS[kind]}>", f"</{_TAGS[kind]}>"


def _enclosed(file: File, limit: int) -> dict[str, str]:
    try:
        with Path(file.path).open("rb") as opened:
            data = opened.read(limit + 1)
    except OSError as error:
        raise Rejected(f"the file to send can't be read: {error.strerror}") from None
    if len(data) > limit:
        raise Rejected(f"the file is larger than the {limit:,} bytes of file_limit")
    media_type = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    content = base64.b64encode(data).decode()
    return {"kind": file.kind, "name": file.name, "media_type": media_type, "data": content}
