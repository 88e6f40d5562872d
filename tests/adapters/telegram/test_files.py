"""Files out: the form each takes, what Telegram would refuse, albums, voice notes, and what an upload costs."""

from __future__ import annotations

import asyncio
import gc
import io
import os
import tracemalloc
from pathlib import Path

import pytest

from adapters.adapter import Adapter
from adapters.errors import Ambiguous, RateLimited, Rejected, Unreachable
from adapters.markdown import parse
from adapters.message import Address, Button, File, Part
from adapters.telegram import TelegramAdapter, pictures, uploads
from adapters.text import FormattedText
from tests.adapters.telegram import samples
from tests.fakes.telegram_api import ANN, Fault, TelegramApi

ANN_CHAT = Address("telegram", "main", "7", "direct")


@pytest.fixture(autouse=True)
def _ann_has_written(api: TelegramApi) -> None:
    api.message(ANN, text="hello")


@pytest.fixture(autouse=True)
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place that programs are found in: no ffmpeg, unless a test puts one there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def files(folder: Path, *given: tuple[str, str, bytes]) -> tuple[File, ...]:
    """Of kind, name and content."""
    made = []
    for kind, name, content in given:
        (folder / name).write_bytes(content)
        made.append(File(kind, str(folder / name), name))  # type: ignore[arg-type]  # the tests name real kinds
    return tuple(made)


def part(attached: tuple[File, ...], caption: str = "", buttons: tuple[tuple[Button, ...], ...] = ()) -> Part:
    return Part(ANN_CHAT, parse(caption), files=attached, buttons=buttons)


@pytest.mark.parametrize(
    ("kind", "name", "content", "shown"),
    [
        ("image", "a.png", samples.png(), "photo"),
        ("image", "a.jpg", samples.jpeg(), "photo"),
        ("image", "camera.jpg", samples.jpeg(preview=60_000), "photo"),
        ("image", "a.webp", samples.webp(), "photo"),
        ("image", "edge.png", samples.png(9_500, 500), "photo"),
        ("image", "10 MB.png", samples.png(size=10 << 20), "photo"),
        ("image", "more than 10 MB.png", samples.png(size=(10 << 20) + 1), "document"),
        ("image", "too large.png", samples.png(9_501, 500), "document"),
        ("image", "too long.png", samples.png(4_001, 200), "document"),
        ("image", "moving.gif", samples.GIF, "document"),
        ("image", "no picture.png", b"hello", "document"),
        ("image", "cut off.jpg", samples.jpeg()[:8], "document"),
        ("image", "flat.png", samples.png(0, 5), "document"),
        ("video", "a.mp4", samples.MP4, "video"),
        ("video", "a.webm", samples.WEBM, "document"),
        ("audio", "a.mp3", samples.MP3, "audio"),
        ("voice", "a.ogg", samples.OPUS, "voice"),
        ("voice", "a.mp3", samples.MP3, "voice"),
        ("voice", "bare.mp3", samples.BARE_MP3, "voice"),
        ("voice", "a.m4a", samples.M4A, "voice"),
        ("voice", "a.wav", samples.WAV, "audio"),
        ("voice", "vorbis.ogg", samples.VORBIS, "audio"),
        ("voice", "video.mp4", samples.MP4, "audio"),
        ("document", "a.pdf", samples.PDF, "document"),
        ("document", "a.png", samples.png(), "document"),
    ],
)
async def test_each_file_is_shown_in_the_best_form_it_can_take(
    api: TelegramApi, adapter: TelegramAdapter, folder: Path, kind: str, name: str, content: bytes, shown: str
) -> None:
    receipt = await adapter.send(part(files(folder, (kind, name, content)), "**look**"), "key")
    (sent,) = api.sent
    assert receipt.message_id == str(sent.id)
    assert (sent.kind, sent.text, sent.entities[0]["type"]) == (shown, "look", "bold")
    assert (sent.file.name, sent.file.data == content) == (name, True)


@pytest.mark.parametrize(
    ("picture", "size"),
    [
        (samples.png(123, 457), (123, 457)),
        (samples.jpeg(123, 457), (123, 457)),
        (samples.jpeg(123, 457, preview=65_000), (123, 457)),
        (samples.webp(b"VP8X", 123, 457), (123, 457)),
        (samples.webp(b"VP8L", 123, 457), (123, 457)),
        (samples.webp(b"VP8 ", 123, 457), (123, 457)),
        (samples.webp(b"ALPH"), None),
        (samples.GIF, None),
        (b"", None),
    ],
)
def test_the_size_of_a_picture(picture: bytes, size: tuple[int, int] | None) -> None:
    assert pictures.size(io.BytesIO(picture)) == size


