"""The webhook before a real program on loopback: who may write, what is taken, and what each answer means."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from pydantic import SecretStr
from yarl import URL

from adapters import registry
from adapters.errors import AdapterError, AuthFailed, RateLimited, Rejected, Unreachable
from adapters.markdown import parse
from adapters.message import Address, Attachment, Button, File, Inbound, Message, Part, Pressed, Sender
from adapters.text import FormattedText
from adapters.webhook import WebhookAdapter, WebhookSettings, check_receiver, signature
from tests.fakes.webhook_program import SECRET, Fault, WebhookProgram, signed

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HERE = Address("webhook", "home", "kitchen", "direct", space="home")
ANN = Sender("home/ann", "Ann")


@pytest.fixture
async def program() -> AsyncIterator[WebhookProgram]:
    async with WebhookProgram() as program:
        yield program


def settings_for(program: WebhookProgram, **more: Any) -> WebhookSettings:
    port = URL(program.bot).port or 0
    return WebhookSettings(secret=SecretStr(SECRET), callback_url=program.url, port=port, **more)


@asynccontextmanager
async def running(
    program: WebhookProgram, *, at: datetime | None = None, trouble: Exception | None = None, **more: Any
) -> AsyncIterator[tuple[WebhookAdapter, list[Inbound]]]:
    """An adapter that listens, and what it accepted. ``at`` stops its clock; ``trouble`` is met by all it accepts."""
    settings = settings_for(program, **more)
    adapter = WebhookAdapter("home", settings) if at is None else WebhookAdapter("home", settings, clock=lambda: at)
    accepted: list[Inbound] = []

    async def accept(event: Inbound) -> None:
        if trouble is not None:
            raise trouble
        accepted.append(event)

    task = asyncio.create_task(adapter.run(accept))
    try:
        async with asyncio.timeout(10):
            while adapter.health.state == "starting":
                await asyncio.sleep(0.01)
        yield adapter, accepted
    finally:
        task.cancel()
        await asyncio.wait([task])
        await adapter.close()


def body(**said: Any) -> bytes:
    """A message, as far as ``said`` leaves it one; None takes a key out."""
    event = {"type": "message", "id": "7", "chat": "kitchen", "sender": {"id": "ann", "name": "Ann"}, "text": "hello"}
    return json.dumps({name: value for name, value in {**event, **said}.items() if value is not None}).encode()


def part(text: str = "hello", **more: Any) -> Part:
    return Part(HERE, parse(text), **more)


# Who may write


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        ({}, "X-Limpet-Timestamp is missing"),
        ({"X-Limpet-Timestamp": "soon"}, "X-Limpet-Timestamp is missing or no number"),
        ({"X-Limpet-Timestamp": "-1"}, "X-Limpet-Timestamp is missing or no number"),
        ({"X-Limpet-Timestamp": "9" * 400}, "X-Limpet-Timestamp is missing or no number"),
        ({"X-Limpet-Timestamp": "٣"}, "X-Limpet-Timestamp is missing or no number"),
        ({"X-Limpet-Timestamp": str(int(NOW.timestamp()))}, "X-Limpet-Signature is missing or wrong"),
        ({**signed(body(), at=NOW.timestamp()), "X-Limpet-Signature": "é"}, "X-Limpet-Signature is missing or wrong"),
        ({**signed(body(), at=NOW.timestamp()), "X-Limpet-Timestamp": "1"}, "X-Limpet-Signature is missing or wrong"),
        (
            signed(body(), secret="another secret, as long", at=NOW.timestamp()),
            "X-Limpet-Signature is missing or wrong",
        ),
        (signed(body() + b" ", at=NOW.timestamp()), "X-Limpet-Signature is missing or wrong"),
        (signed(body(), at=NOW.timestamp() - 301), "X-Limpet-Timestamp is 301 s away"),
        (signed(body(), at=NOW.timestamp() + 301), "X-Limpet-Timestamp is 301 s away"),
    ],
)
async def test_who_does_not_know_the_secret_is_turned_away(
    program: WebhookProgram, headers: Mapping[str, str], says: str
) -> None:
    async with running(program, at=NOW) as (_, accepted):
        status, said = await program.post(body(), headers)
    assert status == 401
    assert says in said["error"]
    assert said["mend"]
    assert SECRET not in str(said)
    assert signed(body(), at=NOW.timestamp())["X-Limpet-Signature"] not in str(said)
    assert accepted == []


@pytest.mark.parametrize("apart", [-300, -1, 0, 300])
async def test_clocks_may_be_five_minutes_apart(program: WebhookProgram, apart: int) -> None:
    async with running(program, at=NOW) as (_, accepted):
        assert await program.post(body(), signed(body(), at=NOW.timestamp() + apart)) == (200, {"ok": True})
    assert len(accepted) == 1


async def test_a_request_that_is_sent_again_is_the_same_event(program: WebhookProgram) -> None:
    """G-DLV-21: the inbox knows it by its id; one that was overheard and sent again does nothing."""
    async with running(program, at=NOW) as (_, accepted):
        headers = signed(body(), at=NOW.timestamp())
        assert [(await program.post(body(), headers))[0] for _ in range(2)] == [200, 200]
    assert accepted[0] == accepted[1]


async def test_what_could_not_be_stored_is_not_answered_200(program: WebhookProgram) -> None:
    """G-DLV-21"""
    async with running(program, trouble=OSError(f"disk full near {SECRET}")) as (adapter, _):
        status, said = await program.post(body())
    assert (status, said["error"]) == (503, "it could not be stored (OSError)")
    assert adapter.health.detail == ""


# What is taken


async def test_everything_a_message_may_say_arrives(program: WebhookProgram) -> None:
    url = program.link("cat.png", b"meow")
    file = {"url": url, "kind": "image", "name": "cat.png", "size": 4, "media_type": "image/png", "seconds": 1.5}
    more = {"kind": "group", "thread": "t1", "reply_to": 3, "mentions_me": True, "sent_at": "2026-11-30T12:59:00+01:00"}
    async with running(program, at=NOW) as (_, accepted):
        said = body(**more, attachments=[file])
        assert (await program.post(said, signed(said, at=NOW.timestamp())))[0] == 200
    assert accepted == [
        Message(
            "7",
            Address("webhook", "home", "kitchen", "group", space="home", thread="t1"),
            ANN,
            "hello",
            NOW - timedelta(minutes=1),
            attachments=(Attachment("image", url, "cat.png", 4, "image/png", 1.5),),
            reply_to="3",
            mentions_me=True,
        )
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('"ok \\ud83c\\udfa9 end"', "ok \U0001f3a9 end"),
        ('"ok \\ud83c end"', "ok \ufffd end"),
        ('"a\\u0000b\\u001b[31mc\\r\\nd"', "ab[31mc\nd"),
    ],
)
async def test_what_no_database_takes_is_taken_out(program: WebhookProgram, text: str, shown: str) -> None:
    """G-SPL-03"""
    said = body(text="@").replace(b'"@"', text.encode())
    async with running(program) as (_, accepted):
        assert (await program.post(said))[0] == 200
    assert [event.text for event in accepted if isinstance(event, Message)] == [shown]


async def test_one_secret_speaks_for_no_sender_of_another_account(program: WebhookProgram) -> None:
    """A level is held by channel and id: another program's "ann" must be somebody else."""
    async with running(program) as (_, accepted):
        await program.post(body())
    assert isinstance(accepted[0], Message)
    assert accepted[0].sender.id == "home/ann"
    assert accepted[0].sender.aliases == ()
    assert not accepted[0].sender.is_shared
    assert accepted[0].address.space == "home"


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (b"", "the body is no JSON"),
        (b"\xff", "the body is no JSON"),
        (b"[" * 100_000, "the body is no JSON"),
        (b'{"type": "message", "type"', "the body is no JSON"),
        (b"[]", "Input should be a valid dictionary"),
        (b"7", "Input should be a valid dictionary"),
        (body(type=None), "Unable to extract tag"),
        (body(type="poll"), "does not match any of the expected tags"),
        (body(id=None), "id: Field required"),
        (body(id=""), "id: String should have at least 1 character"),
        (body(id="x" * 201), "id: String should have at most 200 characters"),
        (body(chat=None), "chat: Field required"),
        (body(sender="ann"), "sender: Input should be a valid dictionary"),
        (body(sender={"name": "Ann"}), "sender.id: Field required"),
        (body(kind="secret"), "kind: Input should be 'direct', 'group' or 'channel'"),
        (body(txet="hello"), "txet: Extra inputs are not permitted"),
        (body(**{"a\ud800": 1}), "a\ufffd: Extra inputs are not permitted"),
        (body(text=["hello"]), "text: Input should be a valid string"),
        (body(text=" \n"), "the message is empty"),
        (body(text="\x00"), "the message is empty"),
        (body(sent_at="2026-11-30T12:00:00"), "sent_at: Input should have timezone info"),
        (body(attachments=[{"url": "x", "seconds": "NaN"}]), "attachments.0.seconds: Input should be a finite number"),
    ],
)
async def test_what_is_no_event_is_answered_with_what_is_wrong(
    program: WebhookProgram, said: bytes, error: str
) -> None:
    async with running(program) as (_, accepted):
        status, answer = await program.post(said)
        assert (await program.post(body()))[0] == 200
    assert status == 400
    assert error in answer["error"]
    assert answer["mend"]
    assert len(accepted) == 1


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "http://169.254.169.254/latest",
        "http://127.0.0.1/files/x",
        "http://127.0.0.1:{port}@example.com/x",
        "https://127.0.0.1:{port}/files/x",
        "http://localhost:{port}/files/x",
        "//127.0.0.1:{port}/x",
        "http://[",
        "",
    ],
)
async def test_no_file_is_fetched_from_another_host(program: WebhookProgram, url: str) -> None:
    place = url.format(port=program.port)
    async with running(program) as (adapter, accepted):
        status, answer = await program.post(body(attachments=[{"url": place}]))
        with pytest.raises(Rejected, match="only files at"):
            [chunk async for chunk in adapter.fetch(place, 100)]
    assert (status, answer["error"]) == (400, "attachments: a url leads elsewhere")
    assert accepted == []


