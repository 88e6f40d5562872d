"""What a person sets for a webhook, and who is at its other end. Opens no connection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr
from yarl import URL

_SHORTEST = 20
"""Characters; no text is cut into smaller pieces."""


def web_address(text: str) -> URL | None:
    """``text`` as the address of something on a web server; None for anything else."""
    try:
        url = URL(text)
        return url if url.scheme in ("http", "https") and url.host and url.port else None
    except ValueError:
        return None


def _whole(text: str) -> str:
    url = web_address(text)
    if url is None or url.user is not None or url.fragment:
        raise ValueError("write a whole address without a name and a password in it: https://example.com/limpet")
    return text


def _none_or_some(limit: int) -> int:
    if 0 < limit < _SHORTEST:
        raise ValueError(f"a text can't be cut into pieces of less than {_SHORTEST} characters; 0 is any length")
    return limit


class WebhookSettings(BaseModel):
    """One program at the other end. The secret and its address are enough."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    secret: SecretStr = Field(
        min_length=16,
        description="What both programs sign with: at least 16 characters that nobody guesses, such as openssl rand "
        "-hex 32 prints. Keep it in the environment.",
    )
    callback_url: Annotated[str, AfterValidator(_whole)] = Field(
        examples=["http://127.0.0.1:8123/limpet"],
        description="Where answers are posted. Files that come with a message are fetched from the same host only.",
    )
    host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Where to listen for messages. Other machines should come through a proxy that speaks HTTPS.",
    )
    port: int = Field(default=8642, ge=1, le=65535, description="The port to listen on; each channel needs its own.")
    text_limit: Annotated[int, AfterValidator(_none_or_some)] = Field(
        default=0,
        ge=0,
        description="The longest text, in characters, that the other program takes in one message. 0: any length.",
    )
    file_limit: int = Field(
        default=0,
        ge=0,
        description="The largest file, in bytes, that the other program takes inside of a message. 0: none.",
    )
    buttons: bool = Field(default=False, description="Whether the other program shows buttons below a message.")
    answer_seconds: float = Field(
        default=20.0,
        gt=0,
        le=300,
        description="How long, in seconds, the other program may take to answer before the same is sent again.",
    )


@dataclass(frozen=True, slots=True)
class WebhookIdentity:
    """The program at ``callback_url``; ``link`` is where it writes to us. It has no user name."""

    id: str
    name: str
    link: str
    username: str = ""