@pytest.mark.parametrize("picture", [samples.png(), samples.jpeg(preview=50), samples.webp(), samples.webp(b"VP8L")])
def test_a_picture_that_is_cut_off_has_none(picture: bytes) -> None:
    for length in range(len(picture)):
        pictures.size(io.BytesIO(picture[:length]))
    assert pictures.size(io.BytesIO(picture[:20])) is None


async def test_a_name_in_any_script_arrives(api: TelegramApi, adapter: TelegramAdapter, folder: Path) -> None:
    names = ["Bericht März.pdf", "報告 «1».pdf", "it's.pdf", "👋.pdf"]
    for name in names:
        await adapter.send(part(files(folder, ("document", name, samples.PDF))), "key")
    assert [sent.file.name for sent in api.sent] == names
    (odd,) = files(folder, ("document", "odd.pdf", samples.PDF))
    await adapter.send(part((File("document", odd.path, 'a "b"\\c\nd.pdf'),)), "key")
    assert api.sent[-1].file.name == "a 'b'_c d.pdf"


async def test_a_video_that_telegram_puts_off_has_no_id(
    api: TelegramApi, adapter: TelegramAdapter, folder: Path
) -> None:
    late = b'{"ok":true,"result":{"message_id":0,"date":1,"chat":{"id":7,"type":"private"}}}'
    api.fail("sendVideo", Fault(200, body=late))
    receipt = await adapter.send(part(files(folder, ("video", "a.mp4", samples.MP4))), "key")
    assert receipt.message_id is None


async def test_a_file_that_is_gone_is_refused_without_a_call(
    api: TelegramApi, adapter: TelegramAdapter, folder: Path
) -> None:
    attached = files(folder, ("image", "a.png", samples.png()))
    (folder / "a.png").unlink()
    with pytest.raises(Rejected, match=r"a\.png can't be read"):
        await adapter.send(part(attached), "key")
    assert not api.calls


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([("document", "a.txt", b"")], "a.txt is empty"),
        ([("voice", "a.ogg", samples.OPUS), ("voice", "b.ogg", samples.OPUS)], "no voice notes"),
        ([("audio", "a.mp3", samples.MP3), ("document", "b.pdf", samples.PDF)], "Send them apart"),
        ([("image", "a.png", samples.png()), ("audio", "b.mp3", samples.MP3)], "an album of audio, image"),
        ([("image", "a.png", samples.png()), ("document", "b.pdf", samples.PDF)], "an album of document, image"),
        ([("document", f"{n}.pdf", samples.PDF) for n in range(11)], "album of 11 files: Telegram takes 10"),
    ],
)
async def test_what_telegram_would_take_in_no_form_is_refused_without_a_call(
    api: TelegramApi, adapter: TelegramAdapter, folder: Path, given: list[tuple[str, str, bytes]], says: str
) -> None:
    with pytest.raises(Rejected, match=says):
        await adapter.send(part(files(folder, *given)), "key")
    assert not api.calls


