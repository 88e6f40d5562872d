"""What a kill left open is taken up by the next start, which says so in one line, and status shows it afterwards."""

from __future__ import annotations

from tests.fakes.model_server import ModelServer, Reply
from tests.fakes.telegram_api import TelegramApi
from tests.flows.conftest import Limpet, connect


async def test_the_next_start_says_what_it_took_up(limpet: Limpet, telegram: TelegramApi) -> None:
    replies = iter([Reply("never", wait=True), Reply("here I am")])
    async with ModelServer(lambda _: next(replies)) as server:
        connect(limpet, telegram, server, 'owners = ["telegram:7"]')
        (limpet.home / "limpet.toml").chmod(0o600)
        async with limpet.hub() as hub:
            telegram.says("are you there?")
            await server.arrived(1)
            await telegram.wait_confirmed()
            await hub.kill()
        async with limpet.hub() as hub:
            assert "to_answer=1 to_send=0" in await hub.until("hub.recovered")
            assert (await telegram.wait_sent(1))[0].text == "here I am"
            status = await limpet("status")
            assert "recovered 1 turn begun again in the last day\n" in status.out
            assert status.code == 0
        async with limpet.hub() as hub:
            await hub.until("hub.started")
        assert not any("hub.recovered" in line for line in hub.log), "there was nothing to take up"
