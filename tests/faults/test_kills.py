"""kill -9 at every durable write, and disks that fail there: nothing is lost, doubled or out of order afterwards.

A few moments in each run of the tests, all of them by ``make faults``. G-DLV-06, G-DLV-07, G-DLV-08, G-DLV-21,
G-CMP-22, G-OPS-11, G-OPS-12, G-OPS-13.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.doors import DOORS, Door
from tests.faults.launcher import Action, Plan
from tests.faults.talk import Talk
from tests.flows.conftest import Limpet

SAMPLE = (
    Plan(1, "before", "bot.inbox.put commit"),
    Plan(2, "torn", "transcript._write"),
    Plan(1, "after", "memory.writing._put link"),
    Plan(2, "before", "bot.outbox.write commit"),
)

UNMARKED = SAMPLE[3]
"""A part is sent, and not known to be: tried on every platform, since each settles it in a way of its own."""

FAILURES = (Plan(3, "eio", "limpet.sqlite-wal"), Plan(2, "enospc", "transcript._write"))

SHARDS = 8
"""Tests that share the moments of one action, so that several run at once."""


async def talked(limpet: Limpet, door: Door, plan: Plan) -> bool:
    """Hold the talk and check it; whether the moment of ``plan`` came."""
    seen = limpet.home.parent / "points"
    talk = Talk(limpet, door, replace(plan, seen=str(seen)))
    await talk.run()
    talk.check(notes=2 if plan.action in ("eio", "enospc") else 1)
    return "<<<" in seen.read_text("utf-8")


@pytest.mark.parametrize(
    ("door", "plan"),
    [*(("telegram", plan) for plan in SAMPLE), *((name, UNMARKED) for name in DOORS if name != "telegram")],
    indirect=["door"],
    ids=str,
)
async def test_a_kill_loses_doubles_and_reorders_nothing(limpet: Limpet, door: Door, plan: Plan) -> None:
    assert await talked(limpet, door, plan), "the moment never came: has the write another name now?"


@pytest.mark.parametrize("plan", FAILURES, ids=str)
@pytest.mark.parametrize("door", ["telegram"], indirect=True)
async def test_a_disk_that_fails_once_loses_nothing(limpet: Limpet, door: Door, plan: Plan) -> None:
    assert await talked(limpet, door, plan), "the moment never came: has the write another name now?"


@pytest.mark.parametrize("door", ["telegram"], indirect=True)
async def test_every_kind_of_durable_write_is_among_the_moments(limpet: Limpet, door: Door) -> None:
    """Else the launcher watches something that the program does no more, and all kills pass without one."""
    seen = limpet.home.parent / "points"
    talk = Talk(limpet, door, Plan(seen=str(seen)))
    await talk.run()
    talk.check()
    kinds = Counter(line.split()[1] for line in seen.read_text("utf-8").splitlines())
    assert {"commit", "checkpoint", "flush", "write", "replace", "link"} <= set(kinds)
    names = {line.partition(" ")[0] for line in seen.read_text("utf-8").splitlines()}
    stages = ("bot.inbox.put", "bot.inbox.claim", "bot.inbox.done", "bot.outbox._begin", "bot.outbox.write")
    assert {*stages, "workspaces.transcript._write", "workspaces.memory.history._append"} <= names


@pytest.mark.faults
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("shard", range(1, SHARDS + 1))
@pytest.mark.parametrize(
    ("name", "action"),
    [
        *itertools.product(DOORS, ["before", "after"]),
        *itertools.product(["telegram"], ["torn", "eio", "enospc"]),  # what a disk does is the same for all
    ],
)
async def test_every_moment(tmp_path: Path, name: str, action: Action, shard: int) -> None:
    """Each durable write in its turn, until the talk has no more of them."""
    for number in itertools.count(shard, SHARDS):
        async with DOORS[name]() as door:
            home = Limpet(tmp_path / str(number) / "home")
            home.home.parent.mkdir()
            plan = Plan(number, action, " write " if action == "torn" else "")
            if not await talked(home, door, plan):
                assert number > shard, "there was none at all"
                return
