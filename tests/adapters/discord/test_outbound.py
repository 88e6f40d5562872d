"""What is sent: nobody is notified, nothing is shown twice, and each answer of Discord's is its error."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.adapter import Eraser, Leaver, Reactor, Settler
from adapters.discord import DiscordAdapter
from adapters.errors import AdapterError, Ambiguous, AuthFailed, RateLimited, Rejected, Unreachable
from adapters.markdown import parse
from adapters.message import Address, Button, File, Part
from adapters.text import FormattedText
from tests.adapters.discord.conftest import adapter_for, at, connected, direct, part
from tests.adapters.work import Naps, running
from tests.fakes.discord_api import DiscordApi, Fault

LOUD = "hello @everyone @here <@&123> <@700000000000000007>"


def bodies(api: DiscordApi) -> list[dict[str, Any]]:
    return [call.body for call in api.calls if isinstance(call.body, dict) and "content" in call.body]


async def test_nothing_that_is_sent_notifies_anybody(api: DiscordApi, adapter: DiscordAdapter, tmp_path: Any) -> None:
    """G-FMT-13: not a message, not an edit, not the second part, not a caption, not a reply."""
    file = tmp_path / "a.txt"
    file.write_text("x")
    here = direct(api)
    asked = api.message(LOUD)
    for number, sent in enumerate(
        (
            part(here, LOUD),
            Part(here, parse(f"**{LOUD}**")),
            part(here, LOUD, reply_to=asked["id"]),
            part(here, LOUD, files=(File("document", str(file), "a.txt"),)),
            part(here, LOUD, buttons=((Button("Yes", "yes"),),)),
        )
    ):
        receipt = await adapter.send(sent, f"turn/{number}")
        assert receipt.message_id
        await adapter.edit(sent, receipt.message_id)
    assert len(bodies(api)) == 10
    for body in bodies(api):
        assert body["allowed_mentions"] == {"parse": [], "replied_user": False}
        assert body["flags"] == 4, "no previews of links"
    assert not any(sent.pings for sent in api.sent)


async def test_a_part_that_is_sent_again_is_one_message(api: DiscordApi, adapter: DiscordAdapter) -> None:
    """G-DLV-11: the answer was lost, so it is sent again under the same key, which Discord knows."""
    api.fail("POST", "/messages", Fault(drop=True, after=True), Fault(504, after=True))
    for _ in range(2):
        with pytest.raises(Unreachable):
            await adapter.send(part(direct(api)), "turn-1/0")
    receipt = await adapter.send(part(direct(api)), "turn-1/0")
    (sent,) = api.sent
    assert receipt.message_id == str(sent.id)
    assert len({body["nonce"] for body in bodies(api)}) == 1
    assert all(len(body["nonce"]) <= 25 and body["enforce_nonce"] for body in bodies(api))


async def test_an_answer_takes_the_place_of_its_beginning(api: DiscordApi, adapter: DiscordAdapter) -> None:
    """The beginning was shown under the same key, and nobody heard that it was: Discord would keep showing that."""
    api.fail("POST", "/messages", Fault(drop=True, after=True))
    with pytest.raises(Unreachable):
        await adapter.send(part(direct(api), "The ro"), "turn-1/0")
    receipt = await adapter.send(part(direct(api), "The roses."), "turn-1/0")
    (sent,) = api.sent
    assert (sent.text, receipt.message_id) == ("The roses.", str(sent.id))


async def doubting(api: DiscordApi, naps: Naps) -> DiscordAdapter:
    """One whose first part may have arrived, as turn-1/0, longer ago than Discord knows a key."""
    now = datetime.now(UTC)
    adapter = DiscordAdapter("main", adapter_for(api, naps)._settings, sleep=naps, now=lambda: now)
    api.fail("POST", "/messages", Fault(drop=True, after=True))
    with pytest.raises(Unreachable):
        await adapter.send(part(direct(api)), "turn-1/0")
    api.nonce_seconds = 0
    now += timedelta(minutes=10)
    return adapter


async def test_after_the_minutes_that_discord_knows_a_key_history_is_asked(api: DiscordApi, naps: Naps) -> None:
    adapter = await doubting(api, naps)
    receipt = await adapter.send(part(direct(api)), "turn-1/0")
    (sent,) = api.sent
    assert receipt.message_id == str(sent.id)
    await adapter.close()


@pytest.mark.parametrize("tells_nonce", [False, True])
async def test_what_a_killed_process_was_sending_is_found(
    api: DiscordApi, adapter: DiscordAdapter, tells_nonce: bool
) -> None:
    assert isinstance(adapter, Settler)
    api.tells_nonce = tells_nonce
    began = datetime.now(UTC)
    here, marked = direct(api), Part(direct(api), parse("**It** has_marks"))
    receipt = await adapter.send(marked, "turn-1/0")
    assert await adapter.settle(marked, "turn-1/0", began) == receipt
    assert await adapter.settle(part(here, "other words"), "turn-2/0", began) is None
    assert await adapter.settle(marked, "turn-1/0", began + timedelta(minutes=5)) is None, "it is older than that"
    if tells_nonce:
        assert await adapter.settle(marked, "turn-2/0", began) is None
    api.says("It has\\_marks")
    assert await adapter.settle(part(here, "It has_marks"), "turn-3/0", began) is None, "another's words"


async def test_what_can_t_be_asked_is_not_taken_for_unsent(api: DiscordApi, adapter: DiscordAdapter) -> None:
    api.fail("GET", "/messages", Fault(503), Fault(403, "Missing Access", code=50001))
    for error in (Unreachable, Rejected):
        with pytest.raises(error):
            await adapter.settle(part(direct(api)), "turn-1/0", datetime.now(UTC))


async def test_a_part_is_found_below_all_that_was_said_since(api: DiscordApi, adapter: DiscordAdapter) -> None:
    began = datetime.now(UTC)
    receipt = await adapter.send(part(direct(api)), "turn-1/0")
    for number in range(250):
        api.message(f"{number}")
    assert await adapter.settle(part(direct(api)), "turn-1/0", began) == receipt
    assert len(api.called("GET", "/messages")) == 1, "it is looked for from then on, not from now back"
    assert await adapter.settle(part(direct(api), "never sent"), "turn-2/0", began) is None
    assert len(api.called("GET", "/messages")) == 4


async def test_where_too_much_was_said_nobody_can_tell(api: DiscordApi, adapter: DiscordAdapter) -> None:
    began = datetime.now(UTC)
    for number in range(2000):
        api.message(f"{number}")
    with pytest.raises(Rejected, match="too much was said"):
        await adapter.settle(part(direct(api)), "turn-1/0", began)


async def test_where_history_may_not_be_read_it_may_have_arrived(api: DiscordApi, naps: Naps) -> None:
    """After the minutes that Discord knows the key: it is not sent again before whoever waits was told."""
    adapter = await doubting(api, naps)
    api.fail("GET", "/messages", Fault(403, "Missing Access", code=50001))
    with pytest.raises(Ambiguous, match="may have arrived"):
        await adapter.send(part(direct(api)), "turn-1/0")
    assert len(api.sent) == 1
    await adapter.send(part(direct(api)), "turn-1/0")
    assert len(api.sent) == 2, "sent again by who knows"
    await adapter.close()


async def test_an_own_message_is_taken_back(api: DiscordApi, adapter: DiscordAdapter) -> None:
    assert isinstance(adapter, Eraser)
    receipt = await adapter.send(part(direct(api)), "turn-1/0")
    theirs = str(api.message("well?")["id"])
    assert receipt.message_id is not None
    for message in (receipt.message_id, receipt.message_id, theirs):
        await adapter.erase(direct(api), message)
    assert (api.sent, [str(number) for number in api.messages]) == ([], [theirs])


async def test_a_server_is_left(api: DiscordApi, adapter: DiscordAdapter) -> None:
    assert isinstance(adapter, Leaver)
    garden, other = api.channel(api.guild()), api.channel(api.guild("Other"))
    for place in (direct(api), at(garden), at(garden)):
        await adapter.leave(place)
    assert other.guild is not None
    assert list(api.guilds) == [other.guild.id]


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        (Fault(400, "Invalid Form Body", code=50035), Rejected, "Invalid Form Body"),
        (Fault(403, "Missing Access", code=50001), Rejected, "View Channels"),
        (Fault(403, "Missing Permissions", code=50013), Rejected, "Send Messages"),
        (Fault(403, "Cannot send messages to this user", code=50007), Rejected, "share a server"),
        (Fault(404, "Unknown Channel", code=10003), Rejected, "was deleted"),
        (Fault(400, "Thread is locked", code=160005), Rejected, "locked"),
        (Fault(413, "Request entity too large", code=40005), Rejected, "10 MB"),
        (Fault(400, body=b"\x00not json"), Rejected, "Bad Request"),
        (Fault(401, "401: Unauthorized"), AuthFailed, "Reset Token"),
        (Fault(500, "Internal Server Error"), Unreachable, "500"),
        (Fault(502, body=b"<html>"), Unreachable, "502"),
        (Fault(404, body=b"<html>"), Unreachable, "is the server a Discord API server"),
        (Fault(429, retry_after=0.5), RateLimited, "0.5 s"),
        (Fault(429, body=b"<html>You are being blocked"), RateLimited, "5 s"),
        (Fault(200, body=b"<html>log in</html>"), Unreachable, "can't be read"),
    ],
)
async def test_each_answer_is_its_error(
    api: DiscordApi, adapter: DiscordAdapter, naps: Naps, fault: Fault, error: type[AdapterError], words: str
) -> None:
    """One call each: the library's own waiting and trying again is not the outbox's."""
    api.fail("POST", "/messages", fault)
    with pytest.raises(error) as caught:
        await adapter.send(part(direct(api)), "turn/0")
    assert words in str(caught.value)
    assert len(api.called("POST", "/messages")) == 1
    assert naps.taken == []
    assert (await adapter.send(part(direct(api)), "turn/0")).message_id


async def test_a_refusal_names_the_field(api: DiscordApi, adapter: DiscordAdapter) -> None:
    buttons = ((Button("One", "same"), Button("Two", "same")),)
    with pytest.raises(Rejected, match="custom id cannot be duplicated"):
        await adapter.send(part(direct(api), buttons=buttons), "turn/0")


async def test_a_global_limit_holds_every_call(api: DiscordApi, naps: Naps) -> None:
    seconds = 1000.0
    adapter = DiscordAdapter("main", adapter_for(api, naps)._settings, sleep=naps, monotonic=lambda: seconds)
    api.fail("POST", "/messages", Fault(429, retry_after=30, is_global=True))
    with pytest.raises(RateLimited):
        await adapter.send(part(direct(api)), "turn/0")
    seconds += 10
    await adapter.typing(direct(api))
    with pytest.raises(RateLimited) as caught:
        await adapter.send(part(direct(api)), "turn/0")
    assert caught.value.retry_after == 20
    assert len(api.calls) == 1
    seconds += 21
    await adapter.send(part(direct(api)), "turn/0")
    await adapter.close()


async def test_an_empty_bucket_is_waited_for(api: DiscordApi, adapter: DiscordAdapter) -> None:
    """The library counts what Discord says is left, so that nothing is refused."""
    await adapter.send(part(direct(api)), "turn/0")
    api.remaining = 1
    for number in range(3):
        await adapter.send(part(direct(api)), f"turn/{number + 1}")
    assert len(api.sent) == 4


async def test_a_reply_to_what_is_gone_is_sent_without_it(api: DiscordApi, adapter: DiscordAdapter) -> None:
    asked = api.message("well?")
    await adapter.send(part(direct(api), reply_to=asked["id"]), "turn/0")
    await adapter.send(part(direct(api), reply_to="12345"), "turn/1")
    assert [sent.reply_to for sent in api.sent] == [int(asked["id"]), None]


async def test_reactions_take_each_other_s_place(api: DiscordApi, adapter: DiscordAdapter) -> None:
    assert isinstance(adapter, Reactor)
    message = int(api.message("well?")["id"])
    for emoji in ("👀", "👀", "✅"):
        await adapter.react(direct(api), str(message), emoji)
        assert api.reactions == {message: emoji}
    await adapter.react(direct(api), str(message), "")
    assert api.reactions == {}
    await adapter.react(direct(api), str(message), "no emoji")


async def test_typing_is_shown_where_it_was_asked(api: DiscordApi, adapter: DiscordAdapter) -> None:
    garden = api.channel(api.guild())
    for place in (direct(api), at(garden)):
        await adapter.typing(place)
    assert api.typed == [api.dm.id, garden.id]


@pytest.mark.parametrize("rows", [((Button(" ", "x"),),), ((Button("x", ""),),), ((Button("x", "1"),) * 6,)])
async def test_buttons_that_can_t_be_are_refused(
    api: DiscordApi, adapter: DiscordAdapter, rows: tuple[tuple[Button, ...], ...]
) -> None:
    with pytest.raises(Rejected):
        await adapter.send(part(direct(api), buttons=rows), "turn/0")
    assert api.sent == []


async def test_an_edit_takes_the_buttons_away(api: DiscordApi, adapter: DiscordAdapter) -> None:
    receipt = await adapter.send(part(direct(api), buttons=((Button("Yes", "yes"),),)), "turn/0")
    assert receipt.message_id
    await adapter.edit(part(direct(api), "done"), receipt.message_id)
    assert (api.sent[0].text, api.sent[0].buttons) == ("done", [])


async def test_markup_counts(api: DiscordApi, adapter: DiscordAdapter) -> None:
    bold = parse("**x**")
    assert adapter.measure(bold) == 5
    assert adapter.measure(FormattedText("🎩")) == 1, "Discord counts code points"
    with pytest.raises(Rejected, match="2001"):
        await adapter.send(part(direct(api), "x" * 2001), "turn/0")


# Threads ------------------------------------------------------------------------------------------------------------


async def test_an_answer_opens_a_thread_below_the_question(api: DiscordApi, naps: Naps) -> None:
    """By setting; only when there is an answer, and once."""
    adapter = adapter_for(api, naps, auto_thread=True)
    garden = api.channel(api.guild())
    asked = api.says("<@111111111111111111> what needs water?", channel=garden)
    place = Address("discord", "main", str(asked), "channel", str(garden.guild.id), str(garden.id), str(asked))  # type: ignore[union-attr]

    async def accept(event: object) -> None:
        return

    async with running(adapter, accept):
        await connected(adapter)
        await adapter.typing(place)
        assert (api.typed, asked in api.channels) == ([garden.id], False)
        await adapter.react(place, str(asked), "👀")
        assert api.reactions == {asked: "👀"}
        await adapter.send(part(place, "The roses.", reply_to=str(asked)), "turn/0")
        await adapter.send(part(place, "And the lilies."), "turn/1")
    assert [(sent.channel, sent.reply_to) for sent in api.sent] == [(asked, None), (asked, None)]
    assert len(api.called("POST", "/threads")) == 1
    assert api.channels[asked].name == "The roses."
    await adapter.close()


async def test_a_thread_that_is_there_already_is_as_good(api: DiscordApi, naps: Naps) -> None:
    """After a restart it is not known, and Discord says that there is one."""
    adapter = adapter_for(api, naps, auto_thread=True)
    garden = api.channel(api.guild())
    asked = api.says("well?", channel=garden)
    api.thread(garden, of=asked)
    place = Address("discord", "main", str(asked), "channel", "1", str(garden.id), str(asked))
    await adapter.send(part(place, "Yes."), "turn/0")
    assert [sent.channel for sent in api.sent] == [asked]
    await adapter.close()


async def test_a_thread_that_hangs_on_no_message_is_one_too(api: DiscordApi, naps: Naps) -> None:
    """What is left to send goes out before Discord has told of any thread."""
    adapter = adapter_for(api, naps, auto_thread=True)
    thread = api.thread(api.channel(api.guild()))
    await adapter.send(part(at(thread), "Yes."), "turn/0")
    assert [sent.channel for sent in api.sent] == [thread.id]
    await adapter.close()
