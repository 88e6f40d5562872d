"""The same agent behind Discord's real protocol: a server and a direct chat, and one answer whatever happens."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import pytest

from tests.fakes.discord_api import ANN, BOB, BOT, TOKEN, Channel, DiscordApi, Fault
from tests.fakes.model_server import ModelServer, Recorded, Reply
from tests.flows.conftest import Limpet

OWNER = f'owners = ["discord:{ANN.id}"]'
NAMED = f"<@{BOT.id}> "
CODE = re.compile(r"\b[A-HJKMNP-Z2-9]{8}\b")


@pytest.fixture
async def discord() -> AsyncIterator[DiscordApi]:
    async with DiscordApi() as api:
        yield api


@pytest.fixture
def garden(discord: DiscordApi) -> Channel:
    return discord.channel(discord.guild())


def connect(limpet: Limpet, discord: DiscordApi, server: ModelServer, more: str = "") -> None:
    """Ann is the owner, and the bot answers in every channel. ``more`` goes to the section of the channel."""
    limpet.configure(
        f'{OWNER}\n[models]\ndefault = "openai/fake"\nbase_url = "{server.url}"\n\n'
        f'[channels.discord]\nbase_url = "{discord.root}"\ngroups = ["*"]\n{more}'
    )
    limpet.env["DISCORD_BOT_TOKEN"] = TOKEN


def echo(request: Recorded) -> Reply:
    return Reply(f"You said {request.messages[-1]['content'].rpartition('] ')[2]}")


async def settled(limpet: Limpet) -> None:
    """Returns once all that was answered is known to be sent."""
    while (await limpet("status", "--json")).json["unsent"]:
        pass


async def test_a_question_on_a_server_is_answered_where_it_was_asked(
    limpet: Limpet, discord: DiscordApi, garden: Channel
) -> None:
    """What nobody said to the bot is known to the answer; who asked by a role is answered too, strangers are not."""
    async with ModelServer(lambda _: Reply("The roses, **today**.")) as server:
        connect(limpet, discord, server)
        async with limpet.hub():
            await discord.wait_login()
            discord.says("The roses look dry.", user=BOB, channel=garden)
            asked = discord.says(f"{NAMED}what needs water?", channel=garden)
            (sent,) = await discord.wait_sent(1)
            assert (sent.channel, sent.reply_to) == (garden.id, asked)
            await discord.until(lambda: discord.sent[0].text == "The roses, **today**.")
            assert "The roses look dry." in server.requests[0].text
            assert discord.typed
            discord.says("let me in", user=BOB)
            code = (await discord.wait_sent(2))[1]
            assert CODE.search(code.text)
            assert (await limpet("pairing", "list", "--json")).json["waiting"][0]["name"] == "Bob"
    assert len(server.requests) == 1


async def test_an_edit_is_known_and_not_answered_again(limpet: Limpet, discord: DiscordApi) -> None:
    """G-DLV-05"""
    async with ModelServer(echo) as server:
        connect(limpet, discord, server)
        async with limpet.hub():
            await discord.wait_login()
            said = discord.says("my dog is called Biskit")
            await discord.wait_sent(1)
            await settled(limpet)
            discord.edits(said, "my dog is called Biscuit")
            discord.says("what is it called?")
            await discord.wait_sent(2)
        assert "changed an earlier message, which now reads: my dog is called Biscuit" in server.requests[-1].text
    assert len(server.requests) == 2


async def test_files_go_both_ways(limpet: Limpet, discord: DiscordApi) -> None:
    """A long answer comes as a file too."""
    long = "\n\n".join(f"Paragraph {number}. " + "word" + " word" * 299 for number in range(14))
    answers = iter([Reply("Thank you."), Reply(long)])
    async with ModelServer(lambda _: next(answers)) as server:
        connect(limpet, discord, server)
        async with limpet.hub():
            await discord.wait_login()
            discord.says("keep this", attachments=[discord.attachment("plan.txt", b"water the roses", "text/plain")])
            await discord.wait_sent(1)
            discord.says("and now tell me all")
            sent = await discord.wait_sent(9)
            await settled(limpet)
    (kept,) = limpet.workspace.glob("media/*.txt")
    assert kept.read_bytes() == b"water the roses"
    assert kept.name in server.requests[0].text
    (file,) = sent[-1].files
    assert (file[0], file[1].decode()) == ("answer.md", long)


async def test_a_cut_connection_loses_nothing(limpet: Limpet, discord: DiscordApi, garden: Channel) -> None:
    async with ModelServer(echo) as server:
        connect(limpet, discord, server)
        async with limpet.hub():
            await discord.wait_login()
            discord.says(f"{NAMED}one", channel=garden)
            await discord.wait_sent(1)
            discord.cut()
            discord.says(f"{NAMED}two", channel=garden)
            await discord.wait_sent(2)
            discord.invalidate()
            discord.says(f"{NAMED}three", channel=garden)
            await discord.wait_sent(3)
            await settled(limpet)
    assert [sent.texts[-1] for sent in discord.sent] == ["You said one", "You said two", "You said three"]
    assert [kind for kind, _ in discord.logins] == ["IDENTIFY", "RESUME", "IDENTIFY"]


async def test_kill_9_between_question_and_answer_gives_one_answer(
    limpet: Limpet, discord: DiscordApi, garden: Channel
) -> None:
    """G-DLV-07: the model call was running, the power went; more was said while it was away."""
    answers = iter([Reply("never sent", wait=True), Reply("The roses."), Reply("The lilies."), Reply("Hello.")])
    async with ModelServer(lambda _: next(answers)) as server:
        connect(limpet, discord, server, "stream = false\n")
        async with limpet.hub() as hub:
            await discord.wait_login()
            discord.says(f"{NAMED}what needs water?", channel=garden)
            await server.arrived(1)
            await hub.kill()
        discord.forget()
        assert discord.sent == []
        discord.says(f"{NAMED}and then?", channel=garden)
        async with limpet.hub():
            await discord.wait_sent(2)
            discord.says("are you there?")
            await discord.wait_sent(3)
            await settled(limpet)
    assert [sent.text for sent in discord.sent] == ["The roses.", "The lilies.", "Hello."]


async def test_what_was_said_while_it_was_away_is_answered_once(
    limpet: Limpet, discord: DiscordApi, garden: Channel
) -> None:
    """G-DLV-06, G-DLV-08: three restarts with the same data; the gateway hands nothing out again."""
    async with ModelServer(echo) as server:
        connect(limpet, discord, server, "stream = false\n")
        async with limpet.hub() as hub:
            await discord.wait_login()
            discord.says("0")
            discord.says(f"{NAMED}1", channel=garden)
            await discord.wait_sent(2)
            await settled(limpet)
            await hub.kill()
        for number in (1, 2, 3):
            discord.forget()
            discord.says(f"{2 * number}")
            discord.says(f"{NAMED}{2 * number + 1}", channel=garden)
            async with limpet.hub() as hub:
                await discord.wait_sent(2 * number + 2)
                await settled(limpet)
                await hub.kill()
    assert sorted(sent.text for sent in discord.sent) == [f"You said {number}" for number in range(8)]
    assert len(server.requests) == 8


@pytest.mark.parametrize("is_known", [True, False])
async def test_kill_9_while_an_answer_is_shown_leaves_one_message(
    limpet: Limpet, discord: DiscordApi, garden: Channel, is_known: bool
) -> None:
    """What was shown of it becomes the answer, also where the process died before it knew the message."""
    text = "The roses need water, and so do the lilies, every evening of the summer."
    answers = iter([Reply(text, stall_after=9), Reply(text)])
    async with ModelServer(lambda _: next(answers)) as server:
        connect(limpet, discord, server)
        if not is_known:
            discord.fail("POST", f"/channels/{garden.id}/messages", Fault(after=True, delay=60))
        async with limpet.hub() as hub:
            await discord.wait_login()
            discord.says(f"{NAMED}what needs water?", channel=garden)
            (sent,) = await discord.wait_sent(1)
            assert text.startswith(sent.text)
            await asyncio.sleep(0.3)
            await hub.kill()
        async with limpet.hub():
            await discord.until(lambda: discord.sent[0].text == text, seconds=40)
            await settled(limpet)
    assert len(discord.sent) == 1


@pytest.mark.parametrize("after_minutes", [False, True])
async def test_kill_9_in_the_middle_of_a_send_shows_it_once(
    limpet: Limpet, discord: DiscordApi, after_minutes: bool
) -> None:
    """G-DLV-11: Discord knows a repetition by its key for some minutes; after that the chat itself is looked at."""
    async with ModelServer(lambda _: Reply("The answer.")) as server:
        connect(limpet, discord, server, "stream = false\n")
        discord.fail("POST", f"/channels/{discord.dm.id}/messages", Fault(after=True, delay=60))
        async with limpet.hub() as hub:
            await discord.wait_login()
            discord.says("well?")
            await discord.wait_sent(1)
            await hub.kill()
        discord.nonce_seconds = 0 if after_minutes else discord.nonce_seconds
        async with limpet.hub():
            await settled(limpet)
            await asyncio.sleep(0.3)
    assert [sent.text for sent in discord.sent] == ["The answer."]
    assert len(server.requests) == 1, "the model is not asked again"


async def test_slash_commands_are_answered_to_who_gave_them(
    limpet: Limpet, discord: DiscordApi, garden: Channel
) -> None:
    async with ModelServer() as server:
        connect(limpet, discord, server)
        async with limpet.hub():
            await discord.until(lambda: bool(discord.commands))
            names = [command["name"] for command in discord.commands]
            assert {"help", "memory", "undo", "new", "compact", "context", "stop", "status", "whoami"} <= set(names)
            discord.chooses("whoami", channel=garden)
            (answer,) = await discord.wait_sent(1)
            assert (answer.private, answer.channel) == (True, garden.id)
            assert "my owner" in answer.text
            discord.chooses("memory", "today")
            answer = (await discord.wait_sent(2))[1]
            assert answer.text == "Nothing was noted today."
        assert server.requests == []


async def test_the_same_answers_in_a_thread_of_its_own(limpet: Limpet, discord: DiscordApi, garden: Channel) -> None:
    """By setting: a thread below the question, which goes on without a mention."""
    async with ModelServer(echo) as server:
        connect(limpet, discord, server, "auto_thread = true\nfollow_threads = true\n")
        async with limpet.hub():
            await discord.wait_login()
            asked = discord.says(f"{NAMED}one", channel=garden)
            (sent,) = await discord.wait_sent(1)
            assert sent.channel == asked
            await discord.until(lambda: discord.sent[0].text == "You said one")
            discord.says("two", channel=discord.channels[asked])
            await discord.wait_sent(2)
            await discord.until(lambda: discord.sent[1].text == "You said two")
            assert discord.sent[1].channel == asked
        assert "You said one" in server.requests[-1].text, "it is one conversation"


async def test_a_channel_is_added_and_looked_at(limpet: Limpet, discord: DiscordApi, garden: Channel) -> None:
    limpet.env["DISCORD_BOT_TOKEN"] = TOKEN
    added = await limpet("channels", "add", "discord", "--set", f"base_url={discord.root}", "--json")
    assert added.code == 0, added.err
    assert added.json["link"].startswith("https://discord.com/oauth2/authorize?client_id=")
    assert TOKEN not in (limpet.home / "limpet.toml").read_text("utf-8")
    discord.application_flags = 0
    looked = await limpet("doctor", "--json")
    assert any("Message Content Intent" in hint["what"] for hint in looked.json["hints"])
    discord.revoked = True
    looked = await limpet("doctor", "--json")
    assert any("401" in problem["what"] and "Reset Token" in problem["what"] for problem in looked.json["problems"])


async def test_the_intent_that_is_off_is_told(limpet: Limpet, discord: DiscordApi) -> None:
    """4014: which it is, and where to switch it on; not a crash, and no endless tries."""
    discord.forbids_content = True
    async with ModelServer() as server:
        connect(limpet, discord, server)
        async with limpet.hub() as hub:
            await hub.until("channel.failed.*Message Content Intent")
            status = await limpet("status")
            assert status.code == 1
            assert "discord.com/developers/applications" in status.out
    assert len(discord.logins) == 1


async def test_the_token_is_nowhere_but_in_the_environment(limpet: Limpet, discord: DiscordApi) -> None:
    """G-OPS-06: not in the log, not in an exception, not on the screen, also when calls fail."""
    async with ModelServer(lambda _: Reply("ok")) as server:
        connect(limpet, discord, server)
        limpet.env["LIMPET_DEBUG"] = "1"
        discord.fail("POST", "/messages", Fault(500, "Internal Server Error"))
        discord.fail("GET", "/gateway/bot", Fault(drop=True), Fault(502))
        async with limpet.hub() as hub:
            await discord.wait_login()
            discord.says("hello")
            await discord.wait_sent(1)
            status = await limpet("status", "--json")
            shown = await limpet("config", "get", "--json")
            await hub.stop()
    files = [path for path in limpet.home.rglob("*") if path.is_file()]
    everything = "".join(hub.log) + status.out + status.err + shown.out + shown.err
    everything += "".join(path.read_bytes().decode("utf-8", "replace") for path in files)
    assert all(piece not in everything for piece in (TOKEN, TOKEN.rpartition(".")[2], TOKEN[-12:]))
