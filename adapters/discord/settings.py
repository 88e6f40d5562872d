"""What a person sets for a Discord bot, and who that bot turns out to be. Knows nothing of the library."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from pydantic import BaseModel, ConfigDict, Field, SecretStr

PERMISSIONS = {
    "View Channels": 1 << 10,
    "Send Messages": 1 << 11,
    "Send Messages in Threads": 1 << 38,
    "Create Public Threads": 1 << 35,
    "Attach Files": 1 << 15,
    "Read Message History": 1 << 16,
    "Add Reactions": 1 << 6,
}
"""What the bot needs on a server, by the names in Discord's settings."""


class DiscordSettings(BaseModel):
    """One bot. The token alone is enough."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    token: SecretStr = Field(
        min_length=1,
        description="The bot's token: discord.com/developers/applications, the application, Bot, Reset Token. Keep it "
        "in the environment.",
    )
    base_url: str | None = Field(
        default=None,
        pattern=r"^https?://",
        examples=["http://127.0.0.1:8081/api/v10"],
        description="The root of another server that speaks Discord's API. None: Discord's.",
    )
    answer_seconds: float = Field(
        default=20.0,
        gt=0,
        le=300,
        description="How long, in seconds, an answer may take before it counts as lost.",
    )
    follow_threads: bool = Field(
        default=False,
        description="Whether everything said in a thread that the bot takes part in is said to it, without a mention.",
    )
    auto_thread: bool = Field(
        default=False,
        description="Whether a message that addresses the bot in a channel is answered in a new thread below it.",
    )
    backfill_messages: int = Field(
        default=50,
        ge=0,
        le=100,
        description="How many of the newest messages of a chat are looked through, after a time away, for those that "
        "were missed. 0: none.",
    )
    backfill_hours: float = Field(
        default=24.0, gt=0, le=720, description="What is older than this many hours is not read up after a time away."
    )

    @property
    def backfill_age(self) -> timedelta:
        return timedelta(hours=self.backfill_hours)


@dataclass(frozen=True, slots=True)
class BotIdentity:
    """The bot that a token belongs to. ``application`` is the id that invites and commands are made with.

    ``reads_messages``: the Message Content Intent is switched on. ``servers`` is about how many it is on.
    """

    id: str
    username: str
    name: str
    application: str
    reads_messages: bool = True
    servers: int = 0

    @property
    def link(self) -> str:
        """Where somebody adds it to a server, which is where people can write to it."""
        scopes = "bot+applications.commands"
        permissions = sum(PERMISSIONS.values())
        return (
            f"https://discord.com/oauth2/authorize?client_id={self.application}&scope={scopes}"
            f"&permissions={permissions}"
        )
