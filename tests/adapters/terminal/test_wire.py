"""The line protocol: every frame both ways, and lines that are no frames."""

from __future__ import annotations

import json
from asyncio import StreamReader
from collections.abc import AsyncIterator
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from adapters.adapter import TurnReport
from adapters.terminal import wire
from adapters.terminal.wire import (
    LIMIT,
    Accepted,
    Answer,
    Delta,
    Done,
    Failure,
    FrameError,
    FromClient,
    FromHub,
    Goodbye,
    Got,
    Hello,
    Notice,
    OversizeError,
    Ready,
    Say,
    Stop,
    encode,
    from_client,
    from_hub,
)

REPORT = TurnReport(1, 0, "m", "s", 12, 3, 0.25, ("memory/2026-11-30.md#L1",), 1)

CLIENT: list[FromClient] = [
    Hello(1),
    Hello(1, "ops", True),
    Say("01", "h\u2028i\n🐚"),
    Say("02", "summarise", "what a pipe brought"),
    Stop("stop-1"),
    Got("turn-1/0"),
]
HUB: list[FromHub] = [
    Ready("main"),
    Ready("main", "m", ("one", "two"), ("/new  start afresh",)),
    Accepted("01"),
    Delta("a\tb"),
    Answer("# Hi\r\n", "01", "k"),
    Answer("late", None, "k", late=True),
    Notice("remembered: likes tea (memory/2026-11-30.md)"),
    Failure("no", 75),
    Failure("no", 75, "01"),
    Done("01", REPORT),
    Done("01", TurnReport(parts=0)),
    Goodbye("the hub has stopped"),
]


async def heard(data: bytes, read: Any = from_client, *, chunk: int | None = None) -> list[Any]:
    reader = StreamReader()
    for start in range(0, len(data), chunk or max(1, len(data))):
        reader.feed_data(data[start : start + (chunk or len(data))])
    reader.feed_eof()
    frames: AsyncIterator[Any] = read(reader)
    return [frame async for frame in frames]


async def reason(line: bytes) -> str:
    [frame] = await heard(line + b"\n")
    assert isinstance(frame, FrameError)
    return str(frame)


async def test_every_frame_comes_back_as_it_was() -> None:
    assert await heard(b"".join(encode(frame) for frame in CLIENT)) == CLIENT
    assert await heard(b"".join(encode(frame) for frame in HUB), from_hub) == HUB


async def test_frames_are_the_documented_json() -> None:
    assert json.loads(encode(Say("01", "hi"))) == {"type": "say", "id": "01", "text": "hi"}
    assert json.loads(encode(Done("01", REPORT)))["meta"]["memories"] == ["memory/2026-11-30.md#L1"]


@given(some.text(some.characters(codec=None)))  # lone surrogates too
async def test_any_text_is_one_line_and_comes_back(text: str) -> None:
    """G-SPL-03: a lone surrogate must not raise on its way."""
    line = encode(Say("01", text))
    assert line.count(b"\n") == 1
    assert await heard(line) == [Say("01", text)]


async def test_a_line_may_come_in_any_pieces() -> None:
    data = b"".join(encode(frame) for frame in CLIENT)
    for chunk in (1, 2, 7, 64):
        assert await heard(data, chunk=chunk) == CLIENT


async def test_a_torn_last_line_is_dropped() -> None:
    data = encode(Say("01", "whole")) + encode(Say("02", "torn"))
    assert await heard(data[:-1]) == [Say("01", "whole")]


async def test_an_oversized_line_is_one_error_and_the_next_is_read() -> None:
    too_long = b'{"type": "say", "id": "01", "text": "' + b"x" * (3 * LIMIT) + b'"}\n'
    first, second = await heard(too_long + encode(Stop("stop-1")), chunk=100_000)
    assert isinstance(first, FrameError)
    assert "1,048,576 bytes" in str(first)
    assert second == Stop("stop-1")


async def test_the_limit_is_the_same_for_writing_and_reading() -> None:
    room = LIMIT - len(encode(Say("01", ""))) + 1
    assert await heard(encode(Say("01", "x" * room))) == [Say("01", "x" * room)]
    with pytest.raises(OversizeError, match=r"1,048,577 bytes.*1,048,576"):
        encode(Say("01", "x" * (room + 1)))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"", "not JSON"),
        (b"GET / HTTP/1.1\r", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"9" * 100_000, "not JSON"),
        (b"[1]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b"{}", "no frame None"),
        (b'{"type": ["say"]}', "no frame ['say']"),
        (b'{"type": "answer", "text": "", "key": ""}', "no frame 'answer'"),
        (b'{"type": "say", "id": "01"}', "say: text is missing"),
        (b'{"type": "say", "id": 1, "text": ""}', "say: id: 1 is of the wrong type"),
        (b'{"type": "hello", "version": true}', "hello: version: True is of the wrong type"),
        (b'{"type": "hello", "version": 1, "once": 1}', "hello: once: 1 is of the wrong type"),
    ],
)
async def test_nonsense_is_named_and_never_raises(line: bytes, why: str) -> None:
    assert why in await reason(line)


@given(some.binary())
async def test_no_bytes_raise(data: bytes) -> None:
    for read in (from_client, from_hub):
        assert all(isinstance(frame, FrameError) for frame in await heard(data + b"\n", read))


async def test_nested_nonsense_is_named() -> None:
    [frame] = await heard(b'{"type": "done", "in_reply_to": "01", "meta": {"parts": "1"}}\n', from_hub)
    assert str(frame) == "done: meta: parts: '1' is of the wrong type"
    [frame] = await heard(b'{"type": "ready", "agent": "main", "notices": [1]}\n', from_hub)
    assert str(frame) == "ready: notices: it is not a list of texts"


async def test_unknown_keys_of_a_newer_peer_are_passed_over() -> None:
    assert await heard(b'{"type": "got", "key": "k", "mood": "fine"}\n') == [Got("k")]


def test_every_field_of_every_frame_can_be_read() -> None:
    kinds = (*wire._FROM_CLIENT.values(), *wire._FROM_HUB.values(), TurnReport)
    annotations = {str(field.type) for kind in kinds for field in fields(kind)}
    assert annotations == set(wire._READERS)
