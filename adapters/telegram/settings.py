"""What a person sets for a Telegram bot, and who that bot turns out to be. Knows nothing of the library."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator


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
    webhook_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^/]+/",
        examples=["https://bot.example.org/telegram"],
        description="Where Telegram brings news to, instead of being asked for them: an https address that leads to "
        "``webhook_host`` and ``webhook_port``. None: they are asked for.",
    )
    webhook_host: str = Field(default="127.0.0.1", description="The address of this machine to listen on for them.")
    webhook_port: int = Field(default=8080, ge=1, le=65535, description="The port to listen on for them.")
    webhook_secret: SecretStr | None = Field(
        default=None,
        description="What Telegram shows with each of them as a proof: 1 to 256 of A-Z, a-z, 0-9, _ and -. "
        "None: a new one at each start.",
    )

    @field_validator("webhook_secret")
    @classmethod
    def _takes_no_other_characters(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None and not re.fullmatch(r"[\w-]{1,256}", secret.get_secret_value(), re.ASCII):
            raise ValueError("must be 1 to 256 of A-Z, a-z, 0-9, _ and -: Telegram takes no other characters")
        return secret


@dataclass(frozen=True, slots=True)
class BotIdentity:
    """The bot that a token belongs to; ``username`` is without its @.

    ``can_join_groups`` and ``can_read_all_group_messages`` are what its owner set with @BotFather (/setjoingroups and
    /setprivacy).
    """

    id: str
    username: str
    name: str
    can_join_groups: bool = True
    can_read_all_group_messages: bool = False

    @property
    def link(self) -> str:
        """Where people write to it."""
        return f"https://t.me/{self.username}"
