"""What a person chooses in a chat: how its messages queue, and which model answers; and what they hear of the cost."""

from __future__ import annotations

from typing import Any

import pytest

from bot.home import Home
from bot.queueing import MODES
from bot.state import State
from tests.bot.conftest import OPEN, Serve
from tests.fakes.adapter import FakeAdapter
from tests.fakes.model_server import ModelServer, Recorded, Reply

OWNED = 'owners = ["telegram:1"]\n'
GROUP = f'{OPEN}groups = ["-5"]\n'
TABLE = '[models.fast]\nmodel = "openai/quick"\nbase_url = "{url}"\n[models.odd]\nmodel = "openai/odd"\n'


def named(request: Recorded) -> Reply:
    """The name of the model that was asked."""
    return Reply(str(request.body["model"]))


async def say(door: FakeAdapter, text: str, sender: str = "1", **more: Any) -> str:
    """The answer to ``text``."""
    number = len(door.sent)
    await door.says(door.message(text, sender=sender, **more))
    return (await door.wait_sent(number + 1))[number].text


@pytest.mark.parametrize("mode", MODES)
async def test_a_queue_is_chosen_for_one_conversation_and_for_good(serve: Serve, door: FakeAdapter, mode: str) -> None:
    async with ModelServer() as server:
        async with serve(server, top=OWNED):
            assert "(/queue steer)" in await say(door, "/queue")
            assert f"(/queue {mode})" in await say(door, f"/queue {mode.upper()}")
        async with serve(server, top=OWNED):
            assert f"(/queue {mode})" in await say(door, "/queue"), "after a restart"
            assert "(/queue steer)" in await say(door, "/queue", sender="2"), "another conversation"
            assert "(/queue steer)" in await say(door, "/queue default")


async def test_a_chosen_queue_holds_at_once(serve: Serve, door: FakeAdapter) -> None:
    def script(request: Recorded) -> Reply:
        return Reply("ok", wait="two" not in request.text)

    async with ModelServer(script) as server, serve(server, f'{OPEN}queue = "followup"\n', top=OWNED):
        await door.says(door.message("one", sender="1"))
        await server.arrived(1)
        assert "(/queue interrupt)" in await say(door, "/queue interrupt")
        assert await say(door, "two") == "ok"


async def test_a_channel_has_its_own_queue(serve: Serve, door: FakeAdapter) -> None:
    top = f'{OWNED}[queue]\nmode = "interrupt"\n'
    async with ModelServer() as server, serve(server, f'{OPEN}queue = "collect"\n', top=top):
        assert "(/queue collect)" in await say(door, "/queue")


@pytest.mark.parametrize(("word", "near"), [("colect", "collect"), ("steeer", "steer"), ("sometimes", "")])
async def test_a_mode_that_there_is_none_of_gets_the_nearest(
    serve: Serve, door: FakeAdapter, word: str, near: str
) -> None:
    async with ModelServer() as server, serve(server, top=OWNED):
        answer = await say(door, f"/queue {word}")
        assert "Say /queue and one of steer, collect, followup, interrupt or default." in answer
        assert (f"Did you mean /queue {near}?" in answer) is bool(near)
        assert "(/queue steer)" in await say(door, "/queue")


async def test_a_guest_in_a_group_chooses_for_nobody(serve: Serve, door: FakeAdapter) -> None:
    group: dict[str, Any] = {"chat": "-5", "kind": "group", "mentions_me": True}
    async with ModelServer(named) as server, serve(server, GROUP, top=OWNED):
        for text in ("/queue collect", "/model fast", "/usage"):
            assert "is not for" in await say(door, text, sender="9", **group)
        assert await say(door, "/usage", **group) == "/usage is not for a group."
    assert server.requests == []


async def test_the_owner_changes_the_model_of_one_conversation(serve: Serve, door: FakeAdapter, home: Home) -> None:
    async with ModelServer(named) as server:
        settings = {"top": OWNED, "models": TABLE.format(url=server.url)}
        async with serve(server, **settings):
            assert await say(door, "well?") == "fake"
            assert await say(door, "/model") == "openai/fake answers here. There are: openai/fake, fast, odd."
            assert await say(door, "/model fast") == "From now on fast answers here. /model default takes that back."
            assert await say(door, "well?") == "quick"
            assert "model: openai/quick" in await say(door, "/status")
            assert "window of openai/quick" in await say(door, "/context")
        async with serve(server, **settings):
            assert await say(door, "well?") == "quick", "after a restart"
            assert await say(door, "well?", sender="2") == "fake", "another conversation"
            assert await say(door, "/model", sender="2") == "openai/fake answers here.", (
                "who else there is is no guest's"
            )
            assert "takes back that you chose fast" in await say(door, "/model")
            assert await say(door, "/new") != ""
            assert await say(door, "well?") == "quick", "also in a new conversation there"
            await say(door, "/model default")
            assert await say(door, "well?") == "fake"
        async with State.open(home.database) as state:
            rows = await state.rows("SELECT DISTINCT model FROM usage ORDER BY model")
        assert rows == [("openai/fake",), ("openai/quick",)], "it is booked"


async def test_the_conversation_goes_on_with_another_model(serve: Serve, door: FakeAdapter) -> None:
    async with ModelServer(named) as server, serve(server, top=OWNED, models=TABLE.format(url=server.url)):
        await say(door, "my dog is called Biscuit")
        await say(door, "/model fast")
        await say(door, "what is it called?")
    assert "Biscuit" in server.requests[-1].text
    assert server.requests[-1].body["model"] == "quick"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("/model fest", "I know no model of that name. There are: openai/fake, fast, odd. Did you mean fast?"),
        ("/model openai/gpt-6.1-terra", "I know no model of that name."),
        ("/model odd", "OPENAI_API_KEY"),
    ],
)
async def test_a_model_that_can_not_be_had_is_not_taken(serve: Serve, door: FakeAdapter, text: str, told: str) -> None:
    async with ModelServer(named) as server, serve(server, top=OWNED, models=TABLE.format(url=server.url)):
        assert told in await say(door, text)
        assert await say(door, "well?") == "fake"


async def test_a_guest_sees_the_model_and_changes_nothing(serve: Serve, door: FakeAdapter) -> None:
    async with ModelServer(named) as server, serve(server, models=TABLE.format(url=server.url)):
        assert await say(door, "/model fast") == "Which model answers is for my owner to choose."
        assert await say(door, "well?") == "fake"


async def test_a_choice_that_is_configured_no_more_is_none(serve: Serve, door: FakeAdapter) -> None:
    async with ModelServer(named) as server:
        async with serve(server, top=OWNED, models=TABLE.format(url=server.url)):
            await say(door, "/model fast")
        async with serve(server, top=OWNED):
            assert await say(door, "well?") == "fake"


async def test_the_usage_of_today_is_for_the_owner(serve: Serve, door: FakeAdapter) -> None:
    top = f"{OWNED}[budget]\ndaily_usd = 2\n"
    models = "price_input = 100\nprice_output = 100\n" + TABLE
    async with ModelServer(named) as server, serve(server, top=top, models=models.format(url=server.url)):
        assert await say(door, "/usage") == "No model was asked today."
        await say(door, "one")
        await say(door, "/model fast")
        await say(door, "two")
        assert await say(door, "/usage") == (
            "• openai/fake: 1 call, 10 tokens in, 5 out, cost $0.0015\n"
            "• openai/quick: 1 call, 10 tokens in, 5 out, cost $0\n\n"
            "Today $0.0015 of $2.00 are spent."
        )
        assert await say(door, "/usage", sender="2") == "/usage is not for a guest here."