async def test_a_body_that_is_too_large_or_too_slow_is_refused(program: WebhookProgram) -> None:
    async with running(program, answer_seconds=0.2) as (_, accepted):
        large = body(text="x" * 1_000_000)
        status, answer = await program.post(large)
        assert (status, answer["error"]) == (413, "the body is larger than 1,000,000 bytes")

        async def drip() -> AsyncIterator[bytes]:
            yield b"{"
            await asyncio.sleep(60)

        async with ClientSession() as session, session.post(program.bot, data=drip()) as slow:
            assert slow.status == 408
        async with ClientSession() as session, session.get(program.bot) as got:
            assert (got.status, (await got.json())["mend"]) == (405, "POST an event")
    assert accepted == []


async def test_a_button_is_pressed(program: WebhookProgram) -> None:
    async with running(program, at=NOW) as (_, accepted):
        said = body(type="pressed", message_id="m0", data="yes", text=None)
        assert (await program.post(said, signed(said, at=NOW.timestamp())))[0] == 200
    assert accepted == [Pressed("7", HERE, ANN, "m0", "yes", NOW)]


async def test_whoever_finds_the_port_can_not_fill_the_log(
    program: WebhookProgram, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(program):
        for _ in range(20):
            await program.post(body(), {})
        await program.post(body())
        await program.post(body(), {})
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 2
    assert "X-Limpet-Timestamp is missing" in warnings[0]


# What goes out


async def test_a_part_is_posted_signed_and_with_its_key(program: WebhookProgram) -> None:
    adapter = WebhookAdapter("home", settings_for(program, buttons=True))
    there = Address("webhook", "home", "Küche", "group", space="home", thread="t1")
    buttons = ((Button("Yes", "y"),), (Button("No", "n"),))
    receipt = await adapter.send(Part(there, parse("**Hi** <b>"), "7", buttons=buttons), "turn é\r\nX: y/0")
    await adapter.close()
    ((headers, said),) = program.requests
    assert said == {
        "type": "message",
        "key": "turn é\r\nX: y/0",
        "chat": "Küche",
        "kind": "group",
        "thread": "t1",
        "reply_to": "7",
        "text": "Hi <b>",
        "html": "<b>Hi</b> &lt;b&gt;",
        "buttons": [[{"label": "Yes", "data": "y"}], [{"label": "No", "data": "n"}]],
    }
    assert headers["Idempotency-Key"] == "turn%20%C3%A9%0D%0AX%3A%20y/0"
    assert receipt.message_id == "m0"


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("plain & <b>", None),
        ("# A **b** c", "<b>A b c</b>"),
        ("***x*** ~~s~~", "<i><b>x</b></i> <s>s</s>"),
        ("`a<b` and **c**", "<code>a&lt;b</code> and <b>c</b>"),
        ('```c"x\nif (a < b)\n```', '<pre><code class="language-c&quot;x">if (a &lt; b)</code></pre>'),
        ("```\nx\n```", "<pre><code>x</code></pre>"),
        ('[l](https://ex.test/?a=1&b="2)', '<a href="https://ex.test/?a=1&amp;b=&quot;2">l</a>'),
        ("> a\n> > **b**", "<blockquote>a\n<blockquote><b>b</b></blockquote></blockquote>"),
        ("- a\n  > q", "• a\n<blockquote>q</blockquote>"),
    ],
)
async def test_markup_is_html(program: WebhookProgram, markdown: str, html: str | None) -> None:
    """The receiver checks, besides, that tags are nested and that the text is the same without them."""
    adapter = WebhookAdapter("home", settings_for(program))
    await adapter.send(part(markdown), "key")
    await adapter.close()
    assert program.taken[0].get("html") == html


