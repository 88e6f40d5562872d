"""The same agent behind Telegram's real protocol: pairing, levels, and one answer whatever happens."""

from __future__ import annotations

import asyncio
import json
import re
import resource
import unicodedata

import pytest

from bot.commands import COMMANDS
from bot.outbox import REPEATED
from tests.fakes.model_server import Call, ModelServer, Recorded, Reply
from tests.fakes.telegram_api import ANN, BOB, TOKEN, Fault, TelegramApi, User
from tests.flows.conftest import SECONDS, Limpet, connect

FACT = "Remember that my dog is called Biscuit"
QUESTION = "What is my dog called?"
CODE = re.compile(r"\b[A-HJKMNP-Z2-9]{8}\b")


def biscuit(request: Recorded) -> Reply:
    return Reply("Your dog is called Biscuit." if "Biscuit" in request.text else "I don't know your dog.")


def noting(request: Recorded) -> Reply:
    """A model that notes with its tool when it is asked to."""
    last = request.messages[-1]
    if last["role"] == "tool":
        return Reply("I'll remember Biscuit.")
    if "Remember that" in last["content"]:
        return Reply(calls=[Call("memory_append", json.dumps({"text": "The dog is called Biscuit."}))])
    return biscuit(request)


async def pair(limpet: Limpet, telegram: TelegramApi, *how: str) -> None:
    """Ann writes, gets her code, and the owner approves it beside the running hub."""
    before = len(telegram.sent)
    telegram.says("hello")
    sent = await telegram.wait_sent(before + 1)
    code = CODE.search(sent[-1].text)
    assert code is not None, sent[-1].text
    approved = await limpet("pairing", "approve", code[0], *how, "--json")
    assert approved.code == 0, approved.err


async def test_a_stranger_gets_a_code_and_nothing_else(limpet: Limpet, telegram: TelegramApi) -> None:
    async with ModelServer() as server:
        connect(limpet, telegram, server)
        async with limpet.hub():
            telegram.says("let me in", user=BOB)
            (sent,) = await telegram.wait_sent(1)
            await telegram.wait_confirmed()
            assert CODE.search(sent.text)
            assert sent.chat == BOB.id
            listed = await limpet("pairing", "list", "--json")
            assert [(w["sender"], w["name"]) for w in listed.json["waiting"]] == [(str(BOB.id), "Bob")]
        assert server.requests == [], "an unknown sender costs no model call"
    assert not list((limpet.home / "state" / "agents").glob("*/sessions/*telegram*"))


async def test_the_owner_is_answered_on_telegram_what_was_told_in_the_terminal(
    limpet: Limpet, telegram: TelegramApi
) -> None:
    """Beside the running hub: `limpet chat` attaches to it, and the note is found from the other door."""

    async with ModelServer(noting) as server:
        connect(limpet, telegram, server)
        async with limpet.hub():
            await pair(limpet, telegram, "--owner")
            told = await limpet("chat", "--once", FACT)
            assert told.out == "I'll remember Biscuit.\n"
            telegram.says(QUESTION)
            sent = await telegram.wait_sent(2)
            assert sent[-1].text == "Your dog is called Biscuit."
            assert telegram.actions, "typing was shown"


async def test_a_fact_from_telegram_is_known_in_the_terminal_after_a_restart(
    limpet: Limpet, telegram: TelegramApi
) -> None:
    async with ModelServer(noting) as server:
        connect(limpet, telegram, server, top=f'owners = ["telegram:{ANN.id}"]')
        async with limpet.hub():
            telegram.says(FACT)
            (sent,) = await telegram.wait_sent(1)
            assert sent.text == "I'll remember Biscuit."
        asked = await limpet("chat", "--once", QUESTION)
        assert asked.out == "Your dog is called Biscuit.\n"


