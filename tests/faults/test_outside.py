"""What is outside fails: the network, a name, the model's server, a platform's patience, the clock.

No hub ends for it and none starts anew, nothing is lost, and ``limpet status`` says what is wrong as long as it is.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.loopback import free_port
from tests.fakes.model_server import ModelServer, Recorded, Reply
from tests.fakes.telegram_api import ANN, Fault, TelegramApi
from tests.faults.launcher import Plan
from tests.flows.conftest import SECONDS, Hub, Limpet, connect

OWNER = f'owners = ["telegram:{ANN.id}"]'


def echo(request: Recorded) -> Reply:
    return Reply(f"You said {request.messages[-1]['content'].split()[-1]}.")


async def until_told(limpet: Limpet, words: str | None) -> dict[str, Any]:
    """The status, once a finding has ``words``; None for once there is no finding at all."""
    async with asyncio.timeout(SECONDS):
        while True:
            status: dict[str, Any] = (await limpet("status", "--json")).json
            found = [finding["what"] for finding in status["findings"]]
            if (not found) if words is None else any(words in what for what in found):
                assert all(finding["mend"] for finding in status["findings"])
                return status
            await asyncio.sleep(0.3)  # each look is a process of its own


def is_alive(hub: Hub) -> bool:
    return hub.process.returncode is None and not any("crashed" in line for line in hub.log)


async def test_a_network_that_goes_and_comes_back(limpet: Limpet, telegram: TelegramApi) -> None:
    """G-OPS-16: what was written meanwhile is answered, what was to be sent is sent, and the log is not flooded."""
    async with ModelServer(lambda request: Reply("There you are.", wait=True)) as server:
        connect(limpet, telegram, server, top=OWNER)
        (limpet.home / "limpet.toml").chmod(0o600)
        async with limpet.hub() as hub:
            telegram.says("before it goes")
            await server.arrived(1)
            await telegram.wait_confirmed()
            await telegram.stop()
            server.release()
            await until_told(limpet, "telegram: ")
            telegram.says("while it is gone")
            await telegram.start()
            sent = await telegram.wait_sent(2, seconds=60)
            assert [message.text for message in sent] == ["There you are."] * 2
            await until_told(limpet, None)
            assert is_alive(hub)
            assert len(hub.log) < 40


async def test_a_name_that_leads_nowhere_stops_no_other_channel(limpet: Limpet, telegram: TelegramApi) -> None:
    """DNS is down, or the address is mistyped: the terminal is answered all the same."""
    async with ModelServer(echo) as server:
        connect(limpet, telegram, server, top=OWNER)
        text = (limpet.home / "limpet.toml").read_text("utf-8")
        limpet.configure(text.replace(telegram.url, "http://no-such-host.invalid"))
        (limpet.home / "limpet.toml").chmod(0o600)
        async with limpet.hub() as hub:
            await until_told(limpet, "no-such-host.invalid")
            said = await limpet("chat", "--once", "hello there")
            assert said.out == "You said there.\n"
            assert is_alive(hub)


async def test_a_model_server_that_is_down_is_told_until_it_answers(limpet: Limpet, telegram: TelegramApi) -> None:
    """Whoever asks hears so and can ask again; status has the address that can't be reached."""
    async with ModelServer(echo) as server:
        connect(limpet, telegram, server, top=OWNER)
        text = (limpet.home / "limpet.toml").read_text("utf-8")
        gone = f"http://127.0.0.1:{free_port()}/v1"
        limpet.configure(text.replace(server.url, gone))
        (limpet.home / "limpet.toml").chmod(0o600)
        async with limpet.hub() as hub:
            for number in range(3):
                telegram.says(f"question {number}")
            await telegram.wait_sent(1, seconds=60)
            await until_told(limpet, "openai/fake failed")
            assert is_alive(hub)
            assert await hub.stop() == 0
        limpet.configure(text)
        (limpet.home / "limpet.toml").chmod(0o600)
        async with limpet.hub():
            telegram.says("question 9")
            async with asyncio.timeout(SECONDS):
                while telegram.sent[-1].text != "You said 9.":  # what was not answered before comes first
                    await asyncio.sleep(0.01)
            await until_told(limpet, None)


@pytest.mark.faults
async def test_a_storm_of_429_of_the_model_is_outlived(limpet: Limpet, telegram: TelegramApi) -> None:
    """Some are waited out within the turn; status tells of the rest until an answer comes."""
    storm = 5

    def answer(request: Recorded) -> Reply:
        if len(server.requests) <= storm:
            return Reply(status=429, body={"error": {"message": "slow down"}}, headers={"Retry-After": "0"})
        return echo(request)

    async with ModelServer(answer) as server:
        connect(limpet, telegram, server, top=OWNER)
        (limpet.home / "limpet.toml").chmod(0o600)
        async with limpet.hub() as hub:
            said = 0
            while len(server.requests) <= storm:
                said += 1
                telegram.says(f"question {said}")
                await telegram.wait_sent(said, seconds=60)
            assert telegram.sent[-1].text == f"You said {said}."
            await until_told(limpet, None)
            assert is_alive(hub)


async def test_a_storm_of_429_of_the_platform_loses_and_doubles_no_part(limpet: Limpet, telegram: TelegramApi) -> None:
    """G-SPL-10, G-DLV-20"""
    async with ModelServer(echo) as server:
        connect(limpet, telegram, server, top=OWNER)
        telegram.fail("sendMessage", Fault(429, "Too Many Requests: retry after 0", retry_after=0), times=12)
        telegram.fail("getUpdates", Fault(429, "Too Many Requests: retry after 0", retry_after=0), times=3)
        async with limpet.hub() as hub:
            for number in range(5):
                telegram.says(f"question {number}")
                await telegram.wait_sent(number + 1, seconds=60)
            assert is_alive(hub)
            assert await hub.stop() == 0
    assert [sent.text for sent in telegram.sent] == [f"You said {number}." for number in range(5)]


@pytest.mark.parametrize(
    "jumps",
    [(-400, 800), pytest.param((400, -800), marks=pytest.mark.faults)],
    ids=["back and forth", "forth and back"],
)
async def test_a_clock_that_jumps_changes_no_order_and_repeats_nothing(
    limpet: Limpet, telegram: TelegramApi, tmp_path: Path, jumps: tuple[int, int]
) -> None:
    """By days, while it runs and over a restart. What was stored in the future is said by ``doctor``."""
    wrong, fresh = tmp_path / "clock", tmp_path / "clock.fresh"
    wrong.write_text("0")
    days = 0
    async with ModelServer(echo) as server:
        connect(limpet, telegram, server, top=OWNER)
        limpet.program = Plan(clock=str(wrong)).words()
        said = 0

        async def ask() -> None:
            nonlocal said
            said += 1
            telegram.says(f"question {said}")
            await telegram.wait_sent(said)

        for _ in range(2):
            async with limpet.hub() as hub:
                await ask()
                for jump in jumps:
                    days += jump
                    fresh.write_text(str(days * 86_400))
                    fresh.replace(wrong)  # in one step: the hub reads it all the time
                    await ask()
                    await ask()
                assert is_alive(hub)
                while (await limpet("status", "--json")).json["unsent"]:  # the platform has it before the hub knows
                    await asyncio.sleep(0.1)
                assert await hub.stop() == 0
            jumps = (-jumps[0], -jumps[1])
    assert [sent.text for sent in telegram.sent] == [f"You said {number}." for number in range(1, said + 1)]
    problems = [problem["what"] for problem in (await limpet("doctor", "--json")).json["problems"]]
    assert any("the clock of this machine says" in what for what in problems)