async def test_a_file_is_sent_within_the_message(program: WebhookProgram, tmp_path: Path) -> None:
    path = tmp_path / "cat.png"
    path.write_bytes(b"\x89PNG")
    adapter = WebhookAdapter("home", settings_for(program, file_limit=4))
    await adapter.send(part("look", files=(File("image", str(path), "cat.png"),)), "0")
    path.write_bytes(b"\x89PNG5")
    with pytest.raises(Rejected, match="larger than the 4 bytes"):
        await adapter.send(part("look", files=(File("image", str(path), "cat.png"),)), "1")
    await adapter.close()
    (said,) = program.taken
    data = base64.b64encode(b"\x89PNG").decode()
    assert said["file"] == {"kind": "image", "name": "cat.png", "media_type": "image/png", "data": data}


def test_what_it_can_do_is_what_the_settings_say(program: WebhookProgram) -> None:
    least = WebhookAdapter("home", settings_for(program)).capabilities
    assert (least.text_limit, least.file_limit, least.buttons, least.idempotent) == (0, 0, False, True)
    most = WebhookAdapter("home", settings_for(program, text_limit=100, file_limit=5, buttons=True)).capabilities
    assert (most.text_limit, most.caption_limit, most.file_limit, most.buttons) == (100, 100, 5, True)


