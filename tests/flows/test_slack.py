"""The same agent behind Slack's real libraries: threads, edits, files, and one answer whatever happens."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing

import pytest

from bot.outbox import REPEATED, UNSURE
from tests.fakes.model_server import Call, ModelServer, Recorded, Reply
from tests.fakes.slack_api import ANN, APP_TOKEN, BOB, TOKEN, Fault, SlackApi
from tests.flows.conftest import SECONDS, Limpet

OWNER = f'owners = ["slack:{ANN.id}"]'


@pytest.fixture
async def slack() -> AsyncIterator[SlackApi]:
    async with SlackApi() as api:
        yield api


def connect(limpet: Limpet, slack: SlackApi, server: ModelServer, more: str = "") -> None:
    """Settings for a hosted model on ``server`` and an app on ``slack`` that answers in every channel."""
    limpet.configure(
        f'{OWNER}\n[models]\ndefault = "openai/fake"\nbase_url = "{server.url}"\n\n'
        f'[channels.slack]\nbase_url = "{slack.base_url}"\ndirect = "open"\nallow = ["*"]\ngroups = ["*"]\n{more}'
    )
    limpet.env |= {"SLACK_BOT_TOKEN": TOKEN, "SLACK_APP_TOKEN": APP_TOKEN}


async def settled(limpet: Limpet) -> None:
    """Returns once nothing is left to send."""
    async with asyncio.timeout(SECONDS):
        with closing(sqlite3.connect(f"file:{limpet.home}/state/limpet.sqlite?mode=ro", uri=True)) as state:
            while state.execute("SELECT 1 FROM outbox WHERE state IN ('pending', 'attempting')").fetchone():
                await asyncio.sleep(0.02)


def last(request: Recorded) -> str:
    content = request.messages[-1]["content"]
    return content if isinstance(content, str) else str(content[0]["text"])


async def test_a_question_in_a_channel_is_answered_in_its_thread(limpet: Limpet, slack: SlackApi) -> None:
    """G-DLV-03, G-RTE-08, G-RTE-10: once, in one session with what is asked next there, and apart from the others."""
    channel = slack.channel()
    async with ModelServer(lambda request: Reply(f"You said: {last(request)[-12:]}")) as server:
        connect(limpet, slack, server)
        async with limpet.hub():
            slack.says("The roses are dry.", user=BOB, chat=channel)
            root = slack.says(f"<@{slack.me.id}> what is dry?", chat=channel)
            (first,) = await slack.wait_sent(1, SECONDS)
            slack.says("and the tulips?", user=BOB, chat=channel, thread=root)
            await slack.wait_sent(2, SECONDS)
            slack.says("my salary is 100")
            sent = await slack.wait_sent(3, SECONDS)
            await settled(limpet)
            await slack.wait_acknowledged()
    assert [(one.chat, one.thread) for one in sent] == [(channel.id, root), (channel.id, root), (slack.direct.id, None)]
    assert first.text.endswith("what is dry?")
    asked, again, direct = server.requests
    assert "The roses are dry." in asked.text, "what was said right before"
    assert "what is dry?" in again.text, "it is the same session"
    assert "Bob] and the tulips?" in again.text
    assert "roses" not in direct.text
    assert slack.statuses == {}
    assert slack.called("assistant.threads.setStatus"), "it was shown that an answer is being written"


async def test_an_edit_is_no_second_question(limpet: Limpet, slack: SlackApi) -> None:
    """G-DLV-04, G-DLV-05"""
    async with ModelServer(lambda _: Reply("Noted.")) as server:
        connect(limpet, slack, server)
        async with limpet.hub():
            ts = slack.says("my dog is called Bisquit")
            await slack.wait_sent(1, SECONDS)
            await settled(limpet)
            slack.unfurls(ts)
            slack.edits(ts, "my dog is called Biscuit")
            await slack.wait_acknowledged()
            slack.says("well?")
            await slack.wait_sent(2, SECONDS)
    assert len(server.requests) == 2
    assert "which now reads: my dog is called Biscuit" in server.requests[-1].text


async def test_files_go_both_ways(limpet: Limpet, slack: SlackApi) -> None:
    def sends(request: Recorded) -> Reply:
        if request.messages[-1]["role"] == "tool":
            return Reply("Here it is.")
        return Reply(calls=[Call("send_file", json.dumps({"path": "plan.md"}))])

    async with ModelServer(sends) as server:
        connect(limpet, slack, server)
        limpet.workspace.mkdir(parents=True)
        (limpet.workspace / "plan.md").write_text("# The plan\n", "utf-8")
        async with limpet.hub():
            slack.shares(
                b"%PDF-1.7 roses", "roses.pdf", "What of this? And send me the plan.", mimetype="application/pdf"
            )
            await slack.until(lambda: any(sent.files for sent in slack.sent), SECONDS)
            await settled(limpet)
    files = [file for sent in slack.sent for file in sent.files]
    assert [(file["title"], slack.contents[file["id"]]) for file in files] == [("plan.md", b"# The plan\n")]
    assert "roses.pdf" in server.requests[0].text
    (kept,) = (limpet.workspace / "media").iterdir()
    assert kept.read_bytes() == b"%PDF-1.7 roses"


async def test_a_connection_that_is_cut_loses_nothing(limpet: Limpet, slack: SlackApi) -> None:
    async with ModelServer(lambda request: Reply(f"You said {last(request)[-1]}")) as server:
        connect(limpet, slack, server)
        async with limpet.hub():
            for number in range(4):
                slack.says(f"message {number}")
                await slack.wait_sent(number + 1, SECONDS)
                await slack.cut()
            await settled(limpet)
    assert [sent.text for sent in slack.sent] == [f"You said {number}" for number in range(4)]


async def test_what_was_said_while_it_was_down_is_answered_once(limpet: Limpet, slack: SlackApi) -> None:
    """G-DLV-10: Slack tells none of it again after a while, so it is looked up; in a direct chat and in a thread."""
    channel = slack.channel()
    async with ModelServer(lambda request: Reply(f"You said {last(request)[-1]}")) as server:
        connect(limpet, slack, server)
        async with limpet.hub() as hub:
            root = slack.says(f"<@{slack.me.id}> question 1", chat=channel)
            await slack.wait_sent(1, SECONDS)
            await settled(limpet)
            await hub.kill()
        slack.says("question 2", told=False)
        slack.says("question 3", chat=channel, thread=root, told=False)
        slack.says(f"<@{slack.me.id}> question 4", chat=channel, told=False)
        for _ in range(2):
            async with limpet.hub() as hub:
                await slack.wait_sent(4, SECONDS)
                await settled(limpet)
                await hub.kill()
    assert sorted(sent.text for sent in slack.sent) == [f"You said {number}" for number in (1, 2, 3, 4)]
    by_text = {sent.text: (sent.chat, sent.thread) for sent in slack.sent}
    assert by_text["You said 2"] == (slack.direct.id, None)
    assert by_text["You said 3"] == (channel.id, root)


async def test_kill_9_between_question_and_answer_gives_exactly_one_answer(limpet: Limpet, slack: SlackApi) -> None:
    """G-DLV-07"""
    channel = slack.channel()
    answers = iter([Reply("never sent", wait=True), Reply("The roses.")])
    async with ModelServer(lambda _: next(answers)) as server:
        connect(limpet, slack, server)
        async with limpet.hub() as hub:
            root = slack.says(f"<@{slack.me.id}> what is dry?", chat=channel)
            await server.arrived(1)
            await slack.wait_acknowledged()
            await hub.kill()
        assert slack.sent == []
        async with limpet.hub():
            await slack.wait_sent(1, SECONDS)
            await settled(limpet)
    assert [(sent.text, sent.thread) for sent in slack.sent] == [("The roses.", root)]


@pytest.mark.parametrize("arrived", [True, False])
@pytest.mark.parametrize("place", ["direct", "thread"])
async def test_kill_9_in_the_middle_of_a_send_sends_it_once(
    limpet: Limpet, slack: SlackApi, place: str, arrived: bool
) -> None:
    """Whether it had arrived is read back from what the message carries: none is repeated, none is lost."""
    channel = slack.channel()
    async with ModelServer(lambda _: Reply("The answer.")) as server:
        connect(limpet, slack, server)
        slack.fail("chat.postMessage", Fault(after=arrived, delay=60))
        async with limpet.hub() as hub:
            if place == "direct":
                slack.says("well?")
            else:
                slack.says(f"<@{slack.me.id}> well?", chat=channel)
            await slack.wait_called("chat.postMessage", 1, SECONDS)
            await hub.kill()
        assert len(slack.sent) == arrived
        async with limpet.hub() as hub:
            await slack.wait_sent(1, SECONDS)
            await settled(limpet)
            await hub.kill()
    assert [sent.text for sent in slack.sent] == ["The answer."]
    assert REPEATED not in slack.sent[0].text
    assert len(server.requests) == 1


@pytest.mark.parametrize("words", [60, 3])
async def test_kill_9_while_an_answer_is_shown_leaves_one(limpet: Limpet, slack: SlackApi, words: int) -> None:
    """Its beginning was shown, and the power went before that was known: it becomes the answer, long or short."""
    growing = " ".join(f"word{number}" for number in range(60))
    whole = " ".join(f"word{number}" for number in range(words))
    answers = iter([Reply(growing, pause=0.2), Reply(whole)])
    async with ModelServer(lambda _: next(answers)) as server:
        connect(limpet, slack, server)
        slack.fail("chat.postMessage", Fault(after=True, delay=60))
        async with limpet.hub() as hub:
            slack.says("tell me")
            await slack.wait_sent(1, SECONDS)
            await hub.kill()
        assert slack.sent[0].text != whole
        async with limpet.hub():
            await slack.until(lambda: slack.sent[-1].text == whole, SECONDS)
            await settled(limpet)
    assert [sent.text for sent in slack.sent] == [whole]


async def test_an_answer_to_a_send_that_is_lost_is_settled(limpet: Limpet, slack: SlackApi) -> None:
    """G-DLV-11: nothing is said twice, and nobody is told that something may be missing."""
    async with ModelServer(lambda request: Reply(f"You said {last(request)[-1]}")) as server:
        connect(limpet, slack, server)
        slack.fail("chat.postMessage", Fault(drop=True, after=True), Fault(drop=True))
        async with limpet.hub():
            slack.says("question 1")
            await slack.wait_sent(1, SECONDS)
            await settled(limpet)
            slack.says("question 2")
            await slack.wait_sent(2, SECONDS)
            await settled(limpet)
    assert [sent.text for sent in slack.sent] == ["You said 1", "You said 2"]
    assert UNSURE not in slack.sent[-1].text


async def test_a_long_answer_is_shown_while_it_grows(limpet: Limpet, slack: SlackApi) -> None:
    text = " ".join(f"word{number}" for number in range(60))
    async with ModelServer(lambda _: Reply(text, pause=0.06)) as server:
        connect(limpet, slack, server)
        async with limpet.hub():
            slack.says("tell me")
            await slack.wait_sent(1, SECONDS)
            await slack.until(lambda: slack.sent[-1].text == text, SECONDS)
            await settled(limpet)
    (sent,) = slack.sent
    assert sent.text == text
    assert len(sent.texts) > 1


async def test_a_slash_command_is_answered_at_once_and_to_nobody_else(limpet: Limpet, slack: SlackApi) -> None:
    channel = slack.channel()
    async with ModelServer() as server:
        connect(limpet, slack, server)
        async with limpet.hub():
            slack.commands("whoami", chat=channel, user=BOB)
            (sent,) = await slack.wait_sent(1, SECONDS)
            slack.commands("statsu")
            await slack.wait_sent(2, SECONDS)
    assert (sent.only, sent.chat) == (BOB.id, channel.id)
    assert sent.text.startswith("You are Bob")
    assert "Did you mean /status?" in slack.sent[-1].text
    assert server.requests == []


async def test_a_revoked_token_is_told_with_its_mend(limpet: Limpet, slack: SlackApi) -> None:
    """The library would try for ever, and nobody would know."""
    async with ModelServer() as server:
        connect(limpet, slack, server)
        async with limpet.hub() as hub:
            await slack.wait_linked(1, SECONDS)
            slack.revoked[APP_TOKEN] = "token_revoked"
            await slack.cut()
            line = await hub.until("channel.failed")
            status = await limpet("status")
    assert "token_revoked" in line
    assert "App-Level Tokens" in status.out
    assert APP_TOKEN not in "".join(hub.log) + status.out


async def test_a_channel_is_added_with_both_tokens_and_examined(limpet: Limpet, slack: SlackApi) -> None:
    limpet.configure("")
    limpet.env |= {"SLACK_BOT_TOKEN": TOKEN}
    alone = await limpet("channels", "add", "slack", "--set", f"base_url={slack.base_url}")
    assert alone.code == 2
    assert "SLACK_APP_TOKEN" in alone.err
    limpet.env |= {"SLACK_APP_TOKEN": "xapp-1-wrong-wrong-wrong-wrong"}
    wrong = await limpet("channels", "add", "slack", "--set", f"base_url={slack.base_url}")
    assert wrong.code == 1
    assert "invalid_auth" in wrong.err
    assert not (limpet.home / ".env").exists()
    limpet.env |= {"SLACK_APP_TOKEN": APP_TOKEN}
    added = await limpet("channels", "add", "slack", "--set", f"base_url={slack.base_url}", "--json")
    assert added.code == 0, added.err
    assert added.json["link"].startswith("https://garden.slack.test/app_redirect")
    kept = (limpet.home / "limpet.toml").read_text("utf-8")
    assert TOKEN not in kept
    assert APP_TOKEN not in kept
    slack.scopes.discard("reactions:write")
    doctor = await limpet("doctor")
    assert "lacks the scope reactions:write" in doctor.out
