"""Nothing of one agent, scope or chat is in a byte that another one is sent or can list.

Each audience plants a marker of its own in every store there is: its notes of the day, its MEMORY.md, a file of a
topic, its transcript, a file that it was sent, and the context of its group. Then each of them tries every tool and
command on every place of every other, and all that is sent to a model or to a chat is searched for the others'
markers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest

from adapters.message import Address, Attachment, Message, Sender
from bot.app import Hub
from bot.home import Home
from tests.bot.conftest import OPEN, Serve
from tests.fakes.adapter import FakeAdapter
from tests.fakes.model_server import Call, ModelServer, Recorded, Reply

SETTINGS = """
groups = ["-5", "-6"]
[templates.support]
[[bindings]]
agent = "garden"
channel = "telegram"
chat = "-6"
[[bindings]]
template = "support"
per = "sender"
channel = "telegram"
sender = "20"
[[bindings]]
template = "support"
per = "sender"
channel = "telegram"
sender = "21"
[agents.garden]
"""


@dataclass(frozen=True)
class Audience:
    """Who speaks where, and where its notes lie: ``agent`` and the folder of its scope in that agent's workspace."""

    name: str
    sender: str
    chat: str
    agent: str
    folder: str

    @property
    def marker(self) -> str:
        return f"marker-{self.name}-zebra"

    @property
    def address(self) -> Address:
        kind = "group" if self.chat.startswith("-") else "direct"
        return Address("telegram", "telegram", self.chat, "group" if kind == "group" else "direct")


def guests(channel: str) -> str:
    return f"memory/chats/telegram_2f{channel}"


AUDIENCES = (
    Audience("owner", "1", "1", "main", ""),
    Audience("guest", "7", "7", "main", f"{guests('direct')}_2f7/"),
    Audience("other", "8", "8", "main", f"{guests('direct')}_2f8/"),
    Audience("group", "9", "-5", "main", f"{guests('_2f-5')}/"),
    Audience("garden", "9", "-6", "garden", f"{guests('_2f-6')}/"),
    Audience("made", "20", "20", "support/telegram/telegram/direct/20", ""),
    Audience("twin", "21", "21", "support/telegram/telegram/direct/21", ""),
)


def said(audience: Audience, number: int, text: str, **more: object) -> Message:
    return Message(
        f"{audience.name}-{number}",
        audience.address,
        Sender(audience.sender, audience.name.title()),
        text,
        datetime(2026, 11, 30, 12, 0, number % 60, tzinfo=UTC),
        mentions_me=True,
        **more,  # type: ignore[arg-type]
    )


def plant(home: Home, audience: Audience) -> None:
    root = home.workspace(audience.agent) / audience.folder
    (root / "memory" / "topics").mkdir(parents=True, exist_ok=True)
    (root / "topics").mkdir(parents=True, exist_ok=True)
    for path in ("MEMORY.md", "memory/topics/locker.md", "topics/locker.md", "memory/2026-01-05.md", "2026-01-05.md"):
        file = root / path
        file.write_text(f"- The locker code is {audience.marker}.\n", "utf-8")


def places(audience: Audience) -> list[str]:
    """Every path at which a file of ``audience`` can be named, also by ways that are closed."""
    inside = [f"{audience.folder}{path}" for path in ("MEMORY.md", "memory/topics/locker.md", "topics/locker.md")]
    up = "../" * 3 + f"workspaces/{audience.agent.replace('/', '_2f')}/{inside[0]}"
    return [*inside, up, f"./{inside[0]}", inside[0].upper(), audience.folder or "memory"]


def attempts(everyone: Sequence[Audience]) -> list[Call]:
    """Every tool, on every place of everyone."""
    calls = [
        Call("memory_search", json.dumps({"query": "locker code marker zebra", "limit": 20})),
        Call("memory_search", json.dumps({"query": "locker code marker zebra", "scope": "all"})),
        Call("grep", json.dumps({"text": "zebra"})),
        Call("list", json.dumps({"path": "", "deep": True})),
    ]
    for path in [path for one in everyone for path in places(one)]:
        calls += [
            Call("memory_get", json.dumps({"path": path})),
            Call("read", json.dumps({"path": path})),
            Call("grep", json.dumps({"text": "zebra", "path": path})),
            Call("list", json.dumps({"path": path, "deep": True})),
            Call("send_file", json.dumps({"path": path})),
        ]
    return [replace(call, id=f"call-{number}") for number, call in enumerate(calls)]


def asker(request: Recorded) -> str:
    """Who asks: the last one who said "I am …" in the request."""
    words = json.dumps(request.messages)
    found: list[str] = re.findall(r"I am (\w+)\.", words)
    assert found, words[-300:]
    return found[-1]


