"""What is sent: every refusal of Slack's as its error, and what nobody may see twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from adapters.adapter import Offered
from adapters.errors import AdapterError, Ambiguous, AuthFailed, RateLimited, Rejected, Unreachable
from adapters.markdown import parse
from adapters.message import Button, File, Part
from adapters.slack import SlackAdapter
from tests.adapters.slack.conftest import opened, part, place
from tests.adapters.work import Clock, Naps, Received, running, until
from tests.fakes.slack_api import ANN, BOB, Fault, SlackApi

_SINCE = datetime.now(UTC) - timedelta(minutes=1)


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        (Fault("not_in_channel"), Rejected, "/invite"),
        (Fault("channel_not_found"), Rejected, "invite"),
        (Fault("is_archived"), Rejected, "archived"),
        (Fault("restricted_action_read_only_channel"), Rejected, "read-only"),
        (Fault("messages_tab_disabled"), Rejected, "App Home"),
        (Fault("msg_too_long"), Rejected, "longer"),
        (Fault("some_new_error"), Rejected, "some_new_error"),
        (Fault("invalid_blocks", fields=(("errors", ["must be more than 0 characters"]),)), Rejected, "0 characters"),
        (Fault("missing_scope", fields=(("needed", "chat:write"),)), Rejected, "chat:write"),
        (Fault("token_revoked"), AuthFailed, "token_revoked"),
        (Fault("invalid_auth"), AuthFailed, "OAuth & Permissions"),
        (Fault("not_allowed_token_type"), AuthFailed, "xoxb-"),
        (Fault("ratelimited", 429, retry_after=7), RateLimited, "7 s"),
        (Fault(status=429, retry_after=7), RateLimited, "7 s"),
        (Fault(status=429), RateLimited, "5 s"),
        (Fault("service_unavailable"), Unreachable, "service_unavailable"),
        (Fault(status=503), Unreachable, "503"),
        (Fault(status=502), Unreachable, "502"),
        (Fault(status=504), Ambiguous, "504"),
        (Fault(status=500), Ambiguous, "500"),
        (Fault("internal_error"), Ambiguous, "internal_error"),
        (Fault("fatal_error", 500), Ambiguous, "fatal_error"),
        (Fault(drop=True), Ambiguous, "no answer"),
    ],
)
async def test_a_refusal_is_its_error(
    api: SlackApi, adapter: SlackAdapter, fault: Fault, error: type[AdapterError], words: str
) -> None:
    """G-FMT-08: what is refused within a 200 is refused."""
    api.fail("chat.postMessage", fault)
    with pytest.raises(error) as caught:
        await adapter.send(part(), "key")
    assert type(caught.value) is error or issubclass(type(caught.value), error)
    assert words in str(caught.value)


async def test_only_malformed_blocks_may_pass_as_plain_text(api: SlackApi, adapter: SlackAdapter) -> None:
    """G-FMT-07"""
    for code, formatting in (("invalid_blocks", True), ("no_text", False), ("not_in_channel", False)):
        api.fail("chat.postMessage", Fault(code))
        with pytest.raises(Rejected) as caught:
            await adapter.send(part(), "key")
        assert caught.value.formatting is formatting


@pytest.mark.parametrize("code", ["message_not_found", "cant_update_message", "edit_window_closed"])
async def test_what_can_not_be_edited_any_more_is_gone(api: SlackApi, adapter: SlackAdapter, code: str) -> None:
    receipt = await adapter.send(part("before"), "key")
    api.fail("chat.update", Fault(code))
    with pytest.raises(Rejected) as caught:
        await adapter.edit(part("after"), receipt.message_id or "")
    assert caught.value.gone


# Settling -----------------------------------------------------------------------------------------------------------


async def test_a_lost_answer_is_settled_by_reading_back(api: SlackApi, adapter: SlackAdapter) -> None:
    """G-DLV-11: by the key that the message carries, in a chat and in a thread."""
    channel = api.channel()
    thread = api.says("so?", chat=channel)
    for address in (place(), place(channel), place(channel, thread)):
        api.fail("chat.postMessage", Fault(drop=True, after=True))
        with pytest.raises(Ambiguous):
            await adapter.send(part("once", address), f"turn/{address}")
        await adapter.send(part("once", address), "another turn's")
        shown = next(sent for sent in api.sent if (sent.metadata or {})["event_payload"]["key"] == f"turn/{address}")
        receipt = await adapter.settle(part("once", address), f"turn/{address}", _SINCE)
        assert receipt is not None
        assert receipt.message_id == shown.id
        assert await adapter.settle(part("once", address), "never sent", _SINCE) is None


async def test_what_never_arrived_is_settled_too(api: SlackApi, adapter: SlackAdapter) -> None:
    api.fail("chat.postMessage", Fault(drop=True))
    with pytest.raises(Ambiguous):
        await adapter.send(part(), "key")
    assert await adapter.settle(part(), "key", _SINCE) is None


async def test_a_message_is_known_after_it_was_edited(api: SlackApi, adapter: SlackAdapter) -> None:
    receipt = await adapter.send(part("hel"), "key")
    await adapter.edit(part("hello"), receipt.message_id or "")
    assert await adapter.settle(part("hello"), "key", _SINCE) == receipt


async def test_settling_says_why_it_can_not(api: SlackApi, adapter: SlackAdapter) -> None:
    api.fail("conversations.history", Fault("ratelimited", 429, retry_after=9))
    with pytest.raises(RateLimited):
        await adapter.settle(part(), "key", _SINCE)
    api.scopes.remove("channels:history")
    with pytest.raises(Rejected, match="channels:history"):
        await adapter.settle(part(), "key", _SINCE)


# Threads and commands -----------------------------------------------------------------------------------------------


async def test_an_answer_goes_into_the_thread_of_its_question(api: SlackApi, naps: Naps, clock: Clock) -> None:
    """G-RTE-08: and where a channel has no threads, into the channel."""
    channel = api.channel()
    question = api.says("hi", chat=channel)
    for settings, thread in (({}, question), ({"reply_in_thread": False}, None)):
        adapter = opened(api, naps, clock, **settings)
        await adapter.send(part("yes", place(channel), reply_to=question), "key")
        assert api.sent[-1].thread == thread
        await adapter.send(part("yes", place(channel, question), reply_to=question), "key")
        assert api.sent[-1].thread == question
        await adapter.close()


async def test_a_slash_command_is_answered_to_whoever_gave_it(api: SlackApi, adapter: SlackAdapter) -> None:
    channel = api.channel()
    adapter.offer([Offered("whoami", "who you are to me")])
    received = Received()
    async with running(adapter, received.accept):
        api.commands("whoami", chat=channel, user=BOB)
        await until(lambda: bool(received.events))
        await api.wait_acknowledged()
    (message,) = received.messages
    assert (message.text, message.mentions_me, message.sender.id) == ("/whoami", True, BOB.id)
    await adapter.send(part("You are Bob.", message.address, reply_to=message.id), "key")
    assert (api.sent[0].only, api.sent[0].text, api.sent[0].chat) == (BOB.id, "You are Bob.", channel.id)


async def test_no_part_of_an_answer_to_a_slash_command_is_public(api: SlackApi, adapter: SlackAdapter) -> None:
    """Only the first part of a turn says what it answers; and no other turn is taken for it."""
    channel = api.channel()
    address = place(channel)
    await adapter.send(part("one", address, reply_to=f"command/{BOB.id}/1.2.3"), "turn-1/0")
    await adapter.send(part("two", address), "turn-1/1")
    await adapter.send(part("public", address), "turn-2/0")
    await adapter.send(part("three", address), "turn-1/2")
    assert [(sent.text, sent.only) for sent in api.sent] == [
        ("one", BOB.id),
        ("two", BOB.id),
        ("public", None),
        ("three", BOB.id),
    ]
    assert await adapter.settle(part("two", address), "turn-1/1", _SINCE) is None
    assert api.called("conversations.history") == [], "no history has it"


@pytest.mark.parametrize("number", [0, 1])
async def test_a_file_is_shown_to_nobody_who_did_not_ask(
    api: SlackApi, adapter: SlackAdapter, tmp_path: Path, number: int
) -> None:
    """Slack can't show a file to one person: it is refused, and nothing of it is uploaded."""
    (tmp_path / "plan.txt").write_text("secret")
    file = File("document", str(tmp_path / "plan.txt"), "plan.txt")
    command = f"command/{BOB.id}/1.2.3"
    address = place(api.channel())
    if number:
        await adapter.send(part("one", address, reply_to=command), "turn-1/0")
    with pytest.raises(Rejected, match="ask me in a direct message"):
        await adapter.send(part("", address, files=(file,), reply_to=None if number else command), f"turn-1/{number}")
    assert api.called("files.getUploadURLExternal") == []
    await adapter.send(part("", files=(file,), reply_to=command), "turn-3/0")
    assert len(api.sent) == number + 1, "in a direct chat nobody else sees it"


