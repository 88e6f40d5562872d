"""Files both ways: their bytes, their limits, and addresses that run out."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.discord import DiscordAdapter
from adapters.errors import Rejected, Unreachable
from adapters.message import File, Message
from tests.adapters.discord.conftest import connected, direct, part
from tests.adapters.work import Received, running, until
from tests.fakes.discord_api import DiscordApi, Fault

DATA = bytes(range(256)) * 40


async def fetched(adapter: DiscordAdapter, ref: str, limit: int = 1 << 20) -> bytes:
    return b"".join([piece async for piece in adapter.fetch(ref, limit)])


async def test_every_kind_of_file_is_had(api: DiscordApi, adapter: DiscordAdapter, received: Received) -> None:
    api.files["71.png"] = b"sticker"
    async with running(adapter, received.accept):
        await connected(adapter)
        voice = api.attachment("voice-message.ogg", DATA, "audio/ogg", duration_secs=3.2, waveform="AA==")
        api.says("", attachments=[voice], flags=1 << 13)
        two = [api.attachment("a.png", b"a", "image/png"), api.attachment("b.txt", b"b", "text/plain")]
        api.says("a", attachments=two)
        api.says("", sticker_items=[{"id": "71", "name": "Wave", "format_type": 1}])
        forwarded = {"content": "", "attachments": [api.attachment("c.pdf", b"c", "application/pdf")]}
        api.says("", message_snapshots=[{"message": forwarded}], message_reference={"type": 1, "channel_id": "1"})
        await until(lambda: len(received.events) == 4)
        files = [file for message in received.of(Message) for file in message.attachments]
        kinds = [file.kind for file in files]
        assert kinds == ["voice", "image", "document", "sticker", "document"]
        for held in api.messages.values():  # in a forward the files are those of the snapshot
            for snapshot in held.get("message_snapshots", ()):
                for one in snapshot["message"]["attachments"]:
                    one["url"] = f"{api.url}/files/{one['id']}?ex=1"
        assert [await fetched(adapter, file.ref) for file in files] == [DATA, b"a", b"b", b"sticker", b"c"]
    assert files[0].seconds == 3.2


async def test_a_ref_outlives_discord_s_address(api: DiscordApi, adapter: DiscordAdapter) -> None:
    """An address is good for a day; after a restart a new one is asked for."""
    file = api.attachment("a.bin", DATA)
    message = api.message("", attachments=[file])
    ref = f"{api.dm.id}/{message['id']}/{file['id']}"
    assert await fetched(adapter, ref) == DATA
    assert "://" not in ref


async def test_what_is_gone_is_refused(api: DiscordApi, adapter: DiscordAdapter) -> None:
    file = api.attachment("a.bin", DATA)
    message = api.message("", attachments=[file])
    ref = f"{api.dm.id}/{message['id']}/{file['id']}"
    with pytest.raises(Rejected, match="no longer in its message"):
        await fetched(adapter, f"{api.dm.id}/{message['id']}/1")
    api.files.clear()
    with pytest.raises(Rejected):
        await fetched(adapter, ref)
    del api.messages[int(message["id"])]
    with pytest.raises(Rejected, match="Unknown Message"):
        await fetched(adapter, ref)


async def test_a_passing_trouble_is_one(api: DiscordApi, adapter: DiscordAdapter) -> None:
    message = api.message("", attachments=[api.attachment("a.bin", DATA)])
    api.fail("GET", message["id"], Fault(503))
    with pytest.raises(Unreachable):
        await fetched(adapter, f"{api.dm.id}/{message['id']}/{message['attachments'][0]['id']}")


async def test_files_of_several_kinds_are_one_message(api: DiscordApi, adapter: DiscordAdapter, tmp_path: Path) -> None:
    files = []
    for name, kind in (("a.png", "image"), ('b é "x".txt', "document"), ("c.ogg", "voice")):
        path = tmp_path / name.replace('"', "")
        path.write_bytes(name.encode())
        files.append(File(kind, str(path), name))  # type: ignore[arg-type]
    receipt = await adapter.send(part(direct(api), "all", files=tuple(files)), "turn/0")
    (sent,) = api.sent
    assert receipt.message_id == str(sent.id)
    assert [name for name, _ in sent.files] == ["a.png", "b é 'x'.txt", "c.ogg"]
    assert [data.decode() for _, data in sent.files] == ["a.png", 'b é "x".txt', "c.ogg"]


async def test_a_file_is_sent_whole_again(api: DiscordApi, adapter: DiscordAdapter, tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(DATA)
    api.fail("POST", "/messages", Fault(503), Fault(drop=True))
    sent = part(direct(api), files=(File("document", str(path), "a.bin"),))
    for _ in range(2):
        with pytest.raises(Unreachable):
            await adapter.send(sent, "turn/0")
    await adapter.send(sent, "turn/0")
    assert api.sent[0].files == [("a.bin", DATA)]
