"""What the portal and a server's settings keep a bot from, and what to do about it."""

from __future__ import annotations

import pytest

from adapters.discord import BotIdentity, check_token
from adapters.discord.findings import inspect
from adapters.discord.settings import PERMISSIONS
from adapters.errors import AuthFailed, Unreachable
from tests.adapters.discord.conftest import settings_for
from tests.fakes.discord_api import BOT, Channel, DiscordApi, Fault

ENOUGH = sum(PERMISSIONS.values())


async def found(api: DiscordApi, *channels: Channel | str) -> list[str]:
    ids = [one if isinstance(one, str) else str(one.id) for one in channels]
    findings = await inspect(settings_for(api), ids)
    assert all(finding.mend for finding in findings)
    return [finding.what for finding in findings]


async def test_who_the_bot_is(api: DiscordApi) -> None:
    api.guild()
    me = await check_token(settings_for(api))
    assert me == BotIdentity(str(BOT.id), "limpet", "limpet", str(BOT.id), reads_messages=True, servers=1)
    assert me.link == (
        f"https://discord.com/oauth2/authorize?client_id={BOT.id}&scope=bot+applications.commands&permissions={ENOUGH}"
    )


async def test_all_is_well(api: DiscordApi) -> None:
    guild = api.guild()
    guild.permissions = ENOUGH
    garden = api.channel(guild)
    assert await found(api, garden, api.thread(garden)) == []


async def test_the_intent_is_off(api: DiscordApi) -> None:
    api.application_flags = 0
    (what,) = await found(api)
    assert "Message Content Intent of limpet is off" in what


async def test_it_is_on_no_server(api: DiscordApi) -> None:
    assert await found(api) == []
    what = await found(api, "123")
    assert ["is on no server" in what[0], "can't see the channel 123" in what[1]] == [True, True]


@pytest.mark.parametrize("name", PERMISSIONS)
async def test_a_permission_is_missing(api: DiscordApi, name: str) -> None:
    guild = api.guild()
    guild.permissions = ENOUGH & ~PERMISSIONS[name]
    (what,) = await found(api, api.channel(guild))
    assert ("can't see" if name == "View Channels" else name) in what


@pytest.mark.parametrize(
    ("overwrites", "missing"),
    [
        ([("everyone", "deny", "Attach Files")], "Attach Files"),
        ([("everyone", "deny", "Attach Files"), ("role", "allow", "Attach Files")], ""),
        ([("role", "deny", "Attach Files"), ("me", "allow", "Attach Files")], ""),
        ([("role", "allow", "Attach Files"), ("me", "deny", "Attach Files")], "Attach Files"),
        ([("another", "deny", "Attach Files")], ""),
    ],
)
async def test_a_channel_has_its_own_permissions(
    api: DiscordApi, overwrites: list[tuple[str, str, str]], missing: str
) -> None:
    guild = api.guild()
    guild.permissions = ENOUGH
    guild.members[BOT.id] = [901]
    guild.roles[901] = "helpers"
    garden = api.channel(guild)
    ids = {"everyone": str(guild.id), "role": "901", "me": str(BOT.id), "another": "902"}
    garden.overwrites = [
        {"id": ids[who], "type": 0, "allow": "0", "deny": "0", way: str(PERMISSIONS[name])}
        for who, way, name in overwrites
    ]
    what = await found(api, garden)
    assert (missing in what[0]) if missing else (what == [])


async def test_a_wrong_token_and_no_answer_are_told_apart(api: DiscordApi) -> None:
    with pytest.raises(AuthFailed):
        await inspect(settings_for(api, token="MTEx.Wrong1.WrongWrongWrongWrong"), [])
    api.fail("GET", "/applications/@me", Fault(503))
    with pytest.raises(Unreachable):
        await inspect(settings_for(api), [])
