"""A long text in pages: nothing is lost between them."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from agents.tools.pages import page

LINES = st.lists(st.text("ab ", max_size=30), max_size=20)


@given(LINES, st.integers(1, 40), st.integers(1, 5) | st.none())
def test_reading_on_as_the_hint_says_gives_every_character_once(lines: list[str], room: int, most: int | None) -> None:
    start, skip, got = 1, 0, [""]
    for _ in range(2_000):
        part = page(lines, room, start=start, skip=skip, most=most)
        assert len(part.text) <= room
        if part.end >= part.start:
            first, *rest = part.text.split("\n")
            got[-1] += first
            got += rest
        hint = part.rest()
        if not hint:
            break
        found = re.search(r"start=(\d+)(?:, skip=(\d+))?\.\)$", hint)
        assert found
        start, skip = int(found[1]), int(found[2] or 0)
        if not skip:
            got.append("")
    assert got == (lines or [""])


def test_a_page_beyond_the_end_is_empty() -> None:
    part = page(["a", "b"], 100, start=3)
    assert (part.text, part.start, part.end, part.total, part.rest()) == ("", 3, 2, 2, "")


def test_the_hint_says_what_is_shown_and_how_to_go_on() -> None:
    assert page(["aa", "bb", "cc"], 5).rest("Entries") == "(Entries 1 to 2 of 3. Read on with start=3.)"
    assert page(["a" * 9], 4).rest() == "(Line 1 of 1 goes on. Read on with start=1, skip=4.)"
    assert page(["a" * 9], 4, skip=4).rest() == "(Line 1 of 1 goes on. Read on with start=1, skip=8.)"
    assert page(["a" * 9], 4, skip=8).rest() == ""