async def exchange(hub: Hub, door: FakeAdapter, message: Message) -> None:
    await door.says(message)
    await hub.idle()


async def test_no_marker_reaches_another(serve: Serve, door: FakeAdapter, home: Home) -> None:
    probing = False

    def script(request: Recorded) -> Reply:
        last = request.messages[-1]
        if last["role"] == "tool":
            return Reply("done")
        if "Note the code" in str(last["content"]):
            marker = next(one.marker for one in AUDIENCES if one.name == asker(request))
            return Reply(calls=[Call("memory_append", json.dumps({"text": f"The locker code is {marker}."}))])
        if probing and "Try all" in str(last["content"]):
            return Reply(calls=attempts(AUDIENCES))
        return Reply("done")

    async with ModelServer(script) as server, serve(server, OPEN + SETTINGS, 'owners = ["telegram:1"]') as hub:
        for one in AUDIENCES:
            door.files[f"file-{one.name}"] = one.marker.encode()
            note = said(one, 1, f"I am {one.name}. Note the code: {one.marker}")
            file = Attachment(
                "document",
                ref=f"file-{one.name}",
                name=f"{one.marker}.txt",
                size=len(one.marker),
                media_type="text/plain",
            )
            await exchange(hub, door, replace(note, attachments=(file,)))
            plant(home, one)
            if one.chat.startswith("-"):
                heard = replace(said(one, 2, f"I am {one.name}. Between us: {one.marker}"), mentions_me=False)
                await exchange(hub, door, heard)
        planted = len(server.requests)
        assert planted >= 2 * len(AUDIENCES)

        probing = True
        for one in AUDIENCES:
            before = len(server.requests)
            await exchange(hub, door, said(one, 3, f"I am {one.name}. Try all."))
            for number, words in enumerate(
                ("/memory search zebra", "/memory today", "/context", "/status", "/usage", "/help")
            ):
                await exchange(hub, door, said(one, 10 + number, words))
            assert len(server.requests) >= before + 2, "it tried"

    markers = {one.name: one.marker for one in AUDIENCES}
    for request in server.requests:
        own = asker(request)
        text = json.dumps(request.body)
        reached = {name for name, marker in markers.items() if marker in text and name != own}
        allowed = {"guest", "other", "group"} if own == "owner" and request.messages[-1]["role"] == "tool" else set()
        assert reached <= allowed, f"{own} was shown what is {reached}'s"
        assert markers[own] in text or "Note the code" in text, "its own it is shown"
    for sent in door.sent:
        reader = next(one.name for one in AUDIENCES if one.address == sent.part.address)
        text = sent.text + repr(sent.part.files) + b" ".join(sent.data).decode("utf-8", "replace")
        reached = {name for name, marker in markers.items() if marker in text and name != reader}
        assert not reached, f"{reader} was sent what is {reached}'s"


async def test_the_owner_sees_others_only_by_asking_and_fenced_as_theirs(
    serve: Serve, door: FakeAdapter, home: Home
) -> None:
    owner, guest = AUDIENCES[0], AUDIENCES[1]

    def script(request: Recorded) -> Reply:
        if request.messages[-1]["role"] == "tool":
            return Reply("done")
        if "in all chats" in str(request.messages[-1]["content"]):
            return Reply(calls=[Call("memory_search", json.dumps({"query": "locker code", "scope": "all"}))])
        return Reply("done")

    async with ModelServer(script) as server, serve(server, OPEN, 'owners = ["telegram:1"]') as hub:
        await exchange(hub, door, said(guest, 1, "hi"))
        plant(home, guest)
        await exchange(hub, door, said(owner, 1, "What is the locker code?"))
        assert guest.marker not in json.dumps(server.requests[-1].body)
        await exchange(hub, door, said(owner, 2, "And in all chats?"))
        found = server.requests[-1].messages[-1]["content"]
        assert guest.marker in found
        assert re.search(rf"<note [^>]*memory/chats/[^>]*>[^<]*{guest.marker}", found), "quoted, with its place"


@pytest.mark.parametrize("store", ["inbox", "outbox", "heard", "usage", "choices"])
async def test_no_store_of_the_hub_keeps_what_was_said(serve: Serve, door: FakeAdapter, home: Home, store: str) -> None:
    """The transcript is the only copy: a database that is read by an operator holds no conversation for ever."""
    from bot.state import State

    async with (
        ModelServer(lambda _: Reply("an answer with marker-zebra")) as server,
        serve(server, OPEN, 'owners = ["telegram:1"]') as hub,
    ):
        await exchange(hub, door, said(AUDIENCES[0], 1, "Keep marker-zebra to yourself"))
        async with State.open(home.database) as state:
            rows = await state.rows(f"SELECT * FROM {store}")
    assert "marker-zebra" not in repr([tuple(row) for row in rows])
