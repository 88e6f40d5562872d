"""The Discord adapter before a referee: a world of Discord written by other people, behind our own gateway and HTTP.

simcord is the truth about servers, channels, messages, their rights and their limits, and about what events look like;
it is what our own world in tests/fakes is measured against. It listens to no socket: that is ours.
"""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import discord
import pytest
from pydantic import SecretStr
from simcord.backend import serializers
from simcord.backend.errors import BackendError
from simcord.backend.state import Backend
from simcord.http import dispatch

from adapters.adapter import Offered
from adapters.discord import DiscordAdapter, DiscordSettings
from adapters.errors import Rejected
from adapters.markdown import parse
from adapters.message import Address, Button, Deleted, Edited, File, Message, Part, Reacted
from tests.adapters.work import Received, running, until
from tests.fakes.discord_api import BOT, TOKEN, DiscordApi
from tests.fakes.discord_api.checks import RefusalError
from tests.fakes.discord_api.rest import Call

T = TypeVar("T")

_OURS = ("/gateway/bot", "/applications/@me")
"""What only a listening server knows."""


class Referee(DiscordApi):
    """``world`` decides on every call, and its events are the gateway's."""

    def __init__(self) -> None:
        super().__init__()
        self.world = Backend()
        del self.world.users[self.world.bot_user.id]
        self.world.bot_user.id = self.world.application_id = BOT.id
        self.world.users[BOT.id] = self.world.bot_user
        self.ann = self.world.make_user("ann")
        self.garden = self.world.create_guild("Garden")
        self.world.add_member(self.garden.id, self.ann.id)
        self.general = self.world.create_channel(self.garden.id, "general")
        self.world.subscribers.append(lambda kind, data: self.dispatch(kind, dict(data)))
        self.guilds = {self.garden.id: self.garden}  # type: ignore[dict-item]  # each world has servers of its own

    def guild_json(self, guild: Any) -> Any:
        return serializers.guild_create_payload(self.world, guild)

    def answer(self, call: Call) -> Any:
        if call.path in _OURS:
            return super().answer(call)
        files = [discord.File(io.BytesIO(data), filename=name) for name, data in call.files.values()]
        try:
            return dispatch(self.world, call.method, call.path, json=call.body, params=call.query, files=files)
        except BackendError as refusal:
            raise RefusalError(refusal.status, refusal.code, refusal.message) from refusal

    def ann_says(self, text: str, **more: Any) -> str:
        return str(self.world.create_message(self.general.id, self.ann.id, text, **more).id)

    @property
    def texts(self) -> list[str]:
        said = self.world.messages[self.general.id].values()
        return [message.content for message in said if message.author_id == BOT.id]


@asynccontextmanager
async def connected(referee: Referee) -> AsyncIterator[tuple[DiscordAdapter, Received]]:
    received = Received()
    adapter = DiscordAdapter("main", DiscordSettings(token=SecretStr(TOKEN), base_url=referee.root))
    adapter.offer([Offered("memory", "what it knows", "[text]"), Offered("stop", "end what runs")])
    async with running(adapter, received.accept):
        await referee.wait_login()
        await until(lambda: adapter.health.state == "connected")
        yield adapter, received
    await adapter.close()


async def heard(received: Received, kind: type[T], number: int = 1) -> T:
    """The ``number``th of its kind, once it is there."""
    await until(lambda: len(received.of(kind)) >= number)
    return received.of(kind)[number - 1]


@pytest.fixture
async def referee() -> AsyncIterator[Referee]:
    async with Referee() as referee:
        yield referee


async def sent_by(adapter: DiscordAdapter, part: Part) -> str:
    """The id of its message."""
    message = (await adapter.send(part, "turn/0")).message_id
    assert message is not None
    return message


