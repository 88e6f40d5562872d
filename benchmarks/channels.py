"""All doors at once: ``python -m benchmarks.channels [--seconds 30] [--rounds 5] [--json]``.

One ``limpet run`` answers in Telegram, Discord, Slack, WhatsApp and the terminal, each by its real library at a server
on loopback, with the lean model client. What it costs until every channel is connected, while nobody says anything, and
while somebody talks in all five at the same time. Memory and CPU are those of the process and of all that it started.
Needs Linux on x86-64: the WhatsApp server is of no use elsewhere.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fakes import discord_api, slack_api, telegram_api
from tests.fakes.discord_api import DiscordApi
from tests.fakes.model_server import ModelServer, Reply
from tests.fakes.slack_api import SlackApi
from tests.fakes.telegram_api import TelegramApi
from tests.fakes.whatsapp_relay.directory import Account, Directory
from tests.fakes.whatsapp_relay.library import unsupported
from tests.fakes.whatsapp_relay.person import Person
from tests.fakes.whatsapp_relay.program import log_in, trusting, words_of_library
from tests.fakes.whatsapp_relay.relay import Relay
from tests.fakes.whatsapp_relay.trust import new_trust
from tests.flows.conftest import Hub, Limpet

CALM_SECONDS = 10.0
"""What is left over from the start is done by then."""

SAMPLE_SECONDS = 0.05
_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGESIZE")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0, help="how long nobody says anything")
    parser.add_argument("--rounds", type=int, default=5, help="how often somebody talks in all of them")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    chosen = parser.parse_args()
    if reason := unsupported():
        sys.exit(f"the WhatsApp server can't be used here: {reason}")
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measured(Path(folder), chosen.seconds, chosen.rounds))
    found["load"] = os.getloadavg()[0]
    print(json.dumps({"schema": 1, **found}, indent=2) if chosen.json else table(found))


def table(found: dict[str, float]) -> str:
    rows = [
        ("CPU until all are connected, s", f"{found['ready_cpu']:.2f}"),
        ("… of it the process of WhatsApp", f"{found['ready_cpu_children']:.2f}"),
        ("idle: resident, MiB", f"{found['idle_rss']:.0f}"),
        ("… of it the process of WhatsApp", f"{found['idle_rss_children']:.0f}"),
        ("… shared pages counted once (PSS)", f"{found['idle_pss']:.0f}"),
        ("idle: share of a core, %", f"{found['idle_share']:.2f}"),
        ("answering in all five: resident at most, MiB", f"{found['busy_rss']:.0f}"),
        ("… CPU for a round, ms", f"{found['busy_cpu']:.0f}"),
        ("… until the last has its answer, ms", f"{found['busy_wall']:.0f}"),
    ]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


@dataclass
class Doors:
    telegram: TelegramApi
    discord: DiscordApi
    slack: SlackApi
    ann: Person
    bot: Account
    limpet: Limpet

    async def ask(self, number: int) -> None:
        """The same in all of them, at once; returns when the last answer is there."""
        text = f"What needs water on day {number}?"
        self.telegram.says(text)
        self.discord.says(text)
        self.slack.says(text)
        await asyncio.gather(
            self.telegram.wait_sent(number, 60),
            self.discord.wait_sent(number, 60),
            self.slack.wait_sent(number, 60),
            self._whatsapp(text, number),
            self._terminal(text),
        )

    async def _whatsapp(self, text: str, number: int) -> None:
        await self.ann.say(self.bot.by_phone, text)
        await self.ann.until("Message", number, kind="text")

    async def _terminal(self, text: str) -> None:
        done = await self.limpet("chat", "--once", text)
        if done.code:
            sys.exit(f"the terminal had no answer: {done.err}")


async def measured(folder: Path, seconds: float, rounds: int) -> dict[str, float]:
    async with opened(folder) as doors, doors.limpet.hub() as hub:
        pid = hub.process.pid
        print("connecting …", file=sys.stderr)
        await connected(doors.limpet)
        ready, ready_children = cpu(pid), sum(cpu(child) for child in children(pid))
        await asyncio.sleep(CALM_SECONDS)
        print(f"{seconds:.0f} s of silence …", file=sys.stderr)
        before = tree_cpu(pid)
        await asyncio.sleep(seconds)
        share = (tree_cpu(pid) - before) / seconds * 100
        idle = {
            "idle_rss": tree(pid, rss),
            "idle_rss_children": sum(rss(child) for child in children(pid)),
            "idle_pss": tree(pid, pss),
        }
        print("talking …", file=sys.stderr)
        busy = await talked(doors, hub, rounds)
    return {
        "ready_cpu": ready + ready_children,
        "ready_cpu_children": ready_children,
        **idle,
        "idle_share": share,
        **busy,
    }


async def talked(doors: Doors, hub: Hub, rounds: int) -> dict[str, float]:
    pid = hub.process.pid
    most = 0.0

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, tree(pid, rss))
            await asyncio.sleep(SAMPLE_SECONDS)

    watching = asyncio.create_task(watch())
    cpus, walls = [], []
    for number in range(1, rounds + 1):
        used, begin = tree_cpu(pid), time.perf_counter()
        await doors.ask(number)
        walls.append(time.perf_counter() - begin)
        await asyncio.sleep(1)
        cpus.append(tree_cpu(pid) - used)
    watching.cancel()
    return {"busy_rss": most, "busy_cpu": 1e3 * sum(cpus) / rounds, "busy_wall": 1e3 * sum(walls) / rounds}


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Doors]:
    """The servers, Ann at hers, and a home that knows all of them."""
    directory = Directory()
    bot = directory.open_account("15550000001", "100000000000001", "Limpet")
    person = directory.open_account("15550000002", "100000000000002", "Ann")
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(ModelServer(lambda _: Reply("The roses, today.")))
        telegram = await stack.enter_async_context(TelegramApi())
        discord = await stack.enter_async_context(DiscordApi())
        slack = await stack.enter_async_context(SlackApi())
        relay = await stack.enter_async_context(Relay(new_trust(folder), words_of_library(), directory))
        limpet = Limpet(folder / "home")
        limpet.configure(settings(model, telegram, discord, slack, relay, person))
        limpet.env |= {
            "TELEGRAM_BOT_TOKEN": telegram_api.TOKEN,
            "DISCORD_BOT_TOKEN": discord_api.TOKEN,
            "SLACK_BOT_TOKEN": slack_api.TOKEN,
            "SLACK_APP_TOKEN": slack_api.APP_TOKEN,
            **trusting(relay, folder / "trusting"),
        }
        print("linking WhatsApp …", file=sys.stderr)
        await log_in(relay, limpet, bot)
        ann = Person(relay, person, folder / "ann")
        stack.push_async_callback(ann.kill)
        await ann.start()
        await ann.link()
        yield Doors(telegram, discord, slack, ann, bot, limpet)


def settings(
    model: ModelServer, telegram: TelegramApi, discord: DiscordApi, slack: SlackApi, relay: Relay, ann: Account
) -> str:
    owners = [
        f"telegram:{telegram_api.ANN.id}",
        f"discord:{discord_api.ANN.id}",
        f"slack:{slack_api.ANN.id}",
        f"whatsapp:+{ann.phone}",
    ]
    return (
        f"owners = {json.dumps(owners)}\n\n"
        f'[models]\ndefault = "openai/fake"\nbase_url = "{model.url}"\n\n'
        f'[channels.telegram]\nbase_url = "{telegram.url}"\nstream = false\n\n'
        f'[channels.discord]\nbase_url = "{discord.root}"\nstream = false\n\n'
        f'[channels.slack]\nbase_url = "{slack.base_url}"\nstream = false\n\n'
        f'[channels.whatsapp]\nproxy_url = "{relay.proxy.url}"\n'
    )


async def connected(limpet: Limpet) -> None:
    """Returns once every channel is."""
    while True:
        channels: list[dict[str, Any]] = (await limpet("status", "--json")).json["channels"]
        states = {channel["state"] for channel in channels}
        if states == {"connected"} and len(channels) == 4:
            return
        if "failed" in states:
            sys.exit(f"a channel failed: {channels}")
        await asyncio.sleep(0.2)


# Processes


def children(pid: int) -> list[int]:
    """All below ``pid``."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (thread / "children").read_text().split()):
            found += [child, *children(child)]
    return found


def tree(pid: int, measure: Any) -> float:
    return float(sum(measure(one) for one in (pid, *children(pid))))


def tree_cpu(pid: int) -> float:
    return tree(pid, cpu)


def cpu(pid: int) -> float:
    """Seconds, with those of the children that ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICK


def rss(pid: int) -> float:
    """MiB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE / 2**20


def pss(pid: int) -> float:
    """MiB; a page that several processes share counts for each by its part."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 2**10


if __name__ == "__main__":
    main()
