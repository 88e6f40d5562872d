"""Events of WhatsApp as the library's protobuf has them, made from their JSON form.

The library's messages have many required fields: what the JSON leaves out gets the value that its Go side would send.
"""

from __future__ import annotations

from typing import Any

from adapters.whatsapp.library import load

BOT = {"phone": "15550000001", "lid": "100000000000001"}
ANN = {"phone": "15550000002", "lid": "100000000000002"}
BOB = {"phone": "15550000003", "lid": "100000000000003"}
GROUP = "120363000000000001@g.us"


def jid(text: str) -> dict[str, Any]:
    """``user:device@server`` as an event holds it."""
    user, _, server = text.partition("@")
    name, _, device = user.partition(":")
    return {"User": name, "Server": server, "Device": int(device or 0), "RawAgent": 0, "Integrator": 0}


def update(
    message: dict[str, Any] | None,
    *,
    id: str = "3A0000000000000001",  # noqa: A002  # WhatsApp's word for it
    chat: str = f"{ANN['lid']}@lid",
    sender: str = f"{ANN['lid']}:3@lid",
    alt: str = f"{ANN['phone']}@s.whatsapp.net",
    recipient_alt: str = "",
    name: str = "Ann",
    from_me: bool = False,
    at: int = 1_796_040_000,
) -> dict[str, Any]:
    """A message event in JSON."""
    source = {
        "Chat": jid(chat),
        "Sender": jid(sender),
        "SenderAlt": jid(alt),
        "RecipientAlt": jid(recipient_alt),
        "IsFromMe": from_me,
        "IsGroup": chat.endswith(("@g.us", "@broadcast")),
    }
    info = {"ID": id, "Timestamp": at, "Pushname": name, "MessageSource": source}
    return {"Info": info, **({} if message is None else {"Message": message})}


def event(given: dict[str, Any], kind: str = "Message") -> Any:
    """The library's event for the JSON one."""
    from google.protobuf import json_format  # type: ignore[import-untyped]  # it has no types

    made = json_format.ParseDict(given, getattr(load().events, kind)())
    return _filled(made)


def _filled(message: Any) -> Any:
    for field in message.DESCRIPTOR.fields:
        if field.is_repeated:
            continue
        if field.message_type:
            if field.is_required:
                getattr(message, field.name).SetInParent()
            if message.HasField(field.name) and field.message_type.file.package == "neonize":
                _filled(getattr(message, field.name))
        elif field.is_required and not message.HasField(field.name):
            setattr(message, field.name, field.default_value)
    return message
