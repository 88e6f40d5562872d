"""Server-sent events come out the same however their bytes were cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.sse import EventParser


def events_of(*pieces: bytes) -> list[str]:
    parser = EventParser()
    return [event for piece in pieces for event in parser.feed(piece)] + parser.end()


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\ndata: b\n\n", ["a", "b"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]),
        (b"data: a\r\rdata: b\r\r", ["a", "b"]),
        (b"data:a\n\n", ["a"]),
        (b"data:  a\n\n", [" a"]),
        (b": ping\n\ndata: a\n\n: ping\n\n", ["a"]),
        (b"event: x\nid: 7\nretry: 10\ndata: a\n\n", ["a"]),
        (b"data: a\ndata: b\n\n", ["a\nb"]),
        (b"data\n\n", [""]),
        (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
        (b"data: a\n\ndata: [DONE]", ["a", "[DONE]"]),
        (b"data: \xf0\x9f\x90\x9a\n\n", ["\U0001f41a"]),
        (b"data: \xff\n\n", ["\ufffd"]),
        (b"\n\n\n", []),
        (b"", []),
    ],
)
def test_events_of_a_stream(stream: bytes, events: list[str]) -> None:
    assert events_of(stream) == events
    assert events_of(*(bytes([byte]) for byte in stream)) == events


def test_an_event_is_handed_out_with_its_blank_line() -> None:
    parser = EventParser()
    assert parser.feed(b"data: a\n") == []
    assert parser.feed(b"\n") == ["a"]
    assert parser.feed(b"data: b\r\n\r") == ["b"]
    assert parser.feed(b"\ndata: c\r\n\r\n") == ["c"]


lines = st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])), min_size=1, max_size=5)


@given(lines, st.sampled_from(["\n", "\r\n", "\r"]), st.data())
def test_any_cutting_of_the_bytes_gives_the_same_events(texts: list[str], end: str, data: st.DataObject) -> None:
    stream = "".join(f": comment{end}data: {text}{end}{end}" for text in texts).encode()
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=20)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert events_of(*pieces) == texts
