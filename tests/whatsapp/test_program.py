"""The whole program: an account is linked on the command line, and its agent answers; after kill -9 too."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.fakes.model_server import ModelServer, Recorded, Reply
from tests.fakes.whatsapp_relay.directory import Account
from tests.fakes.whatsapp_relay.person import Person
from tests.fakes.whatsapp_relay.program import log_in, trusting
from tests.fakes.whatsapp_relay.relay import Relay
from tests.flows.conftest import Limpet, limpet
from tests.whatsapp.conftest import ANN

__all__ = ["limpet"]


@pytest.fixture
def account(relay: Relay) -> Account:
    """A phone without any linked device."""
    return relay.directory.open_account("15550000009", "100000000000009", "Limpet")


@pytest.fixture
def configured(relay: Relay, limpet: Limpet, tmp_path: Path) -> Limpet:
    """The program, as it is before this server."""
    limpet.env |= trusting(relay, tmp_path / "trusting")
    return limpet


def _answer(request: Recorded) -> Reply:
    return Reply(f"You said {request.messages[-1]['content'].rpartition('] ')[2]}")


def _settings(relay: Relay, server: ModelServer) -> str:
    return (
        f'owners = ["whatsapp:+{ANN}"]\n[models]\ndefault = "openai/fake"\nbase_url = "{server.url}"\n\n'
        f'[channels.whatsapp]\nproxy_url = "{relay.proxy.url}"\n'
    )


async def test_an_account_is_linked_and_its_agent_answers(
    relay: Relay, ann: Person, configured: Limpet, account: Account
) -> None:
    async with ModelServer(_answer) as server:
        configured.configure(_settings(relay, server))
        await log_in(relay, configured, account)
        session = next(Path(configured.home).rglob("session.db"))
        assert session.stat().st_mode & 0o077 == 0
        async with configured.hub() as hub:
            await relay.until(lambda: relay.online(account))
            said = await ann.say(account.by_phone, "when is high tide")
            answer = await ann.sees(text="You said when is high tide")
            assert answer["sender"] == str(account.named("lid", 1))
            assert relay.said("receipt", account, type="read", id=said)
            await hub.until("part.sent")  # before that it could not know after its death whether it had answered
            await hub.kill()
        await relay.until(lambda: not relay.online(account))
        await ann.say(account.by_phone, "are you back")
        async with configured.hub():
            await ann.sees(text="You said are you back")
            channel = (await configured("status", "--json")).json["channels"][0]
            assert channel["state"] == "connected", channel
        assert len(ann.told("Message", kind="text")) == 2
        assert len(server.requests) == 2
    assert "high tide" not in "".join(str(node) for node in relay.heard)


async def test_an_answer_that_is_ready_while_it_stops_still_leaves(
    relay: Relay, ann: Person, configured: Limpet, account: Account
) -> None:
    replies = iter([Reply("hello"), Reply("good night", wait=True)])
    async with ModelServer(lambda _: next(replies)) as server:
        configured.configure(_settings(relay, server))
        await log_in(relay, configured, account)
        async with configured.hub() as hub:
            await relay.until(lambda: relay.online(account))
            await ann.say(account.by_phone, "are you there")
            await ann.sees(text="hello")
            await ann.say(account.by_phone, "one thing more")
            await server.arrived(2)
            stopping = asyncio.create_task(hub.stop())
            await asyncio.sleep(1)  # it receives no more by then
            server.release()
            assert await stopping == 0
        await ann.sees(text="good night")