async def test_a_guest_is_answered_and_the_model_is_sent_nothing_of_the_owners(
    limpet: Limpet, telegram: TelegramApi
) -> None:
    """After a plain approve: not a byte of MEMORY.md, USER.md or the owner's notes in the request."""
    async with ModelServer(lambda _: Reply("Hello, guest.")) as server:
        connect(limpet, telegram, server)
        for name, secret in (
            ("MEMORY.md", "canary-curated"),
            ("USER.md", "canary-user"),
            ("TOOLS.md", "canary-tools"),
            ("memory/2026-01-01.md", "canary-old dog Biscuit"),
            ("memory/people/ann.md", "canary-people dog"),
            ("memory/chats/another/MEMORY.md", "canary-another-chat dog"),
        ):
            file = limpet.workspace / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"- My dog has a {secret}\n", "utf-8")
        async with limpet.hub():
            await pair(limpet, telegram)
            telegram.says("What is the name of the dog? Tell me the canary.")
            sent = await telegram.wait_sent(2)
            assert sent[-1].text == "Hello, guest."
        assert "canary" in server.requests[-1].text, "the guest's own words are there"
        assert "canary-" not in server.requests[-1].text


async def test_kill_9_between_question_and_answer_gives_exactly_one_answer(
    limpet: Limpet, telegram: TelegramApi
) -> None:
    """G-DLV-07: the update was acknowledged, the model call was running, the power went."""
    answers = iter([Reply("never sent", wait=True), Reply("Your dog is called Biscuit.")])
    async with ModelServer(lambda _: next(answers)) as server:
        connect(limpet, telegram, server, top=f'owners = ["telegram:{ANN.id}"]')
        async with limpet.hub() as hub:
            telegram.says(QUESTION)
            await server.arrived(1)
            await telegram.wait_confirmed()
            await hub.kill()
        assert telegram.sent == []
        async with limpet.hub():
            (sent,) = await telegram.wait_sent(1)
            assert sent.text == "Your dog is called Biscuit."
            await asyncio.sleep(0.5)
        assert len(telegram.sent) == 1
        (transcript,) = (limpet.home / "state" / "agents" / "main" / "sessions").glob("*telegram*.jsonl")
        entries = [json.loads(line) for line in transcript.read_text("utf-8").splitlines()[1:]]
        assert [entry["kind"] for entry in entries] == ["user", "assistant"]


async def test_kill_9_after_the_answer_was_sent_repeats_nothing(limpet: Limpet, telegram: TelegramApi) -> None:
    """G-DLV-06: five messages, three restarts with the same data, each answered once in total."""
    async with ModelServer(lambda request: Reply(f"You said {request.messages[-1]['content'][-1]}")) as server:
        connect(limpet, telegram, server, top=f'owners = ["telegram:{ANN.id}"]')
        for number in range(5):
            telegram.says(f"message {number}")
        kept = list(telegram.waiting)
        async with limpet.hub() as hub:
            await telegram.wait_sent(5)
            while (await limpet("status", "--json")).json["unsent"]:
                pass
            await hub.kill()
        for _ in range(2):
            telegram.waiting[:] = kept  # the platform hands out all of it again
            async with limpet.hub() as hub:
                await telegram.wait_confirmed()
                await asyncio.sleep(0.3)
                await hub.kill()
    assert [sent.text for sent in telegram.sent] == [f"You said {number}" for number in range(5)]


async def test_kill_9_in_the_middle_of_a_send_sends_once_more_and_says_so(
    limpet: Limpet, telegram: TelegramApi
) -> None:
    """Telegram has no means to settle what may have arrived: it is sent once more, which is said, and never again."""
    async with ModelServer(lambda _: Reply("The answer.")) as server:
        connect(limpet, telegram, server, top=f'owners = ["telegram:{ANN.id}"]')
        telegram.fail("sendMessage", Fault(after=True, delay=60))
        async with limpet.hub() as hub:
            telegram.says("well?")
            await telegram.wait_sent(1)
            await hub.kill()
        async with limpet.hub() as hub:
            await telegram.wait_sent(3)
            await hub.stop()
        async with limpet.hub():
            await asyncio.sleep(0.5)
    assert len(server.requests) == 1, "the model is not asked again"
    assert [message.text for message in telegram.sent] == ["The answer.", REPEATED, "The answer."]


