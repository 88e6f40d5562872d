"""``limpet doctor``: what status finds, and what only a platform can tell."""

from __future__ import annotations

import asyncio

import pytest

from tests.bot.cli.conftest import Limpet
from tests.fakes.telegram_api import TOKEN, Fault, TelegramApi


def telegram(limpet: Limpet, api: TelegramApi, more: str = "") -> None:
    limpet.settings(f'[channels.telegram]\ntoken = "{TOKEN}"\nbase_url = "{api.url}"\n{more}')
    limpet.home.config.chmod(0o600)


def test_an_empty_home_has_no_problem(limpet: Limpet) -> None:
    outcome = limpet("doctor")
    assert (outcome.code, outcome.out, outcome.err) == (0, "No problem was found.\n", "")
    assert list(limpet.home.root.iterdir()) == []


async def test_what_only_the_platform_knows_is_worth_knowing(limpet: Limpet) -> None:
    """Privacy mode is what it may be meant to be: no problem, but told with the way out."""
    async with TelegramApi() as api:
        api.group(-1001)
        telegram(limpet, api, 'groups = ["-1001", "-1009"]\n')
        outcome = await asyncio.to_thread(limpet.process, "doctor", "--json")
        said = await asyncio.to_thread(limpet.process, "doctor")
    assert [problem["what"] for problem in outcome.data["problems"]] == ["no hub is running, so no channel is answered"]
    hints = {hint["what"]: hint["mend"] for hint in outcome.data["hints"]}
    (privacy,) = [what for what in hints if "privacy mode is on" in what]
    assert "/setprivacy" in hints[privacy]
    assert any("-1009" in what and "is not in the group" in what for what in hints)
    assert said.code == outcome.code == 1
    assert "Worth knowing, if it is not meant so:\n  · telegram: privacy mode is on" in said.out


@pytest.mark.parametrize(
    ("fault", "words"),
    [(Fault(401, "Unauthorized"), "is wrong or was revoked"), (Fault(502, body=b"<html>"), "Telegram says 502")],
)
async def test_what_the_platform_refuses_is_a_problem(limpet: Limpet, fault: Fault, words: str) -> None:
    async with TelegramApi() as api:
        api.fail("getMe", fault, times=5)
        telegram(limpet, api)
        outcome = await asyncio.to_thread(limpet.process, "doctor", "--json")
    assert outcome.code == 1
    assert any(words in problem["what"] for problem in outcome.data["problems"])
    assert TOKEN.partition(":")[2] not in str(outcome.data)
