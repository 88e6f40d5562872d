"""What keeps an app from hearing or answering where it is meant to, and what to do about it.

Most of it is set at api.slack.com or in a channel, where no error tells of it. Pure but for ``inspect``, which asks
Slack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapters.errors import Rejected
from adapters.slack.settings import SCOPES, BotIdentity, SlackSettings


@dataclass(frozen=True, slots=True)
class Finding:
    """``what`` is the case, one sentence; ``mend`` is what to do if that is not wanted."""

    what: str
    mend: str


def of_account(me: BotIdentity) -> list[Finding]:
    """For the whole account."""
    if not me.scopes:
        return []  # Slack doesn't say
    lacking = [scope for scope in SCOPES if scope not in me.scopes]
    return [
        Finding(
            f"@{me.username} lacks the scope {scope}, so it can't {SCOPES[scope]}",
            "add it: api.slack.com/apps, the app, OAuth & Permissions, Scopes; then install the app again",
        )
        for scope in lacking
    ]


def of_group(me: BotIdentity, chat: str, known: Mapping[str, Any] | None) -> list[Finding]:
    """For one channel; ``known`` is what Slack says of it, None where it knows none of that id."""
    if known is None:
        return [
            Finding(
                f"there is no channel {chat}, or it is private and @{me.username} is not in it",
                f"invite it there: /invite @{me.username}. If the id is wrong, correct it: it stands at the end of the "
                "channel's details, and begins with C or G",
            )
        ]
    name = f"#{known.get('name') or chat}"
    if known.get("is_archived"):
        return [Finding(f"{name} ({chat}) is archived", "take it out of groups, or bring it back in Slack")]
    if known.get("is_member") is False and not known.get("is_mpim"):
        return [Finding(f"@{me.username} is not in {name} ({chat})", f"invite it there: /invite @{me.username}")]
    return []


async def inspect(settings: SlackSettings, groups: Sequence[str]) -> list[Finding]:
    """All that can be found out about an account and the ``groups`` it is to answer in.

    Raises AuthFailed for a wrong token and Unreachable (or Ambiguous) when there was no answer.
    """
    from adapters.slack.client import Client

    client = Client(settings)
    try:
        me = await client.identity()
        if settings.transport == "socket":
            await client.link()
        found = of_account(me)
        for chat in groups:
            try:
                known: Mapping[str, Any] | None = await client.conversation(chat)
            except Rejected:
                known = None
            found += of_group(me, chat, known)
        return found
    finally:
        await client.close()
