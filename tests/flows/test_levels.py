"""A person's level is changed beside the running hub: it counts from the very next message on, in a new session."""

from __future__ import annotations

import json

from tests.fakes.model_server import ModelServer, Recorded, Reply
from tests.fakes.telegram_api import ANN, TelegramApi
from tests.flows.conftest import Limpet, connect
from tests.flows.test_telegram import CODE, pair

ACCOUNT = f"telegram:{ANN.id}"


def sessions(limpet: Limpet) -> set[str]:
    """The parts of Ann's sessions that name scope and level."""
    folder = limpet.home / "state" / "agents" / "main" / "sessions"
    heads = [json.loads(path.read_text("utf-8").splitlines()[0]) for path in folder.glob("*.jsonl")]
    return {head["session"].rpartition("/")[2] for head in heads if "telegram" in head["session"]}


async def test_a_guest_becomes_the_owner_and_a_stranger_again(limpet: Limpet, telegram: TelegramApi) -> None:
    def answer(request: Recorded) -> Reply:
        return Reply("You own me." if "canary-home" in request.text else "Hello, guest.")

    async with ModelServer(answer) as server:
        connect(limpet, telegram, server)
        limpet.workspace.mkdir(parents=True)
        (limpet.workspace / "MEMORY.md").write_text("- The word of the house is canary-home.\n")
        async with limpet.hub():
            await pair(limpet, telegram, "--guest")
            telegram.says("who am I?")
            assert (await telegram.wait_sent(2))[-1].text == "Hello, guest."
            promoted = await limpet("pairing", "approve", ACCOUNT, "--owner", "--json")
            assert (promoted.json["was"], promoted.json["level"]) == ("guest", "owner")
            telegram.says("who am I now?")
            assert (await telegram.wait_sent(3))[-1].text == "You own me."
            assert "who am I?" not in server.requests[-1].text, "what was said as a guest is another session"
            assert (await limpet("pairing", "approve", ACCOUNT, "--member")).code == 0
            telegram.says("and now?")
            assert (await telegram.wait_sent(4))[-1].text == "Hello, guest."
            assert sessions(limpet) == {"guest", "owner", "member"}
            assert (await limpet("pairing", "revoke", ACCOUNT)).code == 0
            asked = len(server.requests)
            telegram.says("still there?")
            assert CODE.search((await telegram.wait_sent(5))[-1].text)
            assert len(server.requests) == asked, "a stranger costs no call"
