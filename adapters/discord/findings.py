"""What keeps a bot from hearing or answering where it is meant to, and what to do about it.

Most of it is set in Discord's developer portal or on a server, where no error tells of it. Pure but for ``inspect``,
which asks Discord.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adapters.discord.settings import PERMISSIONS, BotIdentity, DiscordSettings
from adapters.errors import Rejected

if TYPE_CHECKING:
    from adapters.discord.client import Client

_ADMINISTRATOR = 1 << 3
_VIEW = PERMISSIONS["View Channels"]
_THREADS = (10, 11, 12)

INTENT = (
    "https://discord.com/developers/applications, the application, Bot, Privileged Gateway Intents: switch on Message "
    "Content Intent, and save"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """``what`` is the case, one sentence; ``mend`` is what to do if that is not wanted."""

    what: str
    mend: str


def of_account(me: BotIdentity, groups: Sequence[str]) -> list[Finding]:
    """For the whole account; ``groups`` are the channels that it is to answer in."""
    found = []
    if not me.reads_messages:
        found.append(
            Finding(f"the Message Content Intent of {me.username} is off, without which it can't start", INTENT)
        )
    if not me.servers and groups:
        found.append(Finding(f"{me.username} is on no server", f"add it to one: {me.link}"))
    return found


def of_channel(me: BotIdentity, channel: str, permissions: int | None, *, in_thread: bool = False) -> list[Finding]:
    """For one channel; ``permissions`` are what the bot may do there, None where it can't even see it."""
    if permissions is None or not permissions & _VIEW:
        return [
            Finding(
                f"{me.username} can't see the channel {channel}",
                "add the bot to that server, and to the channel where it is private; or correct the id (Developer "
                "Mode on, right click on the channel, Copy Channel ID)",
            )
        ]
    spared = "Send Messages" if in_thread else ""
    missing = [name for name, bit in PERMISSIONS.items() if not permissions & bit and name != spared]
    if not missing:
        return []
    names = ", ".join(missing)
    return [
        Finding(
            f"{me.username} lacks in the channel {channel}: {names}", "Edit Channel, Permissions, the bot: allow it"
        )
    ]


def permissions_in(channel: Mapping[str, Any], guild: Mapping[str, Any], member: Mapping[str, Any], me: str) -> int:
    """What a member may do in a channel: the rights of roles, and what the channel takes and gives, in that order."""
    if str(guild.get("owner_id")) == me:
        return sum(PERMISSIONS.values())
    own = {str(role) for role in member.get("roles", ())} | {str(guild["id"])}
    base = 0
    for role in guild.get("roles", ()):
        if str(role["id"]) in own:
            base |= int(role["permissions"])
    if base & _ADMINISTRATOR:
        return base | sum(PERMISSIONS.values())
    overwrites = {str(one["id"]): one for one in channel.get("permission_overwrites", ())}
    everyone = overwrites.pop(str(guild["id"]), {})
    base = base & ~int(everyone.get("deny", 0)) | int(everyone.get("allow", 0))
    of_roles = [one for who, one in overwrites.items() if who in own]
    for one in of_roles:
        base &= ~int(one["deny"])
    for one in of_roles:
        base |= int(one["allow"])
    mine = overwrites.get(me, {})
    return base & ~int(mine.get("deny", 0)) | int(mine.get("allow", 0))


async def inspect(settings: DiscordSettings, groups: Sequence[str]) -> list[Finding]:
    """All that can be found out about an account and the ``groups`` it is to answer in.

    Raises AuthFailed for a wrong token and Unreachable (or Ambiguous) when there was no answer.
    """
    from adapters.discord.adapter import client_of

    client = client_of(settings)
    try:
        me = await client.identity()
        found = of_account(me, groups)
        for channel in groups:
            permissions, in_thread = await _permissions(client, channel, me.id)
            found += of_channel(me, channel, permissions, in_thread=in_thread)
        return found
    finally:
        await client.close()


async def _permissions(client: Client, channel: str, me: str) -> tuple[int | None, bool]:
    """What the bot may do there, None where it can't see it; and whether it is a thread, which has its parent's."""
    try:
        raw = await client.channel(channel)
        in_thread = raw["type"] in _THREADS
        if in_thread:
            raw = await client.channel(str(raw["parent_id"]))
        guild = await client.guild(str(raw["guild_id"]))
        member = await client.member(str(raw["guild_id"]), me)
    except (Rejected, KeyError):
        return None, False
    return permissions_in(raw, guild, member, me), in_thread
