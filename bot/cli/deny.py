"""``limpet deny``: hear an account or a group no more. A running hub notices at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from bot.cli import output
from bot.cli.admitting import GroupOption, WhoArgument, account_of, group_of, groups, people
from bot.cli.options import JsonOption
from bot.errors import UsageError

if TYPE_CHECKING:
    from bot.home import Home


def command(ctx: typer.Context, who: WhoArgument = None, group: GroupOption = None, json: JsonOption = False) -> None:
    """Block an account wherever it speaks, or answer in a group no more. limpet allow ends it."""
    from bot.config import load

    home: Home = ctx.obj
    settings = load(home)
    if (who is None) == (group is None):
        raise UsageError("say who is kept out", "an account: limpet deny telegram:123456789, or --group ACCOUNT:CHAT")
    if group is not None:
        channel, account, chat = group_of(group, home)
        was = groups(home, lambda table: table.forget(channel, account, chat))
        listed = {chat, "*"} & set(settings.channels[account].groups) if account in settings.channels else set()
        if listed:
            output.fail(f"{min(listed)!r} is among channels.{account}.groups", f"take it out there: {home.config}")
        data = {"channel": channel, "account": account, "chat": chat, "was_allowed": was}
        output.result(f"{chat} is not answered on channels.{account}.", data, as_json=json)
        return
    assert who is not None
    channel, sender = account_of(who)
    who = f"{channel}:{sender}"
    if who in settings.owners:
        output.fail(f"{who} is an owner by the settings", f"take it out of owners first: {home.config}")
    people(home, lambda table: table.block(channel, sender, ""))
    text = f"{who} is not heard any more. What was noted with them stays where it is."
    output.result(text, {"channel": channel, "sender": sender, "level": "blocked"}, as_json=json)
