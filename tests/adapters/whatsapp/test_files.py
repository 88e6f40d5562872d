"""Files: in which form they go out, and that none is taken that is larger than wanted."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adapters.errors import Rejected, Unreachable
from adapters.message import File
from adapters.whatsapp import WhatsAppAdapter
from adapters.whatsapp.content import attachments, opened
from adapters.whatsapp.refusals import of_download
from adapters.whatsapp.uploads import FILE_LIMIT
from adapters.whatsapp.voice import seconds
from tests.adapters.whatsapp.conftest import Open, part
from tests.adapters.work import Received, running, until
from tests.fakes.whatsapp_events import event, update
from tests.fakes.whatsapp_seam import Seam

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
OPUS = (
    b"OggS\x00\x02" + bytes(22) + b"OpusHead" + bytes(60) + b"OggS\x00\x04" + struct.pack("<q", 48_000 * 7) + bytes(20)
)
MP4 = b"\x00\x00\x00\x18ftypisom" + bytes(40)
M4A = b"\x00\x00\x00\x18ftypM4A " + bytes(40)

Lay = Callable[..., File]


@pytest.fixture
def lay(tmp_path: Path) -> Lay:
    def lay(kind: Any, data: bytes, name: str) -> File:
        path = tmp_path / "laid"
        path.write_bytes(data)
        return File(kind, str(path), name)

    return lay


@pytest.fixture(autouse=True)
def no_ffmpeg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)


async def sent(adapter: WhatsAppAdapter, seam: Seam, file: File, text: str = "") -> Any:
    """The message that a file became."""
    async with running(adapter, Received().accept):
        await until(lambda: adapter.health.state == "connected")
        await adapter.send(part(text, None, files=(file,)), "key")
    return seam.sent[-1].body


@pytest.mark.parametrize(
    ("kind", "data", "name", "form", "media_type"),
    [
        ("image", PNG, "a.png", "imageMessage", "image/png"),
        ("image", b"\xff\xd8\xff\xe0" + bytes(40), "a.jpg", "imageMessage", "image/jpeg"),
        ("image", b"RIFF\x00\x00\x00\x00WEBPVP8 ", "sticker.webp", "imageMessage", "image/webp"),
        ("image", b"GIF89a" + bytes(40), "a.gif", "documentMessage", "image/gif"),
        ("image", b"<svg/>", "a.svg", "documentMessage", "image/svg+xml"),
        ("video", MP4, "a.mp4", "videoMessage", "video/mp4"),
        ("video", b"\x1a\x45\xdf\xa3" + bytes(40), "a.webm", "documentMessage", "video/webm"),
        ("audio", b"ID3" + bytes(40), "a.mp3", "audioMessage", "audio/mpeg"),
        ("audio", b"\xff\xfb\x90\x00" + bytes(40), "a.mp3", "audioMessage", "audio/mpeg"),
        ("audio", b"\xff\xf1\x50\x80" + bytes(40), "a.aac", "audioMessage", "audio/aac"),
        ("audio", M4A, "a.m4a", "audioMessage", "audio/mp4"),
        ("audio", b"RIFF\x00\x00\x00\x00WAVEfmt ", "a.wav", "documentMessage", "audio/x-wav"),
        ("document", b"%PDF-1.4", "a b.pdf", "documentMessage", "application/pdf"),
        ("document", b"x", "what", "documentMessage", "application/octet-stream"),
        ("voice", OPUS, "a.ogg", "audioMessage", "audio/ogg; codecs=opus"),
        ("voice", M4A, "a.m4a", "audioMessage", "audio/mp4"),
    ],
)
async def test_a_file_has_the_form_that_is_shown(
    seam: Seam, opened: Open, lay: Lay, kind: str, data: bytes, name: str, form: str, media_type: str
) -> None:
    body = await sent(opened(write_first=True), seam, lay(kind, data, name))
    (field, own) = body.ListFields()[0]
    assert (field.name, own.mimetype) == (form, media_type)
    assert seam.files[own.mediaKey] == data
    if form == "documentMessage":
        assert own.fileName == name
    if form == "audioMessage":
        assert own.PTT is (data == OPUS)


@pytest.mark.parametrize(("kind", "data"), [("audio", b"ID3" + bytes(40)), ("voice", OPUS)])
async def test_words_with_a_sound_are_not_lost(seam: Seam, opened: Open, lay: Lay, kind: str, data: bytes) -> None:
    """WhatsApp shows none below it."""
    body = await sent(opened(write_first=True), seam, lay(kind, data, "a.ogg"), "listen")
    assert (body.documentMessage.caption, body.documentMessage.fileName) == ("listen", "a.ogg")


async def test_a_voice_note_says_how_long_it_is(seam: Seam, opened: Open, lay: Lay) -> None:
    assert seconds(OPUS) == 7
    assert seconds(b"") == 1
    body = await sent(opened(write_first=True), seam, lay("voice", OPUS, "a.ogg"))
    assert body.audioMessage.seconds == 7


async def test_a_missing_ffmpeg_is_told_once(
    seam: Seam, opened: Open, lay: Lay, caplog: pytest.LogCaptureFixture
) -> None:
    adapter, file = opened(write_first=True), lay("voice", M4A, "a.m4a")
    await sent(adapter, seam, file)
    await sent(adapter, seam, file)
    assert caplog.text.count("ffmpeg is missing: install it") == 1


@pytest.mark.parametrize(
    ("program", "is_voice"),
    [("cat > /dev/null; printf 'OggS'", True), ("cat > /dev/null; echo no sound in it >&2; exit 1", False)],
)
async def test_a_voice_note_is_converted_where_ffmpeg_is(
    seam: Seam,
    opened: Open,
    lay: Lay,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    program: str,
    is_voice: bool,
) -> None:
    ffmpeg = tmp_path / "ffmpeg"
    ffmpeg.write_text(f"#!/bin/sh\n{program}\n")
    ffmpeg.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda _: str(ffmpeg))
    body = await sent(opened(write_first=True), seam, lay("voice", M4A, "a.m4a"))
    assert body.audioMessage.PTT is is_voice
    assert ("no sound in it" in caplog.text) is not is_voice


async def test_what_can_not_be_sent_is_refused(seam: Seam, opened: Open, lay: Lay, tmp_path: Path) -> None:
    adapter = opened(write_first=True)
    large = lay("document", b"", "large.bin")
    async with running(adapter, Received().accept):
        await until(lambda: adapter.health.state == "connected")
        with pytest.raises(Rejected, match="is empty"):
            await adapter.send(part("", files=(large,)), "0")
        os.truncate(large.path, FILE_LIMIT + 1)
        with pytest.raises(Rejected, match=f"{FILE_LIMIT} are sent"):
            await adapter.send(part("", files=(large,)), "1")
        with pytest.raises(Rejected, match="can't be read"):
            await adapter.send(part("", files=(File("document", str(tmp_path / "gone"), "gone"),)), "2")
        with pytest.raises(Rejected, match="WhatsApp shows one"):
            await adapter.send(part("", files=(large, large)), "3")
    assert seam.sent == []


async def test_a_file_that_could_not_be_handed_over_may_be_sent_again(seam: Seam, opened: Open, lay: Lay) -> None:
    """Nobody sees it before its message."""
    adapter = opened(write_first=True)
    async with running(adapter, Received().accept):
        await until(lambda: adapter.health.state == "connected")
        seam.vanish()
        with pytest.raises(Unreachable):
            await adapter.send(part("", files=(lay("image", PNG, "a.png"),)), "key")


async def test_a_file_that_says_less_than_it_is_does_not_get_in(seam: Seam, adapter: WhatsAppAdapter) -> None:
    message = seam.file(bytes(1000))
    message["documentMessage"]["fileLength"] = 10
    ref = attachments(opened(event(update(message)).Message))[0].ref
    async with running(adapter, Received().accept):
        await until(lambda: adapter.health.state == "connected")
        with pytest.raises(Rejected, match="1000 bytes"):
            [piece async for piece in adapter.fetch(ref, 100)]


def test_what_is_gone_is_told_from_what_may_come() -> None:
    for said in ("download failed with status code 404", "download failed with status code 410"):
        assert type(of_download(said)) is Rejected
    assert type(of_download("hash of media plaintext doesn't match")) is Rejected
    for said in ("failed to execute request: dial tcp: no such host", "download failed with status code 503"):
        assert type(of_download(said)) is Unreachable