async def test_what_is_said_is_understood(referee: Referee) -> None:
    """A message with a mention, an answer to one of ours, an edit, a reaction, a deletion, and one said directly."""
    async with connected(referee) as (adapter, received):
        world, ann = referee.world, referee.ann.id
        asked = referee.ann_says(f"<@{BOT.id}> what **needs** water?")
        first = await heard(received, Message)
        assert (first.id, first.text, first.mentions_me) == (asked, "what **needs** water?", True)
        assert (first.address.chat, first.address.space) == (str(referee.general.id), str(referee.garden.id))
        assert (first.sender.id, first.sender.name, first.address.kind) == (str(ann), "ann", "channel")

        sent = await sent_by(adapter, Part(first.address, parse("The **roses**."), asked))
        reference = {"channel_id": str(referee.general.id), "message_id": sent}
        normal = world.normalize_message_reference(referee.general.id, reference)
        referee.ann_says("when?", reference=normal)
        again = await heard(received, Message, 2)
        assert (again.text, again.reply_to, again.mentions_me) == ("when?", sent, True)

        world.edit_message(referee.general.id, int(asked), {"content": "what needs rain?"})
        assert (await heard(received, Edited)).text == "what needs rain?"
        world.add_reaction(referee.general.id, int(sent), "👍", ann)
        assert (await heard(received, Reacted)).emoji == "👍"
        world.delete_message(referee.general.id, int(asked))
        assert (await heard(received, Deleted)).id == asked

        direct = world.get_dm_channel(ann)
        world.create_message(direct.id, ann, "only between us")
        private = await heard(received, Message, 3)
        assert (private.address.kind, private.address.chat, private.text) == (
            "direct",
            str(direct.id),
            "only between us",
        )


async def test_what_is_sent_is_taken(referee: Referee, tmp_path: Path) -> None:
    """Text, buttons, files, a change, a sign, and what is taken back; the commands of the menu are there."""
    async with connected(referee) as (adapter, received):
        place = Address("discord", "main", str(referee.general.id), "channel", str(referee.garden.id))
        asked = referee.ann_says(f"<@{BOT.id}> hello")
        await heard(received, Message)
        rows = ((Button("Yes", "/yes"), Button("No", "/no")),)
        sent = await sent_by(adapter, Part(place, parse("**Really?** @everyone"), asked, buttons=rows))
        message = referee.world.messages[referee.general.id][int(sent)]
        assert [button["label"] for button in message.components[0]["components"]] == ["Yes", "No"]
        assert message.mention_everyone is False
        await adapter.edit(Part(place, parse("Yes, `really`.")), sent)
        assert referee.texts == ["Yes, `really`."]
        await adapter.react(place, asked, "👀")
        await adapter.typing(place)

        plan = tmp_path / "plan.txt"
        plan.write_bytes(b"water the roses")
        await adapter.send(Part(place, parse("the plan"), files=(File("document", str(plan), "plan.txt"),)), "turn/1")
        (stored,) = [one for one in referee.world.messages[referee.general.id].values() if one.attachments]
        assert stored.attachments[0]["filename"] == "plan.txt"
        await adapter.erase(place, sent)
        assert referee.texts == ["the plan"]
        names = {name for scope in referee.world.commands.values() for name, _ in scope}
        assert names == {"memory", "stop"}


async def test_refusals_are_what_they_say(referee: Referee) -> None:
    async with connected(referee) as (adapter, _):
        nowhere = Address("discord", "main", "123456789012345678", "channel", str(referee.garden.id))
        with pytest.raises(Rejected, match="Unknown Channel"):
            await adapter.send(Part(nowhere, parse("hello")), "turn/0")
        place = Address("discord", "main", str(referee.general.id), "channel", str(referee.garden.id))
        of_ann = referee.ann_says("mine")
        with pytest.raises(Rejected):
            await adapter.edit(Part(place, parse("yours")), of_ann)
        with pytest.raises(Rejected) as gone:
            await adapter.edit(Part(place, parse("hello")), "123456789012345678")
        assert gone.value.gone