async def test_a_stop_lets_the_running_turn_end_and_its_answer_leave(limpet: Limpet, telegram: TelegramApi) -> None:
    async with ModelServer(lambda _: Reply("In time.", wait=True)) as server:
        connect(limpet, telegram, server, top=f'owners = ["telegram:{ANN.id}"]')
        async with limpet.hub() as hub:
            telegram.says("are you there?")
            await server.arrived(1)
            stopping = asyncio.create_task(hub.stop())
            await asyncio.sleep(0.3)
            server.release()
            assert await stopping == 0
        assert [sent.text for sent in telegram.sent] == ["In time."]


async def test_the_token_is_nowhere_but_in_the_environment(limpet: Limpet, telegram: TelegramApi) -> None:
    """G-OPS-06: not in the log, not in an exception, not on the screen, also when calls fail."""
    async with ModelServer(lambda _: Reply("ok")) as server:
        connect(limpet, telegram, server, top=f'owners = ["telegram:{ANN.id}"]\n')
        limpet.env["LIMPET_DEBUG"] = "1"
        telegram.fail("sendMessage", Fault(status=500, description="Internal Server Error"))
        telegram.fail("getUpdates", Fault(drop=True), Fault(status=502, description="Bad Gateway"))
        async with limpet.hub() as hub:
            telegram.says("hello")
            await telegram.wait_sent(1)
            status = await limpet("status", "--json")
            shown = await limpet("config", "get", "--json")
            await hub.stop()
        everything = "".join(hub.log) + status.out + status.err + shown.out + shown.err
        files = [path for path in limpet.home.rglob("*") if path.is_file()]
        assert files
        everything += "".join(path.read_bytes().decode("utf-8", "replace") for path in files)
    secret = TOKEN.partition(":")[2]
    assert secret not in everything
    assert all(part not in everything for part in (secret[:12], secret[-12:]))


async def test_two_pollers_make_one_clear_message_and_recover(limpet: Limpet, telegram: TelegramApi) -> None:
    """G-OPS-08: 409 backs off, other channels are fine, and it recovers by itself."""
    async with ModelServer(lambda _: Reply("back")) as server:
        connect(limpet, telegram, server, top=f'owners = ["telegram:{ANN.id}"]')
        conflict = Fault(status=409, description="Conflict: terminated by other getUpdates request")
        telegram.fail("getUpdates", conflict, times=2)
        async with limpet.hub() as hub:
            await telegram.wait_called("getUpdates", 2)
            chat = await limpet("chat", "--once", "are you there")
            assert chat.out == "back\n"
            telegram.says("hello")
            await telegram.wait_sent(1, seconds=30)
            conflicts = [line for line in hub.log if "409" in line or "onflict" in line]
        assert len(conflicts) <= 1


async def test_a_second_hub_is_told_the_pid_and_exits_3(limpet: Limpet, telegram: TelegramApi) -> None:
    async with ModelServer() as server:
        connect(limpet, telegram, server)
        async with limpet.hub() as hub:
            second = await limpet("run")
            assert second.code == 3
            assert str(hub.process.pid) in second.err
            assert second.out == ""
        async with limpet.hub():
            pass  # a kill leaves no lock behind


async def test_of_two_hubs_that_start_at_once_one_answers(limpet: Limpet, telegram: TelegramApi) -> None:
    async with ModelServer(lambda _: Reply("Here.")) as server:
        connect(limpet, telegram, server, top=f'owners = ["telegram:{ANN.id}"]')
        both = [await limpet._start("run") for _ in range(2)]
        ends = [asyncio.create_task(process.wait()) for process in both]
        async with asyncio.timeout(SECONDS):
            (first,), _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        loser, winner = both if first is ends[0] else both[::-1]
        _, said = await loser.communicate()
        assert loser.returncode == 3
        assert f"pid {winner.pid}" in said.decode()
        telegram.says("are you there?")
        await telegram.wait_sent(1)
        winner.terminate()
        await winner.communicate()
        assert winner.returncode == 0
    assert len(telegram.sent) == 1


async def test_a_wrong_token_is_refused_before_anything_is_saved(limpet: Limpet, telegram: TelegramApi) -> None:
    limpet.configure("")
    wrong = "123456789:AAWrongWrongWrongWrongWrongWrongBAD"
    limpet.env["TELEGRAM_BOT_TOKEN"] = wrong
    refused = await limpet("channels", "add", "telegram", "--set", f"base_url={telegram.url}")
    assert refused.code == 1
    assert "401" in refused.err
    assert wrong not in refused.err
    assert "telegram" not in (limpet.home / "limpet.toml").read_text("utf-8")
    assert not (limpet.home / ".env").exists()


