"""What a turn costs the database stays the same, however much was said before."""

from __future__ import annotations

import asyncio

from bot.home import Home
from tests.bot.conftest import Serve
from tests.fakes.adapter import FakeAdapter
from tests.fakes.model_server import ModelServer, Reply
from workspaces.database import connect


async def test_no_statement_of_a_turn_looks_through_all_that_was_ever_said(
    serve: Serve, door: FakeAdapter, home: Home
) -> None:
    said: list[str] = []
    async with ModelServer(lambda _: Reply("Hello.")) as server, serve(server) as hub:
        await door.says(door.message("first"))
        await door.wait_sent(1)
        await hub.idle()
        for connection in (hub._state._reader, hub._state._writer):
            connection.set_trace_callback(said.append)
        await asyncio.gather(*(door.says(door.message("Hi", sender=str(number))) for number in range(3)))
        await door.wait_sent(4)
        await hub.idle()
        for connection in (hub._state._reader, hub._state._writer):
            connection.set_trace_callback(None)
    database = connect(home.database)
    statements = [sql for sql in said if sql.split()[0] in ("SELECT", "INSERT", "UPDATE", "DELETE")]
    assert len(statements) > 30
    scans = {
        sql.partition("'")[0]: step
        for sql in statements
        for *_, step in database.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()
        if step.startswith(("SCAN inbox", "SCAN outbox")) and "_open" not in step
    }
    database.close()
    assert scans == {}
