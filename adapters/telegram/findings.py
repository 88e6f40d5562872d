"""What keeps a bot from hearing or answering where it is meant to, and what to do about it.

Most of it is set with @BotFather or in a group, where no error tells of it. Pure but for ``inspect``, which asks
Telegram.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapters.errors import Rejected
from adapters.telegram.settings import BotIdentity, TelegramSettings

if TYPE_CHECKING:
    from telegram import ChatMember


@dataclass(frozen=True, slots=True)
class Finding:
    """``what`` is the case, one sentence; ``mend`` is what to do if that is not wanted."""

    what: str
    mend: str


@dataclass(frozen=True, slots=True)
class Standing:
    """What a bot is in a group."""

    chat: str
    is_there: bool
    is_admin: bool = False
    can_write: bool = True


def of_account(me: BotIdentity, groups: Sequence[str]) -> list[Finding]:
    """For the whole account; ``groups`` are those it is to answer in."""
    if not groups:
        return []
    found = []
    if not me.can_join_groups:
        found.append(Finding(f"@{me.username} can't be added to groups", "@BotFather, /setjoingroups: Enable"))
    if not me.can_read_all_group_messages:
        found.append(
            Finding(
                f"privacy mode is on: in a group @{me.username} sees commands, replies to it and messages that name "
                "it, and nothing of what is said between them",
                "to let it follow the talk: @BotFather, /setprivacy, Disable; then take it out of each group and add "
                "it again. An administrator sees everything at once",
            )
        )
    return found


def of_group(me: BotIdentity, standing: Standing) -> list[Finding]:
    """For one group."""
    if not standing.is_there:
        return [
            Finding(
                f"@{me.username} is not in the group {standing.chat}",
                "add it there. If the id is wrong, correct it: that of a supergroup begins with -100",
            )
        ]
    found = []
    if not standing.can_write:
        what = f"@{me.username} may not write in the group {standing.chat}"
        found.append(Finding(what, "allow it in the group's permissions, or make it an administrator"))
    if not standing.is_admin:
        what = f"@{me.username} sees no reactions in the group {standing.chat}"
        found.append(Finding(what, "make it an administrator there (it needs no rights)"))
    return found


async def inspect(settings: TelegramSettings, groups: Sequence[str]) -> list[Finding]:
    """All that can be found out about an account and the ``groups`` it is to answer in.

    Raises AuthFailed for a wrong token and Unreachable (or Ambiguous) when there was no answer.
    """
    from adapters.telegram.client import Client

    client = Client(settings)
    try:
        me = await client.identity()
        found = of_account(me, groups)
        for chat in groups:
            try:
                standing = _standing(chat, await client.member(chat, me.id))
            except Rejected:
                standing = Standing(chat, is_there=False)
            found += of_group(me, standing)
        return found
    finally:
        await client.close()


def _standing(chat: str, member: ChatMember) -> Standing:
    from telegram import (
        ChatMemberAdministrator,
        ChatMemberBanned,
        ChatMemberLeft,
        ChatMemberOwner,
        ChatMemberRestricted,
    )

    match member:
        case ChatMemberLeft() | ChatMemberBanned():
            return Standing(chat, is_there=False)
        case ChatMemberRestricted():
            return Standing(chat, is_there=member.is_member, can_write=member.can_send_messages)
    return Standing(chat, is_there=True, is_admin=isinstance(member, ChatMemberAdministrator | ChatMemberOwner))
