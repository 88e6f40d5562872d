"""What an account's settings at Telegram keep the bot from, and what to do about it."""

from __future__ import annotations

import pytest

from adapters.errors import AuthFailed
from adapters.telegram import BotIdentity
from adapters.telegram.findings import Standing, inspect, of_account, of_group
from tests.adapters.telegram.conftest import settings_for
from tests.fakes.telegram_api import TelegramApi

ME = BotIdentity("1", "limpet_bot", "Limpet", can_join_groups=True, can_read_all_group_messages=True)


@pytest.mark.parametrize(
    ("joins", "reads", "groups", "what", "mends"),
    [
        (True, True, ["-1"], [], []),
        (False, False, [], [], []),
        (True, False, ["-1"], ["privacy mode is on"], ["/setprivacy"]),
        (False, True, ["-1"], ["can't be added to groups"], ["/setjoingroups"]),
        (False, False, ["-1"], ["can't be added", "privacy mode"], ["/setjoingroups", "add it again"]),
    ],
)
def test_an_account(joins: bool, reads: bool, groups: list[str], what: list[str], mends: list[str]) -> None:
    me = BotIdentity("1", "limpet_bot", "Limpet", can_join_groups=joins, can_read_all_group_messages=reads)
    found = of_account(me, groups)
    assert len(found) == len(what)
    for finding, words, mend in zip(found, what, mends, strict=True):
        assert words in finding.what
        assert "@limpet_bot" in finding.what
        assert mend in finding.mend


@pytest.mark.parametrize(
    ("standing", "what"),
    [
        (Standing("-1", is_there=False), ["is not in the group -1"]),
        (Standing("-1", is_there=True, is_admin=True), []),
        (Standing("-1", is_there=True), ["sees no reactions"]),
        (Standing("-1", is_there=True, can_write=False), ["may not write", "sees no reactions"]),
    ],
)
def test_a_group(standing: Standing, what: list[str]) -> None:
    found = of_group(ME, standing)
    assert len(found) == len(what)
    assert all(words in finding.what and finding.mend for finding, words in zip(found, what, strict=True))


RIGHTS = dict.fromkeys(
    [
        *("is_member", "can_send_messages", "can_send_audios", "can_send_documents", "can_send_photos"),
        *("can_send_videos", "can_send_video_notes", "can_send_voice_notes", "can_send_polls", "can_edit_tag"),
        *("can_send_other_messages", "can_add_web_page_previews", "can_change_info", "can_invite_users"),
        *("can_pin_messages", "can_manage_topics", "can_react_to_messages"),
    ],
    False,
)


async def test_telegram_is_asked_for_all_of_it(api: TelegramApi) -> None:
    free, silent, left = api.group(-1001), api.group(-1002), api.group(-1003)
    api.rights[silent.id] = RIGHTS | {"status": "restricted", "is_member": True, "until_date": 0}
    api.rights[left.id] = {"status": "left"}
    found = await inspect(settings_for(api), [str(free.id), str(silent.id), str(left.id), "-4711"])
    assert [finding.what.partition("@limpet_bot ")[2].partition(",")[0] for finding in found] == [
        "sees commands",
        "sees no reactions in the group -1001",
        "may not write in the group -1002",
        "sees no reactions in the group -1002",
        "is not in the group -1003",
        "is not in the group -4711",
    ]
    api.privacy = False
    assert await inspect(settings_for(api), []) == []


async def test_a_wrong_token_is_no_finding(api: TelegramApi) -> None:
    with pytest.raises(AuthFailed):
        await inspect(settings_for(api, "123456789:nothing-of-ours"), [])