async def test_turns_that_only_one_person_sees_are_remembered_within_bounds(
    api: SlackApi, adapter: SlackAdapter
) -> None:
    address = place(api.channel())
    for number in range(1001):
        await adapter.settle(part("x", address, reply_to=f"command/{BOB.id}/1"), f"turn-{number}/0", _SINCE)
    await adapter.send(part("x", address), "turn-1/1")
    await adapter.send(part("x", address), "turn-0/1")
    assert [sent.only for sent in api.sent] == [BOB.id, None]


async def test_a_command_between_two_others_is_declined(api: SlackApi, adapter: SlackAdapter) -> None:
    """A direct chat that is not ours is nobody's private chat with us: nothing of it is handed on."""
    others = api.add_chat("D0ELSE001", "im", with_bot=False)
    received = Received()
    async with running(adapter, received.accept):
        api.commands("what do you know of me?", chat=others)
        api.commands("what do you know of me?")
        await until(lambda: bool(received.events))
        await api.wait_acknowledged()
    assert [message.address.chat for message in received.messages] == [api.direct.id]
    assert [said["response_type"] for said in api.responses] == ["ephemeral"]
    assert "Write to me directly." in api.responses[0]["text"]
    assert api.sent == []


async def test_a_command_that_is_brought_again_is_the_same(api: SlackApi, adapter: SlackAdapter) -> None:
    received = Received()
    async with running(adapter, received.accept):
        for _ in range(2):
            api.commands("what grows here?", trigger="1.2.3")
        await until(lambda: len(received.events) == 2)
    first, again = received.messages
    assert (first.id, first.address) == (again.id, again.address)