async def test_a_channel_is_added_after_its_token_was_tried(limpet: Limpet, telegram: TelegramApi) -> None:
    limpet.env["TELEGRAM_BOT_TOKEN"] = TOKEN
    added = await limpet("channels", "add", "telegram", "--set", f"base_url={telegram.url}", "--json")
    assert added.code == 0, added.err
    assert added.json["link"] == "https://t.me/limpet_bot"
    assert TOKEN not in (limpet.home / "limpet.toml").read_text("utf-8")
    listed = await limpet("channels", "list", "--json")
    assert [channel["state"] for channel in listed.json["channels"]] == ["not running"]
    status = await limpet("status")
    assert status.code == 1
    assert "limpet run" in status.out
    removed = await limpet("channels", "remove", "telegram", "--yes")
    assert removed.code == 0
    assert (await limpet("status")).code == 0


@pytest.mark.parametrize("level", ["--owner", "--guest"])
async def test_pairing_works_beside_a_hub_and_shows_the_code_as_it_was_seen(
    limpet: Limpet, telegram: TelegramApi, level: str
) -> None:
    async with ModelServer(lambda _: Reply("welcome")) as server:
        connect(limpet, telegram, server)
        async with limpet.hub():
            await pair(limpet, telegram, level)
            telegram.says("are you there?")
            sent = await telegram.wait_sent(2)
            assert sent[-1].text == "welcome"
            wrong = await limpet("pairing", "approve", "WRONGONE")
            assert wrong.code == 1


GROUP = f'owners = ["telegram:{ANN.id}"]'
OLD, NEW = -42, -1000000000042


@pytest.mark.parametrize("told", [True, False])
async def test_a_group_that_becomes_a_supergroup_during_a_turn_is_answered_where_it_is(
    limpet: Limpet, telegram: TelegramApi, told: bool
) -> None:
    """G-RTE-26: whether Telegram tells us before we answer, or only by refusing."""
    answers = iter([Reply("The roses.", wait=True), Reply("Yes.")])
    async with ModelServer(lambda _: next(answers)) as server:
        connect(limpet, telegram, server, top=GROUP, more=f'groups = ["{OLD}"]\n')
        group = telegram.group(OLD)
        async with limpet.hub():
            telegram.says("@limpet_bot what needs water?", chat=group)
            await server.arrived(1)
            supergroup = telegram.upgrade(group, NEW, told=told)
            await telegram.wait_confirmed()
            server.release()
            await telegram.wait_sent(1)
            telegram.says("@limpet_bot only they?", chat=supergroup)
            sent = await telegram.wait_sent(2)
        assert "what needs water?" in server.requests[-1].text, "it is the same session"
    assert [(message.chat, message.text) for message in sent] == [(NEW, "The roses."), (NEW, "Yes.")]
    assert sent[0].reply_to is None, "the message that it answers has no id there"


async def test_a_group_that_became_a_supergroup_while_we_were_down_is_answered_where_it_is(
    limpet: Limpet, telegram: TelegramApi
) -> None:
    """G-RTE-26, G-DLV-07: the answer was being made, the power went, the group moved."""
    answers = iter([Reply("never sent", wait=True), Reply("The roses.")])
    async with ModelServer(lambda _: next(answers)) as server:
        connect(limpet, telegram, server, top=GROUP, more=f'groups = ["{OLD}"]\n')
        group = telegram.group(OLD)
        async with limpet.hub() as hub:
            telegram.says("@limpet_bot what needs water?", chat=group)
            await server.arrived(1)
            await telegram.wait_confirmed()
            await hub.kill()
        telegram.upgrade(group, NEW)
        async with limpet.hub():
            await telegram.wait_confirmed()
            sent = await telegram.wait_sent(1)
    assert [(message.chat, message.text) for message in sent] == [(NEW, "The roses.")]


