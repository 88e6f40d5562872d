"""``limpet allow``: let an account or a group in without a code. A running hub notices at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli import output
from bot.cli.admitting import GroupOption, WhoArgument, account_of, group_of, groups, people
from bot.cli.options import JsonOption
from bot.errors import UsageError

if TYPE_CHECKING:
    from bot.home import Home


def command(
    ctx: typer.Context,
    who: WhoArgument = None,
    group: GroupOption = None,
    member: Annotated[bool, typer.Option("--member", help="Someone you trust more than a guest.")] = False,
    owner: Annotated[bool, typer.Option("--owner", help="It is you: every right, and the home memory.")] = False,
    json: JsonOption = False,
) -> None:
    """Let an account write directly, as a guest unless an option says more; or have a group answered.

    What was blocked is heard again.
    """
    from bot.access import closed_to
    from bot.config import load
    from workspaces.scope import Level

    home: Home = ctx.obj
    if (who is None) == (group is None):
        raise UsageError("say who is let in", "an account: limpet allow telegram:123456789, or --group ACCOUNT:CHAT")
    if group is not None:
        if member or owner:
            raise UsageError("a group has no level: whoever speaks there has their own", "leave the option out")
        channel, account, chat = group_of(group, home)
        is_new = groups(home, lambda table: table.allow(channel, account, chat))
        text = f"{chat} is answered on channels.{account} {'now' if is_new else 'already'}."
        output.result(text, {"channel": channel, "account": account, "chat": chat, "new": is_new}, as_json=json)
        return
    assert who is not None
    if member and owner:
        raise UsageError("--member and --owner exclude each other", "say one of them")
    channel, sender = account_of(who)
    who = f"{channel}:{sender}"
    policies = {name: its.policy for name, its in load(home).channels.items() if its.kind == channel}
    if closed := closed_to(channel, sender, policies):
        what, _, mend = closed.partition(": ")
        output.fail(what, mend)
    level = Level.OWNER if owner else Level.MEMBER if member else Level.GUEST
    people(home, lambda table: table.give(channel, sender, level, ""))
    called = {"OWNER": "an owner", "MEMBER": "a member", "GUEST": "a guest"}[level.name]
    data = {"channel": channel, "sender": sender, "level": level.name.lower()}
    output.result(f"{who} is {called} now.", data, as_json=json)
