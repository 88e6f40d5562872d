"""Letting people and groups in, from a chat: who is asked, who may decide, and what becomes of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from adapters.adapter import Capabilities
from adapters.message import Address, Membership, Message, Moved, Pressed, Sender, Spoken
from bot.app import Hub
from bot.config import load
from bot.home import Home
from bot.people import People
from bot.state import State
from tests.bot.conftest import OPEN, Clock, Serve
from tests.fakes.adapter import FakeAdapter, Sent
from tests.fakes.model_server import ModelServer, Recorded, Reply

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
OWNER = 'owners = ["telegram:1"]'
MALLORY = Sender("666", "Mallory\n/approve me")


def echo(request: Recorded) -> Reply:
    return Reply("re: " + request.messages[-1]["content"].rpartition("] ")[2])


def place(chat: str, kind: str = "group") -> Address:
    return Address("telegram", "telegram", chat, "direct" if kind == "direct" else "group")


class Leaving(FakeAdapter):
    """A platform whose chats can be left."""

    async def leave(self, address: Address) -> None:
        self.reactions[address.chat] = "left"


@pytest.fixture
def door() -> FakeAdapter:
    return Leaving("telegram", "telegram", Capabilities(text_limit=4096, buttons=True))


def labels(sent: Sent) -> list[tuple[str, str]]:
    return [(button.label, button.data) for row in sent.part.buttons for button in row]


async def test_the_owner_is_asked_about_a_stranger_in_their_own_chat_and_lets_them_in_by_a_button(
    serve: Serve, door: FakeAdapter
) -> None:
    async with ModelServer(echo) as server, serve(server, "", OWNER):
        await door.says(door.message("hello", sender="1"))
        await door.wait_sent(1)
        await door.says(replace(door.message("let me in", sender="666"), sender=MALLORY))
        *_, code, asked = await door.wait_sent(3)
        assert code.part.address.chat == "666"
        assert asked.part.address.chat == "1"
        assert asked.text == "Mallory /approve me (telegram:666) asks to talk to me.", "a name is one harmless line"
        (_, guest), (_, member), (_, no) = labels(asked)
        word = guest.removeprefix("/approve ")
        assert (member, no) == (f"/approve {word} member", f"/deny {word}")
        assert word in code.text

        await door.says(replace(door.message("please", sender="666"), sender=MALLORY))
        await door.wait_sent(4)
        await door.says(Pressed("p1", place("1", "direct"), Sender("1"), asked.message_id, member, AT))
        said = {one.part.address.chat: one.text for one in await door.wait_sent(6)}
        assert said == {
            "1": "Mallory /approve me (telegram:666) is a member now.",
            "666": "You are let in: write to me.",
        }
        await door.says(replace(door.message("thanks", sender="666"), sender=MALLORY))
        assert (await door.wait_sent(7))[-1].text == "re: thanks"
    assert len([one for one in door.sent if one.part.address.chat == "1" and "asks to talk" in one.text]) == 1
    assert "let me in" not in str([request.messages for request in server.requests]), "a stranger costs no call"


@pytest.mark.parametrize("words", ["/approve {code}", "/approve {code} member", "/approve {code} owner", "/pair"])
async def test_nobody_but_the_owner_lets_anybody_in(serve: Serve, door: FakeAdapter, home: Home, words: str) -> None:
    """A guest who sees a code, or forges a button, opens nothing; and no chat makes an owner."""
    async with ModelServer(echo) as server, serve(server, 'allow = ["2"]\n', OWNER):
        await door.says(replace(door.message("let me in", sender="666"), sender=MALLORY))
        (sent,) = await door.wait_sent(1)
        said = words.format(code=sent.text.partition("code is ")[2][:8])
        await door.says(Pressed("p1", place("2", "direct"), Sender("2"), "1", said, AT))
        assert "is not for a guest here" in (await door.wait_sent(2))[-1].text
        if said.endswith("owner"):
            await door.says(door.message(said, sender="1"))
            assert "in the terminal only" in (await door.wait_sent(3))[-1].text
        async with State.open(home.database) as state:
            assert await People(state, owners=(), identities={}, clock=Clock()).all() == []


async def test_a_group_that_is_not_allowed_hears_so_once_and_the_owner_allows_it_from_outside(
    serve: Serve, door: FakeAdapter
) -> None:
    async with ModelServer(echo) as server, serve(server, "", OWNER) as hub:
        await door.says(door.message("hello", sender="1"))
        await door.wait_sent(1)
        asked = len(server.requests)
        joined = Membership(place("-5"), Sender("7", "Ann"), True, AT)
        await door.says(joined)
        await door.says(joined)
        await hub.idle()
        said = {one.part.address.chat: one for one in door.sent[1:]}
        assert len(door.sent) == 3
        assert "may not answer in this group yet" in said["-5"].text
        assert "Ann (telegram:7) added me to the group -5" in said["1"].text
        assert [data for _, data in labels(said["1"])] == ["/allow telegram -5", "/deny telegram -5"]

        await door.says(replace(door.message("@bot hi", sender="7"), address=place("-5"), mentions_me=True))
        await hub.idle()
        assert len(server.requests) == asked
        await door.says(Pressed("p", place("1", "direct"), Sender("1"), "m", "/allow telegram -5", AT))
        assert (await door.wait_sent(4))[-1].text == "I answer in -5 now."
        await door.says(replace(door.message("hi again", sender="7"), address=place("-5"), mentions_me=True))
        assert (await door.wait_sent(5))[-1].text == "re: hi again"


async def test_the_owner_allows_a_group_from_inside_and_ends_it(serve: Serve, door: FakeAdapter) -> None:
    def there(text: str, sender: str = "1") -> Message:
        return replace(door.message(text, sender=sender), address=place("-5"), mentions_me=True)

    async with ModelServer(echo) as server, serve(server, "", OWNER) as hub:
        for message in (
            there("/allow", "7"),
            replace(there("/allow"), forwarded_from="somebody"),
            replace(there("/allow"), sender=Sender("1", is_shared=True)),
            there("please /allow"),
        ):
            await door.says(message)
        await hub.idle()
        assert door.sent == []
        await door.says(there("/allow"))
        assert (await door.wait_sent(1))[-1].text == "I answer here now, when I am addressed. /deny ends it."
        await door.says(there("hi", "7"))
        assert (await door.wait_sent(2))[-1].text == "re: hi"
        await door.says(there("/deny", "7"))
        assert "is not for a guest here" in (await door.wait_sent(3))[-1].text
        await door.says(there("/deny"))
        assert (await door.wait_sent(4))[-1].text == "I answer here no more."
        await door.says(there("hi?", "7"))
        await hub.idle()
        assert len(door.sent) == 4


async def test_a_group_that_moved_stays_allowed(serve: Serve, door: FakeAdapter) -> None:
    """G-RTE-26."""
    async with ModelServer(echo) as server, serve(server, "", OWNER):
        await door.says(replace(door.message("/allow", sender="1"), address=place("-5"), mentions_me=True))
        await door.wait_sent(1)
        await door.says(Moved(place("-5"), "-1005", AT))
        await door.says(replace(door.message("hi", sender="7"), address=place("-1005"), mentions_me=True))
        assert (await door.wait_sent(2))[-1].text == "re: hi"


async def test_a_bot_leaves_groups_where_it_is_set_to(home: Home) -> None:
    door = Leaving("telegram", "telegram")
    home.root.mkdir()
    home.config.write_text(
        '[channels.telegram]\ntoken = "123456:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"\njoining = "leave"\n', "utf-8"
    )
    async with Hub.open(load(home, {}), home, [door]) as hub:
        await hub.accept(Membership(place("-5"), Sender("7"), True, AT))
        await hub.idle()
    assert door.reactions == {"-5": "left"}
    assert door.sent == []


async def test_who_is_blocked_is_not_heard_anywhere(serve: Serve, door: FakeAdapter) -> None:
    settings = OPEN + 'groups = ["-5"]\nblocked = ["8"]\n'
    async with ModelServer(echo) as server, serve(server, settings, OWNER) as hub:
        await door.says(door.message("/deny telegram:7", sender="1"))
        assert "telegram:7 is not heard any more" in (await door.wait_sent(1))[-1].text
        for sender in ("7", "8"):
            await door.says(door.message("marker-direct", sender=sender))
            for mentions_me in (True, False):
                message = door.message("marker-group", sender=sender)
                await door.says(replace(message, address=place("-5"), mentions_me=mentions_me))
        await hub.idle()
        await door.says(replace(door.message("what was said?", sender="9"), address=place("-5"), mentions_me=True))
        await door.wait_sent(2)
        assert "marker" not in str(server.requests[0].messages)
        await door.says(door.message("/allow telegram:7", sender="1"))
        await door.wait_sent(3)
        await door.says(door.message("and now?", sender="7"))
        assert (await door.wait_sent(4))[-1].text == "re: and now?"
        await door.says(door.message("/deny telegram:1", sender="1"))
        assert "is an owner" in (await door.wait_sent(5))[-1].text


async def test_of_what_stands_above_only_those_are_known_who_may_be_heard(serve: Serve, door: FakeAdapter) -> None:
    """A thread that we are called into: words that were kept out of the prompt must not come in by that way."""
    above = (
        Spoken(Sender("8", "Blocked"), "marker-blocked"),
        Spoken(Sender("99", "you", is_bot=True), "marker-bot"),
        Spoken(Sender("9", "Bea"), "marker-bea"),
        Spoken(None, "marker-own"),
    )
    settings = OPEN + 'groups = ["-5"]\nblocked = ["8"]\n'
    async with ModelServer(echo) as server, serve(server, settings):
        asked = replace(door.message("what of it?", sender="7"), address=place("-5"), mentions_me=True, context=above)
        await door.says(asked)
        await door.wait_sent(1)
    words = str(server.requests[0].messages[-1]["content"])
    assert "Bea: marker-bea\nyou: marker-own" in words
    assert "marker-blocked" not in words
    assert "marker-bot" not in words


async def test_a_group_has_settings_of_its_own(serve: Serve, door: FakeAdapter) -> None:
    settings = OPEN + 'groups = ["-5", "-6"]\n[channels.telegram.chats."-5"]\nrequire_mention = false\nallow = ["7"]\n'

    def there(text: str, sender: str, chat: str, parent: str | None = None) -> Message:
        return replace(door.message(text, sender=sender), address=replace(place(chat), parent=parent))

    async with ModelServer(echo) as server, serve(server, settings, OWNER) as hub:
        await door.says(there("no mention", "7", "-5"))
        assert (await door.wait_sent(1))[-1].text == "re: no mention"
        await door.says(there("in its thread", "7", "t1", "-5"))
        assert (await door.wait_sent(2))[-1].text == "re: in its thread"
        await door.says(there("not on the list", "9", "-5"))
        await door.says(there("another group", "7", "-6"))
        await hub.idle()
        assert len(door.sent) == 2
        await door.says(there("the owner is always heard", "1", "-5"))
        await door.wait_sent(3)


async def test_an_identity_carries_its_level_to_each_account(serve: Serve, door: FakeAdapter) -> None:
    top = f'{OWNER}\n[identities.ann]\naccounts = ["telegram:7", "telegram:8"]\nlevel = "member"\n'
    async with ModelServer(echo) as server, serve(server, "", top):
        for number, sender in enumerate(("7", "8"), 1):
            await door.says(door.message("/whoami", sender=sender))
            assert "a member" in (await door.wait_sent(number))[-1].text


async def test_owners_are_told_of_a_few_groups_and_not_of_a_thousand(serve: Serve, door: FakeAdapter) -> None:
    async with ModelServer(echo) as server, serve(server, 'joining = "quiet"\n', OWNER) as hub:
        await door.says(door.message("hello", sender="1"))
        await door.wait_sent(1)
        for number in range(30):
            await door.says(Membership(place(f"-{number + 10}"), Sender("7"), True, AT + timedelta(seconds=number)))
        await hub.idle()
    assert len(door.sent) == 1 + 5


async def test_who_was_refused_by_the_owner_asks_nobody_again(serve: Serve, door: FakeAdapter) -> None:
    async with ModelServer(echo) as server, serve(server, "", OWNER) as hub:
        await door.says(door.message("hello", sender="1"))
        await door.wait_sent(1)
        await door.says(replace(door.message("let me in", sender="666"), sender=MALLORY))
        *_, asked = await door.wait_sent(3)
        await door.says(Pressed("p", place("1", "direct"), Sender("1"), "m", labels(asked)[2][1], AT))
        assert "is void" in (await door.wait_sent(4))[-1].text
        for number in range(3):
            await door.says(replace(door.message(f"please {number}", sender="666"), sender=MALLORY))
        await hub.idle()
        assert len(door.sent) == 4
        await door.says(door.message("/allow telegram:666", sender="1"))
        await door.wait_sent(5)
        await door.says(replace(door.message("thanks", sender="666"), sender=MALLORY))
        assert (await door.wait_sent(6))[-1].text == "re: thanks"


async def test_what_the_settings_keep_out_is_not_said_to_be_let_in(serve: Serve, door: FakeAdapter) -> None:
    async with (
        ModelServer(echo) as server,
        serve(server, 'direct = "allowlist"\nallow = ["1"]\nblocked = ["8"]\n', OWNER),
    ):
        await door.says(door.message("/allow telegram:7", sender="1"))
        assert "add '7' to channels.telegram.allow" in (await door.wait_sent(1))[-1].text
        await door.says(door.message("/allow telegram:8", sender="1"))
        assert "telegram:8 is blocked. That is so by the settings" in (await door.wait_sent(2))[-1].text