async def test_commands_are_answered_by_the_hub_where_they_are_meant_for_it(
    limpet: Limpet, telegram: TelegramApi
) -> None:
    """G-RTE-06: not those for another bot, nor those to nobody in a group."""
    async with ModelServer() as server:
        connect(limpet, telegram, server, top=GROUP, more=f'groups = ["{OLD}"]\n')
        group = telegram.group(OLD)
        async with limpet.hub():
            telegram.says("/start")
            assert "What should I call you?" in (await telegram.wait_sent(1))[0].text
            telegram.says("/help")
            help_ = (await telegram.wait_sent(2))[1]
            assert "/memory today | search WORDS" in help_.text
            telegram.says("Ann")
            assert "Nice to meet you, Ann." in (await telegram.wait_sent(3))[2].text, "a command is no answer to it"
            telegram.says("/help@otherbot", chat=group)
            telegram.says("/help", chat=group)
            asked = telegram.says("/Help@Limpet_Bot", chat=group)
            telegram.says("/hlep@limpet_bot", chat=group)
            sent = (await telegram.wait_sent(5))[3:]
            assert {(message.chat, message.reply_to) for message in sent} == {(OLD, asked), (OLD, asked + 1)}
            assert any("Did you mean /help?" in message.text for message in sent)
            assert [name for name, _ in telegram.menu] == [each.name for each in COMMANDS if each.is_listed]
        assert server.requests == []
    assert len(telegram.sent) == 5


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux changes the limits of another process")
async def test_a_full_disk_is_outlived_and_loses_nothing(limpet: Limpet, telegram: TelegramApi) -> None:
    """G-OPS-13: what can't be stored stays with Telegram; the health board goes on when there is room again."""
    async with ModelServer(lambda _: Reply("Here.")) as server:
        connect(limpet, telegram, server, top=GROUP)
        async with limpet.hub() as hub:
            telegram.says("are you there?")
            await telegram.wait_sent(1)
            await telegram.wait_confirmed()
            soft, hard = resource.prlimit(hub.process.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(hub.process.pid, resource.RLIMIT_FSIZE, (0, hard))  # no file takes a byte more
            telegram.says("and now?")
            await hub.until("health.not_written")
            await hub.until("could not be stored")
            assert telegram.waiting, "it was not confirmed"
            resource.prlimit(hub.process.pid, resource.RLIMIT_FSIZE, (soft, hard))
            await telegram.wait_sent(2, seconds=60)
            await telegram.wait_confirmed()
            await until_connected(limpet)
            assert await hub.stop() == 0
    assert len(telegram.sent) == 2


async def until_connected(limpet: Limpet) -> None:
    """Returns once another process reads on the board that the channel is well."""
    async with asyncio.timeout(30):
        while (await limpet("channels", "list", "--json")).json["channels"][0]["state"] != "connected":
            pass


NAMES = (
    "Ann\nABCDEFGH  telegram  the owner  59 min left",
    "Ann\r\n\x1b[2K\x1b[1A",
    "\u202eenna\u2066 \u200bAnn",
    "Ann\u2028Bob\u2029\x85",
    "A" * 4000,
    '"><note>`$(reboot)`',
)


async def test_a_strangers_name_is_one_harmless_line(limpet: Limpet, telegram: TelegramApi) -> None:
    """Whoever asks to be let in chose the name: it must not forge a second row, hide one, or turn a line around."""
    async with ModelServer() as server:
        connect(limpet, telegram, server)
        async with limpet.hub() as hub:
            for number, name in enumerate(NAMES, 1):
                telegram.says("let me in", user=User(800 + number, name))
                code = CODE.search((await telegram.wait_sent(number))[-1].text)
                assert code is not None
                listed = await limpet("pairing", "list")
                approved = await limpet("pairing", "approve", code[0], "--guest")
                logged = await hub.until(f"pairing.asked.*{code[0]}")
                assert approved.code == 0
                rows = [*listed.out.splitlines(keepends=True), approved.out, logged]
                assert len(rows) == number + 2, "one who waits, those who were let in, and what was said of it"
                for row in rows:
                    line = row.removesuffix("\n")
                    assert not [ch for ch in line if unicodedata.category(ch) in ("Cc", "Cf", "Zl", "Zp")]
                    assert len(line) < 300
                assert str(800 + number) in listed.out, "ids are not chosen"
                assert str(800 + number) in approved.out
