"""Files, both ways."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from adapters.errors import Ambiguous, Rejected, Unreachable
from adapters.message import Button, File
from adapters.slack import SlackAdapter
from tests.adapters.slack.conftest import Receive, part, place
from tests.adapters.work import Naps
from tests.fakes.slack_api import TOKEN, Fault, SlackApi

DATA = bytes(range(256)) * 40
_SINCE = datetime.now(UTC) - timedelta(minutes=1)


def on_disk(folder: Path, name: str, data: bytes = DATA) -> File:
    path = folder / name
    path.write_bytes(data)
    return File("image" if name.endswith(".png") else "document", str(path), name)


async def test_a_file_goes_where_its_text_would(api: SlackApi, adapter: SlackAdapter, tmp_path: Path) -> None:
    channel = api.channel()
    thread = api.says("so?", chat=channel)
    file = on_disk(tmp_path, "plan é.pdf")
    receipt = await adapter.send(part("The plan", place(channel, thread), files=(file,)), "key")
    (sent,) = api.sent
    assert (sent.text, sent.thread, receipt.message_id) == ("The plan", thread, sent.id)
    assert [(one["title"], api.contents[one["id"]]) for one in sent.files] == [("plan é.pdf", DATA)]


async def test_what_comes_next_waits_until_the_file_is_shown(
    api: SlackApi, adapter: SlackAdapter, tmp_path: Path, naps: Naps
) -> None:
    """G-SPL-09: Slack shows a file a moment after it says so."""
    api.share_delay = 3
    receipt = await adapter.send(part("", files=(on_disk(tmp_path, "a.bin"),)), "key")
    assert receipt.message_id == api.sent[0].id
    assert len(api.called("files.info")) == 4
    assert naps.taken == sorted(naps.taken)
    api.share_delay = 99
    assert (await adapter.send(part("", files=(on_disk(tmp_path, "b.bin"),)), "key")).message_id is None


async def test_a_file_that_was_not_shared_may_be_sent_again(
    api: SlackApi, adapter: SlackAdapter, tmp_path: Path
) -> None:
    file = on_disk(tmp_path, "a.bin")
    for method in ("files.getUploadURLExternal",):
        api.fail(method, Fault(status=503))
        with pytest.raises(Unreachable):
            await adapter.send(part("", files=(file,)), "key")
    assert api.sent == []


@pytest.mark.parametrize("caption", ["The plan", ""])
async def test_a_lost_answer_to_a_file_is_settled(
    api: SlackApi, adapter: SlackAdapter, tmp_path: Path, caption: str
) -> None:
    """G-DLV-11: by the block above it, else by what the file is called, as long as nobody has said anything since."""
    said = part(caption, files=(on_disk(tmp_path, "a.bin"), on_disk(tmp_path, "b.bin")))
    assert await adapter.settle(said, "key", _SINCE) is None
    api.fail("files.completeUploadExternal", Fault(drop=True, after=True))
    with pytest.raises(Ambiguous):
        await adapter.send(said, "key")
    receipt = await adapter.settle(said, "key", _SINCE)
    assert receipt is not None
    assert receipt.message_id == api.sent[0].id
    other = part(caption, files=(on_disk(tmp_path, "c.bin"),))
    assert await adapter.settle(other, "other key", _SINCE) is None
    api.says("send it again")
    settled = await adapter.settle(said, "another turn's", _SINCE)
    assert settled is None


async def test_files_and_buttons_do_not_go_together(adapter: SlackAdapter, tmp_path: Path) -> None:
    buttons = ((Button("Yes", "yes"),),)
    with pytest.raises(Rejected, match="buttons"):
        await adapter.send(part("", files=(on_disk(tmp_path, "a.bin"),), buttons=buttons), "key")


async def test_an_empty_file_is_refused(adapter: SlackAdapter, tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="empty"):
        await adapter.send(part("", files=(on_disk(tmp_path, "a.bin", b""),)), "key")


async def test_files_of_a_person_are_fetched(api: SlackApi, adapter: SlackAdapter, receive: Receive) -> None:
    api.shares(DATA, "rose.png", "look", mimetype="image/png")
    api.shares(DATA, "note.m4a", mimetype="audio/mp4", subtype="slack_audio")
    picture, voice = (message.attachments[0] for message in (await receive()).messages)
    assert (picture.kind, picture.size, voice.kind) == ("image", len(DATA), "voice")
    assert b"".join([piece async for piece in adapter.fetch(picture.ref, len(DATA))]) == DATA


async def test_a_page_to_log_in_is_no_file(api: SlackApi, adapter: SlackAdapter) -> None:
    """Slack sends it with 200 to whoever may not have the file."""
    ref = api.add_file(DATA, "a.bin")["id"]
    api.methods["files.info"] = lambda given: {"file": api.files[given["file"]]}
    api.scopes.discard("files:read")
    api.check_scope = lambda method: None  # type: ignore[method-assign]
    with pytest.raises(Rejected, match="files:read"):
        [piece async for piece in adapter.fetch(ref, len(DATA))]


async def test_the_token_goes_to_nobody_but_slack(api: SlackApi, adapter: SlackAdapter) -> None:
    for url in ("https://evil.test/f", "http://files.slack.com/f", "https://slack.com.evil.test/f", "ftp://x", ""):
        file = api.add_file(DATA, "a.bin")
        file |= {"url_private": url, "url_private_download": url}
        with pytest.raises(Rejected, match="not kept by Slack"):
            [piece async for piece in adapter.fetch(file["id"], len(DATA))]


async def test_an_upload_goes_to_nobody_but_slack(api: SlackApi, adapter: SlackAdapter, tmp_path: Path) -> None:
    api.methods["files.getUploadURLExternal"] = lambda _: {"upload_url": "https://evil.test/", "file_id": "F1"}
    with pytest.raises(Unreachable) as caught:
        await adapter.send(part("", files=(on_disk(tmp_path, "a.bin"),)), "key")
    assert TOKEN not in str(caught.value)