async def test_a_file_may_have_50_mb_and_no_more(
    api: TelegramApi, adapter: TelegramAdapter, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is read while it is sent: an upload costs no memory."""
    assert adapter.capabilities.file_limit == 50 << 20
    largest = folder / "large.bin"
    with largest.open("wb") as file:
        file.write(b"head")
        file.truncate(50 << 20)
    content = File("document", str(largest), "large.bin")
    api.fail(
        "sendDocument",
        Fault(200, body=b'{"ok":true,"result":{"message_id":5,"date":1,"chat":{"id":7,"type":"private"}}}'),
    )
    gc.collect()
    tracemalloc.start()
    async with uploads.opened([content], adapter._converter) as opened:
        assert opened[0].content.read(4) == b"head"
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20
    assert (await adapter.send(part((content,)), "key")).message_id == "5"
    with largest.open("ab") as file:
        file.write(b"x")
    with pytest.raises(Rejected, match=f"a Telegram bot may send {50 << 20}"):
        await adapter.send(part((content,)), "key")
    assert len(api.calls) == 1


async def test_a_caption_has_its_own_limit(api: TelegramApi, adapter: TelegramAdapter, folder: Path) -> None:
    """G-SPL-01: in UTF-16 units too."""
    attached = files(folder, ("image", "a.png", samples.png()))
    limit = adapter.capabilities.caption_limit
    longest = FormattedText("🎩" * (limit // 2))
    assert adapter.measure(longest) == limit
    await adapter.send(Part(ANN_CHAT, longest, files=attached), "key")
    with pytest.raises(Rejected, match="caption is too long"):
        await adapter.send(Part(ANN_CHAT, FormattedText(longest.plain + "x"), files=attached), "key")


async def test_an_album_is_one_message_with_one_caption(
    api: TelegramApi, adapter: TelegramAdapter, folder: Path
) -> None:
    given = [("image", f"{n}.png", samples.png()) for n in range(9)] + [("video", "9.mp4", samples.MP4)]
    receipt = await adapter.send(part(files(folder, *given), "the **trip**"), "key")
    assert receipt.message_id == str(api.sent[0].id)
    assert len({sent.album for sent in api.sent}) == 1
    assert [sent.kind for sent in api.sent] == ["photo"] * 9 + ["video"]
    assert [sent.text for sent in api.sent] == ["the trip"] + [""] * 9
    assert [sent.file.name for sent in api.sent] == [name for _, name, _ in given]
    assert len(api.calls) == 1


async def test_an_album_counts_as_the_messages_it_is(api: TelegramApi, adapter: TelegramAdapter, folder: Path) -> None:
    """Edits give way to it: Telegram takes twenty messages a minute in a group."""
    group = Address("telegram", "main", str(api.group().id), "group")
    attached = files(folder, *[("image", f"{n}.png", samples.png()) for n in range(10)])
    receipt = await adapter.send(Part(group, FormattedText("before"), files=attached), "key")
    with pytest.raises(RateLimited) as caught:
        await adapter.edit(Part(group, FormattedText("after"), files=attached), receipt.message_id or "")
    assert caught.value.retry_after == 10 * 4 - 12


@pytest.mark.parametrize("kind", ["document", "audio"])
async def test_an_album_of_one_kind(api: TelegramApi, adapter: TelegramAdapter, folder: Path, kind: str) -> None:
    await adapter.send(part(files(folder, *[(kind, f"{n}.mp3", samples.MP3) for n in range(3)])), "key")
    assert [sent.kind for sent in api.sent] == [kind] * 3


async def test_pictures_stay_together_where_one_is_too_large_for_a_photo(
    api: TelegramApi, adapter: TelegramAdapter, folder: Path
) -> None:
    given = [("image", "a.png", samples.png()), ("image", "b.png", samples.png(9_000, 2_000))]
    await adapter.send(part(files(folder, *given)), "key")
    assert [sent.kind for sent in api.sent] == ["document", "document"]


async def test_an_album_holds_no_buttons(api: TelegramApi, adapter: TelegramAdapter, folder: Path) -> None:
    attached = files(folder, *[("image", f"{n}.png", samples.png()) for n in range(2)])
    with pytest.raises(Rejected, match="holds no buttons"):
        await adapter.send(part(attached, buttons=((Button("Yes", "yes"),),)), "key")
    await adapter.send(part(attached[:1], buttons=((Button("Yes", "yes"),),)), "key")
    assert api.sent[0].buttons == [[("Yes", "yes")]]


async def test_a_caption_is_edited(api: TelegramApi, adapter: TelegramAdapter, folder: Path) -> None:
    attached = files(folder, ("image", "a.png", samples.png()))
    receipt = await adapter.send(part(attached, "before", buttons=((Button("Yes", "yes"),),)), "key")
    await adapter.edit(part(attached, "**after**"), receipt.message_id or "")
    await adapter.edit(part(attached, "**after**"), receipt.message_id or "")
    await adapter.edit(part(attached), receipt.message_id or "")
    assert (api.sent[0].texts, api.sent[0].buttons) == (["before", "after", ""], [])


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault(413, "Request Entity Too Large"), Rejected),
        (Fault(429, retry_after=9), RateLimited),
        (Fault(502, body=b"<html>"), Unreachable),
        (Fault(drop=True, after=True), Ambiguous),
    ],
)
@pytest.mark.parametrize("number", [1, 2])
async def test_a_failed_upload_is_what_it_means_and_closes_its_files(
    api: TelegramApi, adapter: TelegramAdapter, folder: Path, fault: Fault, error: type[Exception], number: int
) -> None:
    """G-DLV-11"""
    attached = files(folder, *[("image", f"{n}.png", samples.png()) for n in range(number)])
    api.fail("sendPhoto" if number == 1 else "sendMediaGroup", fault)
    with pytest.raises(error):
        await adapter.send(part(attached), "key")
    await adapter.send(part(attached), "key")
    assert len(api.sent) == number * (2 if fault.after else 1)
    gc.collect()  # a file that was left open warns, and warnings are errors


async def test_a_cancelled_upload_leaves_the_adapter_usable(
    api: TelegramApi, adapter: TelegramAdapter, folder: Path
) -> None:
    attached = files(folder, ("image", "a.png", samples.png()))
    api.fail("sendPhoto", Fault(delay=30))
    send = asyncio.create_task(adapter.send(part(attached), "key"))
    await api.wait_called("sendPhoto")
    send.cancel()
    with pytest.raises(asyncio.CancelledError):
        await send
    await adapter.send(part(attached), "key")
    assert len(api.sent) == 1


# Voice notes --------------------------------------------------------------------------------------------------------


def install_ffmpeg(folder: Path, script: str) -> None:
    """A program of that name: it is given the sound at its standard input and gives what it made at its output."""
    program = folder / "ffmpeg"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


async def test_sound_is_made_a_voice_note_by_ffmpeg(
    api: TelegramApi, adapter: TelegramAdapter, folder: Path, bin_folder: Path
) -> None:
    made = folder / "made"
    made.write_bytes(samples.OPUS)
    log = folder / "log"
    install_ffmpeg(bin_folder, f'echo "$@" > {log}; /bin/cat > {folder}/heard; /bin/cat {made}')
    await adapter.send(part(files(folder, ("voice", "hello.wav", samples.WAV)), "listen"), "key")
    (sent,) = api.sent
    assert (sent.kind, sent.file.name, sent.file.data, sent.text) == ("voice", "hello.ogg", samples.OPUS, "listen")
    assert (folder / "heard").read_bytes() == samples.WAV
    words = log.read_text().split()
    assert words[words.index("-protocol_whitelist") + 1] == "pipe", "no file can make it open another"
    assert (words[words.index("-i") + 1], words[-1]) == ("pipe:0", "pipe:1")


async def test_without_ffmpeg_it_is_audio_and_the_mend_is_said_once(
    api: TelegramApi, adapter: TelegramAdapter, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    attached = files(folder, ("voice", "hello.wav", samples.WAV))
    for _ in range(3):
        await adapter.send(part(attached), "key")
    assert [(sent.kind, sent.file.data) for sent in api.sent] == [("audio", samples.WAV)] * 3
    (line,) = [record.message for record in caplog.records]
    assert "ffmpeg is missing: install it" in line


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("/bin/cat > /dev/null; echo Invalid data >&2; exit 1", "Invalid data"),
        ("/bin/cat > /dev/null", "it gave nothing"),
    ],
)
async def test_a_conversion_that_fails_leaves_audio(
    api: TelegramApi,
    adapter: TelegramAdapter,
    folder: Path,
    bin_folder: Path,
    caplog: pytest.LogCaptureFixture,
    script: str,
    says: str,
) -> None:
    install_ffmpeg(bin_folder, script)
    await adapter.send(part(files(folder, ("voice", "hello.wav", samples.WAV))), "key")
    assert [(sent.kind, sent.file.name, sent.file.data) for sent in api.sent] == [("audio", "hello.wav", samples.WAV)]
    assert says in caplog.text


async def test_a_program_that_cant_be_run_leaves_audio(
    api: TelegramApi, adapter: TelegramAdapter, folder: Path, bin_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (bin_folder / "ffmpeg").write_bytes(b"\x00\x01")
    (bin_folder / "ffmpeg").chmod(0o755)
    await adapter.send(part(files(folder, ("voice", "hello.wav", samples.WAV))), "key")
    assert (api.sent[0].kind, "could not convert it" in caplog.text) == ("audio", True)


async def test_a_cancelled_conversion_ends_the_program(
    api: TelegramApi, adapter: Adapter, folder: Path, bin_folder: Path
) -> None:
    install_ffmpeg(bin_folder, f"echo $$ > {folder}/pid; exec /bin/sleep 60")
    send = asyncio.create_task(adapter.send(part(files(folder, ("voice", "hello.wav", samples.WAV))), "key"))
    async with asyncio.timeout(10):
        while not (folder / "pid").exists() or not (folder / "pid").read_text().strip():
            await asyncio.sleep(0.01)
    send.cancel()
    with pytest.raises(asyncio.CancelledError):
        await send
    with pytest.raises(ProcessLookupError):
        os.kill(int((folder / "pid").read_text()), 0)
    assert not api.calls