@pytest.mark.parametrize(
    ("fault", "error", "says"),
    [
        (Fault(400, b'{"error": "no such\\u001b chat"}'), Rejected, "says 400"),
        (Fault(403), Rejected, "says 403"),
        (Fault(413), Rejected, "says 413"),
        (Fault(401), AuthFailed, "is the secret the same at both ends"),
        (Fault(404), Unreachable, "is callback_url right?"),
        (Fault(405), Unreachable, "is callback_url right?"),
        (Fault(408), Unreachable, "says 408"),
        (Fault(301, headers={"Location": "http://127.0.0.1:1/"}), Unreachable, "set callback_url to where it leads"),
        (Fault(307, headers={"Location": "/elsewhere"}), Unreachable, "redirects are not followed"),
        (Fault(500), Unreachable, "says 500"),
        (Fault(503), Unreachable, "says 503"),
        (Fault(drop=True), Unreachable, "gave no answer (ServerDisconnectedError)"),
    ],
)
async def test_each_answer_is_an_error_with_its_mend(
    program: WebhookProgram, fault: Fault, error: type[AdapterError], says: str
) -> None:
    program.faults.append(fault)
    adapter = WebhookAdapter("home", settings_for(program))
    with pytest.raises(error) as caught:
        await adapter.send(part(), "key")
    await adapter.close()
    assert type(caught.value) is error
    assert says in str(caught.value)
    assert len(program.requests) == 1, "nothing is sent twice, and nowhere else"