# What is only shown -------------------------------------------------------------------------------------------------


async def test_a_status_is_shown_below_a_thread_and_nowhere_else(
    api: SlackApi, adapter: SlackAdapter, clock: Clock
) -> None:
    channel = api.channel()
    thread = api.says("so?", chat=channel)
    await adapter.typing(place(channel))
    await adapter.typing(place())
    assert api.calls == []
    await adapter.typing(place(channel, thread))
    assert api.statuses == {(channel.id, thread): "is thinking…"}
    await adapter.send(part("yes", place(channel, thread)), "key")
    assert api.statuses == {}


async def test_a_status_that_is_refused_is_not_asked_for_again_soon(
    api: SlackApi, adapter: SlackAdapter, clock: Clock
) -> None:
    channel = api.channel()
    thread = api.says("so?", chat=channel)
    for fault, seconds in ((Fault("missing_scope"), 600), (Fault("ratelimited", 429, retry_after=30), 30)):
        api.calls.clear()
        api.fail("assistant.threads.setStatus", fault)
        for _ in range(3):
            await adapter.typing(place(channel, thread))
        assert len(api.calls) == 1
        clock.seconds += seconds + 1
        await adapter.typing(place(channel, thread))
        assert len(api.calls) == 2


async def test_a_reaction_takes_the_place_of_ours(api: SlackApi, adapter: SlackAdapter) -> None:
    ts = api.says("hello")
    chat = api.direct.id
    await adapter.react(place(), ts, "👀")
    await adapter.react(place(), ts, "👀")
    assert api.reactions == {(chat, ts, "eyes")}
    await adapter.react(place(), ts, "✅")
    assert api.reactions == {(chat, ts, "white_check_mark")}
    await adapter.react(place(), ts, "❤️")
    assert api.reactions == {(chat, ts, "heart")}
    await adapter.react(place(), ts, "")
    assert api.reactions == set()
    await adapter.react(place(), ts, "🧿")
    assert api.reactions == set(), "it has no name here"


async def test_a_message_of_ours_is_taken_back(api: SlackApi, adapter: SlackAdapter) -> None:
    receipt = await adapter.send(part("too much"), "key")
    await adapter.erase(place(), receipt.message_id or "")
    assert api.sent == []
    await adapter.erase(place(), receipt.message_id or "")
    await adapter.erase(place(), api.says("not ours"))
    assert len(api.direct.messages) == 1


