"""What a person sets for a Slack app, and who its bot turns out to be. Knows nothing of the library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

SCOPES = {
    "app_mentions:read": "hear when it is mentioned",
    "channels:history": "hear what is said in public channels",
    "channels:read": "know public channels and their names",
    "chat:write": "answer",
    "commands": "take its slash command",
    "files:read": "fetch the files that people send",
    "files:write": "send files",
    "groups:history": "hear what is said in private channels",
    "groups:read": "know private channels and their names",
    "im:history": "hear direct messages",
    "im:read": "know direct messages",
    "mpim:history": "hear what is said in group direct messages",
    "mpim:read": "know group direct messages",
    "reactions:read": "see reactions",
    "reactions:write": "react",
    "users:read": "know the names of people",
}
"""The bot's permissions, each with what it can't do without."""


class SlackSettings(BaseModel):
    """One app in one workspace. The bot's token and the app's token are enough."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    token: SecretStr = Field(
        min_length=1,
        description="The bot's token (xoxb-…): of the app's page at api.slack.com/apps, OAuth & Permissions. "
        "Keep it in the environment.",
    )
    app_token: SecretStr | None = Field(
        default=None,
        description="The app's own token (xapp-…), with which it asks for what is said: of Basic Information, "
        "App-Level Tokens, with the scope connections:write. Needed unless ``transport`` is http.",
    )
    transport: Literal["socket", "http"] = Field(
        default="socket",
        description="How what is said comes here: over a connection that is opened from here (Socket Mode), or as "
        "requests that Slack makes to an address of yours.",
    )
    signing_secret: SecretStr | None = Field(
        default=None,
        description="What Slack signs its requests with: of Basic Information, App Credentials. Needed where "
        "``transport`` is http.",
    )
    http_host: str = Field(default="127.0.0.1", description="The address of this machine to listen on for requests.")
    http_port: int = Field(default=3000, ge=1, le=65535, description="The port to listen on for them.")
    reply_in_thread: bool = Field(
        default=True,
        description="Whether a question in a channel is answered in a thread of its own, instead of in the channel.",
    )
    follow_threads: bool = Field(
        default=True,
        description="Whether what is said in a thread that the bot takes part in is said to it, without a mention.",
    )
    context_messages: int = Field(
        default=20,
        ge=0,
        le=100,
        description="How many of the earlier messages of a thread, or of a channel, the bot is shown when it is called "
        "there. 0: none.",
    )
    backfill_hours: float = Field(
        default=24.0,
        ge=0,
        le=168,
        description="How far back, in hours, is looked for what was said while the bot was away. 0: not at all.",
    )
    answer_seconds: float = Field(
        default=20.0,
        gt=0,
        le=300,
        description="How long, in seconds, an answer of Slack may take before it counts as lost.",
    )
    base_url: str = Field(
        default="https://slack.com/api/",
        pattern=r"^https?://[^/]+/",
        description="The root of Slack's Web API. Another one is for tests, or for a proxy.",
    )

    @staticmethod
    def asked(options: Mapping[str, Any]) -> tuple[str, ...]:
        """The secrets without which an account of these ``options`` can't be, in the order to ask for them."""
        return ("token", "signing_secret" if options.get("transport") == "http" else "app_token")


@dataclass(frozen=True, slots=True)
class BotIdentity:
    """The bot that a token belongs to, in the workspace ``team``; ``bot`` is what its messages name as their author.

    ``scopes`` are its permissions, as far as Slack says.
    """

    id: str
    username: str
    team: str
    workspace: str
    bot: str = ""
    url: str = ""
    scopes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.username} in {self.workspace}"

    @property
    def link(self) -> str:
        """Where people write to it."""
        return f"{self.url.rstrip('/')}/app_redirect?team={self.team}&channel={self.id}" if self.url else "Slack"