@pytest.mark.parametrize(
    ("fault", "seconds"),
    [
        (Fault(429, headers={"Retry-After": "120"}), 120),
        (Fault(503, headers={"Retry-After": "7"}), 7),
        (Fault(429), 5),
        (Fault(429, headers={"Retry-After": "Mon, 30 Nov 2026 12:00:00 GMT"}), 5),
        (Fault(429, headers={"Retry-After": "-1"}), 5),
        (Fault(429, headers={"Retry-After": "9" * 99}), 5),
    ],
)
async def test_a_flood_is_waited_for(program: WebhookProgram, fault: Fault, seconds: float) -> None:
    program.faults.append(fault)
    adapter = WebhookAdapter("home", settings_for(program))
    with pytest.raises(RateLimited) as caught:
        await adapter.send(part(), "key")
    await adapter.close()
    assert caught.value.retry_after == seconds


async def test_a_formatting_refusal_may_be_sent_plain(program: WebhookProgram) -> None:
    """G-FMT-07"""
    program.faults.append(Fault(422))
    adapter = WebhookAdapter("home", settings_for(program))
    with pytest.raises(Rejected) as caught:
        await adapter.send(part("**Sure!** Step 1 - done."), "key")
    assert caught.value.formatting
    await adapter.send(Part(HERE, FormattedText("Sure! Step 1 - done.")), "key")
    await adapter.close()
    assert "html" not in program.taken[0]


async def test_no_answer_in_time_may_be_sent_again(program: WebhookProgram) -> None:
    """G-DLV-11: the receiver knows the key, so that it is no doubt whether it may be sent again."""
    program.faults.append(Fault(stall=True))
    adapter = WebhookAdapter("home", settings_for(program, answer_seconds=0.1))
    async with asyncio.timeout(20):
        with pytest.raises(Unreachable, match="gave no answer"):
            await adapter.send(part(), "key")
    await adapter.close()


@pytest.mark.parametrize(
    ("answer", "message_id"),
    [
        (b'{"id": "m7"}', "m7"),
        (b'{"id": 7}', "7"),
        (b'{"id": null}', None),
        (b'{"id": {"a": 1}}', None),
        (b"[]", None),
        (b"ok", None),
        (b"", None),
        (b"[" * 60_000, None),
        (b'"' + b"x" * 1_000_000, None),
    ],
)
async def test_the_receiver_may_say_what_its_message_is_called(
    program: WebhookProgram, answer: bytes, message_id: str | None
) -> None:
    program.faults.append(Fault(200, answer, after=True))
    adapter = WebhookAdapter("home", settings_for(program))
    receipt = await adapter.send(part(), "key")
    await adapter.close()
    assert receipt.message_id == message_id


async def test_a_file_that_is_not_there_is_refused_and_a_server_that_is_not_is_unreachable(
    program: WebhookProgram,
) -> None:
    adapter = WebhookAdapter("home", settings_for(program))
    url = program.link("cat.png", b"meow")
    del program.files["cat.png"]
    with pytest.raises(Rejected, match="no such file"):
        [chunk async for chunk in adapter.fetch(url, 100)]
    await program.stop()
    with pytest.raises(Unreachable, match="broke off"):
        [chunk async for chunk in adapter.fetch(url, 100)]
    await adapter.close()


# Health


async def test_a_port_that_is_taken_is_told_with_the_mend(program: WebhookProgram) -> None:
    port = URL(program.bot).port
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        adapter = WebhookAdapter("home", settings_for(program))
        with pytest.raises(AuthFailed, match="set another port or host"):
            await adapter.run(_accept_nothing)
    assert adapter.health.state == "failed"
    assert f"127.0.0.1:{port}" in adapter.health.detail
    assert "set another port or host" in adapter.health.detail