async def test_links_are_not_unfurled(api: SlackApi, adapter: SlackAdapter) -> None:
    await adapter.send(part("https://ex.test"), "key")
    (call,) = api.called("chat.postMessage")
    assert (call["unfurl_links"], call["unfurl_media"]) == (False, False)


@pytest.mark.parametrize(
    "spoken", ["<!channel>", "<@U0ANN0001>", "<!subteam^S1>", "<#C0GARDEN>", "<!here|here>", "<<!everyone>>"]
)
async def test_no_word_of_ours_pings_anybody(api: SlackApi, adapter: SlackAdapter, spoken: str) -> None:
    """G-FMT-12: in a text, in code, in the words of a link, in a heading, on an edit, in a caption's and a whisper."""
    channel = api.channel()
    forms = (
        spoken,
        f"`{spoken}`",
        f"```\n{spoken}\n```",
        f"[{spoken}](https://ex.test/{spoken})",
        f"# {spoken}",
        f"> {spoken}",
    )
    for form in forms:
        said = Part(place(), parse(form))
        receipt = await adapter.send(said, "key")
        await adapter.edit(said, receipt.message_id or "")
        await adapter.send(Part(place(channel), parse(form), reply_to=f"command/{ANN.id}/1"), "key")
        assert spoken in api.sent[0].text or "ex.test" in form
    assert api.pinged == []


@pytest.mark.parametrize(
    "button", [Button(" ", "x"), Button("Yes", ""), Button("Yes", "x" * 2001)], ids=["label", "nothing", "long"]
)
async def test_a_button_that_slack_does_not_take_is_refused(adapter: SlackAdapter, button: Button) -> None:
    with pytest.raises(Rejected):
        await adapter.send(part("Well?", buttons=((button,),)), "key")


async def test_a_message_of_ours_that_others_quote_is_not_ours(api: SlackApi, adapter: SlackAdapter) -> None:
    """What another app says is no message of ours, whoever made it."""
    await adapter.send(part("mine"), "key")
    assert await adapter.settle(part("mine"), "key", datetime.now(UTC) + timedelta(minutes=5)) is None


async def test_a_long_answer_in_a_quote_keeps_its_lines(api: SlackApi, adapter: SlackAdapter) -> None:
    text = parse("> one\n>\n> two\n\nthree\n\n```\nfour\n\n five\n```\nsix")
    await adapter.send(Part(place(), text), "key")
    assert api.sent[0].text == text.plain


@pytest.mark.parametrize(
    ("label", "target"),
    [
        ("https://bank.example/login", "https://evil.example/x"),
        ("bank.example", "https://evil.example"),
        ("**bank**.example", "https://evil.example/"),
        ("go to bank.example now", "https://evil.example"),
        ("bank.example", "https://bank.example.evil.example"),
        ("bank。example", "https://evil.example"),
        ("10.0.0.1", "https://evil.example"),
    ],
)
async def test_where_a_link_leads_is_shown_where_its_words_say_otherwise(
    api: SlackApi, adapter: SlackAdapter, label: str, target: str
) -> None:
    """G-FMT-12: nobody is led to a place that is not the one they read."""
    await adapter.send(Part(place(), parse(f"see [{label}]({target}), or not")), "key")
    assert api.sent[0].text == f"see {label.replace('*', '')} ({target}), or not"
    links = [one for one in api.sent[0].blocks[0]["elements"][0]["elements"] if one["type"] == "link"]
    assert [(one["url"], one.get("text", target)) for one in links] == [(target, target)]


@pytest.mark.parametrize(
    ("label", "target"),
    [
        ("the bank", "https://bank.example"),
        ("bank.example", "https://bank.example/"),
        ("bank.example", "https://bank.example/login?x=1"),
        ("https://bank.example", "https://bank.example"),
        ("No. 2, e.g. this", "https://bank.example"),
    ],
)
async def test_an_honest_link_is_its_words(api: SlackApi, adapter: SlackAdapter, label: str, target: str) -> None:
    await adapter.send(Part(place(), parse(f"[{label}]({target})")), "key")
    assert api.sent[0].text == label
