"""What a person sets for a WhatsApp account, and who it turns out to be. Knows nothing of the library."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field


class WhatsAppSettings(BaseModel):
    """One account. It needs no secret: ``limpet channels login whatsapp`` links it, and the link is kept in a file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    self_chat: bool = Field(
        default=True,
        description="Whether what the account's owner writes in the chat with themselves is said to the bot.",
    )
    read_receipts: bool = Field(
        default=True,
        description="Whether a message is marked as read once the bot answers it. What is not answered stays unread.",
    )
    stream_edits: bool = Field(
        default=False,
        description="Whether an answer is shown while it grows, by edits of its message. Each is one more call to "
        "WhatsApp, and people see that the message was edited.",
    )
    history_hours: float = Field(
        default=24.0,
        ge=0,
        le=720,
        description="How old, in hours, a message may be that came while the bot was away. An older one is not "
        "answered. 0: none is.",
    )
    write_first: bool = Field(
        default=False,
        description="Whether the bot may write to people who never wrote to it. Accounts are banned for that.",
    )
    messages_a_minute: int = Field(
        default=20, ge=1, le=120, description="How many messages are sent in a minute, to all chats together."
    )
    messages_an_hour: int = Field(
        default=300,
        ge=1,
        le=3000,
        description="How many messages are sent in an hour, to all chats together; to one chat half as many.",
    )
    answer_seconds: float = Field(
        default=80.0,
        gt=0,
        le=300,
        description="How long, in seconds, an answer of WhatsApp may take before it counts as lost. The library itself "
        "waits 75.",
    )
    proxy_url: str | None = Field(
        default=None,
        pattern=r"^(https?|socks5)://[^/]+",
        description="A proxy through which WhatsApp is reached, such as socks5://127.0.0.1:1080. It is for networks "
        "that need one, and for tests.",
    )


@dataclass(frozen=True, slots=True)
class BotIdentity:
    """The account that is linked: ``id`` is its phone number, ``lid`` its hidden id, "" where that is not known yet.

    ``device`` is the number that this program has among the devices of the account.
    """

    id: str
    name: str
    lid: str = ""
    device: int = 0

    @property
    def username(self) -> str:
        """People have none in WhatsApp."""
        return ""

    @property
    def link(self) -> str:
        """Where people write to it."""
        return f"https://wa.me/{self.id.removeprefix('+')}"