async def test_a_host_that_is_not_ours_is_told_with_the_mend(program: WebhookProgram) -> None:
    adapter = WebhookAdapter("home", settings_for(program, host="192.0.2.1"))
    with pytest.raises(AuthFailed, match="set another port or host"):
        await adapter.run(_accept_nothing)


async def test_a_wrong_secret_is_a_failure_until_it_is_mended(
    program: WebhookProgram, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(program) as (adapter, _):
        for _ in range(2):
            program.faults.append(Fault(401))
            with pytest.raises(AuthFailed):
                await adapter.send(part(), "key")
        assert adapter.health.state == "failed"
        assert "is the secret the same at both ends" in adapter.health.detail
        assert len([r for r in caplog.records if r.levelno == logging.WARNING]) == 1
        await adapter.send(part(), "key")
        assert (adapter.health.state, adapter.health.reconnects) == ("connected", 1)
        assert adapter.health.detail == f"listens on {program.bot}"


async def test_what_is_sent_after_the_end_does_not_say_that_it_listens(program: WebhookProgram) -> None:
    """The hub lets running turns end after it has stopped to receive."""
    async with running(program) as (adapter, _):
        program.faults.append(Fault(502))
        with pytest.raises(Unreachable):
            await adapter.send(part(), "key")
    again = WebhookAdapter("home", settings_for(program))
    await again.send(part(), "key")
    await again.close()
    assert (adapter.health.state, again.health.state) == ("stopped", "starting")


async def _accept_nothing(event: Inbound) -> None:
    raise AssertionError("nothing was sent")


# Settings


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"secret": "short"}, "at least 16"),
        ({"secret": None}, "secret"),
        ({"callback_url": "example.com/limpet"}, "write a whole address"),
        ({"callback_url": "ftp://example.com/"}, "write a whole address"),
        ({"callback_url": "http://"}, "write a whole address"),
        ({"callback_url": "http://ann:pw@example.com/"}, "without a name and a password"),
        ({"callback_url": "https://example.com/#x"}, "write a whole address"),
        ({"port": 0}, "greater than or equal to 1"),
        ({"port": 65536}, "less than or equal to 65535"),
        ({"text_limit": 5}, "can't be cut into pieces of less than 20"),
        ({"text_limit": -1}, "greater than or equal to 0"),
        ({"answer_seconds": 0}, "greater than 0"),
        ({"callback": "x"}, "Extra inputs"),
    ],
)
def test_wrong_settings_are_refused(wrong: Mapping[str, Any], says: str) -> None:
    right = {"secret": SECRET, "callback_url": "http://127.0.0.1:8123/limpet"}
    assert WebhookSettings.model_validate(right).host == "127.0.0.1", "other machines are let in on purpose only"
    with pytest.raises(ValueError, match="validation error") as caught:
        WebhookSettings.model_validate({**right, **wrong})
    assert says in str(caught.value)


def test_settings_keep_the_secret_and_say_what_they_are_for() -> None:
    settings = registry.settings_model("webhook").model_validate({"secret": SECRET, "callback_url": "http://a.test/"})
    assert SECRET not in repr(settings)
    assert all(field.description for field in WebhookSettings.model_fields.values())


async def test_the_other_end_is_tried_by_name(program: WebhookProgram) -> None:
    settings = settings_for(program)
    identity = await registry.check("webhook", settings, Path("unused"))
    assert (identity.username, identity.link) == ("", program.bot)
    assert identity.name == f"The program at 127.0.0.1:{program.port}"
    assert program.taken == []
    other = settings.model_copy(update={"secret": SecretStr("another secret, as long")})
    with pytest.raises(AuthFailed, match="is the secret the same at both ends"):
        await check_receiver(other)
    await program.stop()
    with pytest.raises(Unreachable, match="is the program there running"):
        await check_receiver(settings)


def test_a_signature_is_what_other_programs_make() -> None:
    """printf '1764504000.{"type":"check"}' | openssl dgst -sha256 -hmac 'a secret of the docs'"""
    made = signature("a secret of the docs", "1764504000", b'{"type":"check"}')
    assert made == "99bd863899b0955d41fb2bcaaf8d8a72cdf055445c71974f84b50497fd313ffc"
