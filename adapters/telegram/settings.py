"""What a person sets for a Telegram bot, and who that bot turns out to be. Knows nothing of the library."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, SecretStr


class TelegramSettings(BaseModel):
    """One bot. The token alone is enough."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    token: SecretStr = Field(
        min_length=1,
        description="The token that @BotFather gave to the bot, such as 123456789:AAF… Keep it in the environment.",
    )
    base_url: str | None = Field(
        default=None,
        pattern=r"^https?://",
        description="The root of a Bot API server of your own, such as http://127.0.0.1:8081. None: Telegram's.",
    )
    poll_seconds: int = Field(
        default=30,
        ge=1,
        le=50,
        description="How long, in seconds, a request for news is left open when there is none.",
    )
    answer_seconds: float = Field(
        default=20.0,
        gt=0,
        le=300,
        description="How long, in seconds, an answer may take before it counts as lost.",
    )


@dataclass(frozen=True, slots=True)
class BotIdentity:
    """The bot that a token belongs to; ``username`` is without its @."""

    id: str
    username: str
    name: str
