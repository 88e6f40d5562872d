"""What the other program may say: its JSON, checked, as an event of ``adapters.message``.

Pure: bytes go in, an event or a Refusal comes out. Unknown keys are refused, so that a misspelt one is noticed.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from yarl import URL

from adapters.message import Address, Attachment, Inbound, Kind, Message, Pressed, Sender
from adapters.text import sanitize
from adapters.webhook.refusal import Refusal
from adapters.webhook.settings import web_address

_Id = Annotated[str, Field(min_length=1, max_length=200)]


class _Table(BaseModel):
    """Ids may be numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


class _Sender(_Table):
    id: _Id
    name: str = ""


class _File(_Table):
    url: str
    kind: Literal["image", "audio", "voice", "video", "document"] = "document"
    name: str = ""
    size: Annotated[int, Field(ge=0)] | None = None
    media_type: str | None = None
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None


class _Event(_Table):
    """What every event says. ``id`` is the same when it is sent again; ``chat`` is where the answer belongs."""

    id: _Id
    chat: _Id
    kind: Kind = "direct"
    thread: _Id | None = None
    sender: _Sender
    sent_at: AwareDatetime | None = None


class _Message(_Event):
    type: Literal["message"]
    text: str = ""
    attachments: tuple[_File, ...] = ()
    reply_to: _Id | None = None
    mentions_me: bool = False


class _Pressed(_Event):
    type: Literal["pressed"]
    message_id: _Id
    data: str


_EVENTS: TypeAdapter[_Message | _Pressed] = TypeAdapter(Annotated[_Message | _Pressed, Field(discriminator="type")])


def event_of(body: bytes, account: str, files: URL, now: datetime) -> Inbound:
    """The event in ``body``, which came at ``now``; its files must be at the origin ``files``. Raises Refusal."""
    said = _read(body)
    # The secret vouches for a sender's id, and another account has another secret: the id is only this account's.
    sender = Sender(f"{account}/{said.sender.id}", said.sender.name)
    address = Address("webhook", account, said.chat, said.kind, space=account, thread=said.thread)
    at = said.sent_at or now
    if isinstance(said, _Pressed):
        return Pressed(said.id, address, sender, said.message_id, said.data, at)
    if not said.text.strip() and not said.attachments:
        raise Refusal(400, "the message is empty", "give it a text or an attachment")
    return Message(
        said.id,
        address,
        sender,
        said.text,
        at,
        attachments=tuple(_attachment(file, files) for file in said.attachments),
        reply_to=said.reply_to,
        mentions_me=said.mentions_me,
    )


def is_at(text: str, origin: URL) -> bool:
    """Whether ``text`` is the address of something at ``origin``: no other host is ever asked for a file."""
    url = web_address(text)
    return url is not None and url.origin() == origin


def _read(body: bytes) -> _Message | _Pressed:
    try:
        return _EVENTS.validate_python(_sanitized(json.loads(body)))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"][1:])
        what = f"{place}: {first['msg']}" if place else first["msg"]
        raise Refusal(400, what, "docs/channels/webhook.md shows what an event looks like") from None
    except (ValueError, RecursionError):
        raise Refusal(400, "the body is no JSON", "send one JSON object in UTF-8") from None


def _attachment(file: _File, files: URL) -> Attachment:
    if not is_at(file.url, files):
        raise Refusal(400, "attachments: a url leads elsewhere", f"only what is at {files} is fetched (callback_url)")
    return Attachment(file.kind, file.url, file.name, file.size, file.media_type, file.seconds)


def _sanitized(value: Any) -> Any:
    """Every string of ``value`` without lone surrogates and control characters."""
    match value:
        case str():
            return sanitize(value)
        case list():
            return [_sanitized(item) for item in value]
        case dict():
            return {sanitize(key): _sanitized(item) for key, item in value.items()}
    return value
