"""Nothing leaves this machine: the way out refuses other hosts, and no process calls anybody but it."""

from __future__ import annotations

import asyncio
import re
import shutil
from pathlib import Path

import pytest

from tests.fakes.whatsapp_relay.person import Person
from tests.fakes.whatsapp_relay.queries import MEDIA_HOST
from tests.fakes.whatsapp_relay.relay import CHAT_HOST, Relay
from tests.whatsapp.bot import Bot
from tests.whatsapp.conftest import Linked

_ADDRESS = re.compile(r'inet_addr\("([^"]+)"\)|inet_pton\(AF_INET6, "([^"]+)"')


@pytest.mark.parametrize("host", ["example.org:443", "web.whatsapp.com:80", "api.github.com:443"])
async def test_the_proxy_refuses_other_hosts_and_remembers_them(linked: Linked, host: str) -> None:
    async with linked.relay() as relay:
        reader, writer = await asyncio.open_connection("127.0.0.1", relay.proxy.port)
        writer.write(f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert (await reader.readline()).split()[1] == b"403"
        assert relay.proxy.refused == [host]
        writer.close()


async def test_no_system_call_of_a_client_addresses_another_machine(
    relay: Relay, ann: Person, bot: Bot, tmp_path: Path
) -> None:
    """All of its connections and datagrams as the kernel saw them, while it talks and fetches a file."""
    if shutil.which("strace") is None:
        pytest.skip("strace is missing (Debian: apt-get install strace)")
    await bot.stop()
    trace = tmp_path / "calls"
    await bot.start("strace", "-f", "-qq", "-o", str(trace), "-e", "trace=connect,sendto,sendmsg,sendmmsg")
    await ann.say(bot.account.by_phone, "hello?")
    await ann.sees(text="echo: hello?")
    said = await ann.send_file(bot.account.by_phone, "document", b"%PDF-1.4", "tide.pdf")
    await bot.hears("document")
    assert await bot.fetch(said) == b"%PDF-1.4"
    await bot.stop()
    called = {four or six for four, six in _ADDRESS.findall(trace.read_text("utf-8", "replace"))}
    assert called == {"127.0.0.1"}
    assert set(relay.proxy.calls) == {f"{CHAT_HOST}:443", f"{MEDIA_HOST}:443"}
