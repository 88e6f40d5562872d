"""How Markdown is cut: literal runs, right lines, nothing too long, nothing lost."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workspaces.memory import words
from workspaces.memory.chunks import Chunk, chunked


def units(chunks: list[Chunk]) -> list[tuple[int, int, str]]:
    return [(u.start_line, u.end_line, chunk.text[u.start : u.end]) for chunk in chunks for u in chunk.units]


def assert_literal(text: str, chunks: list[Chunk], size: int, unit: int) -> None:
    lines = text.split("\n")
    for chunk in chunks:
        assert words.tokens(chunk.text) <= size
        assert chunk.text in "\n".join(lines[chunk.start_line - 1 : chunk.end_line])
        for start_line, end_line, own in units([chunk]):
            assert words.tokens(own) <= unit
            assert own in "\n".join(lines[start_line - 1 : end_line])
            assert own.count("\n") == end_line - start_line


def test_a_bullet_a_paragraph_a_row_and_a_block_of_code_are_units() -> None:
    text = """# Trip

- 14:03 first
  second line of it

  third
lazy end of it
- 14:05 next
1. numbered

A paragraph
of two lines.

| who | where |
|-----|-------|
| Ada | Paris |

```python
# not a heading

print()
```
"""
    chunks = chunked(text)
    assert units(chunks) == [
        (3, 7, "- 14:03 first\n  second line of it\n\n  third\nlazy end of it"),
        (8, 8, "- 14:05 next"),
        (9, 9, "1. numbered"),
        (11, 12, "A paragraph\nof two lines."),
        (14, 14, "| who | where |"),
        (16, 16, "| Ada | Paris |"),
        (18, 22, "```python\n# not a heading\n\nprint()\n```"),
    ]
    assert {chunk.trail for chunk in chunks} == {("Trip",)}


def test_the_trail_is_the_headings_above() -> None:
    text = "intro\n\n# A\n\n## B ##\n\nx\n\n### C\n\ny\n\n## D\n\nz\n\n# E\n\nw\n"
    trails = [(chunk.trail, chunk.text[chunk.units[0].start :]) for chunk in chunked(text)]
    assert trails == [
        ((), "intro"),
        (("A", "B"), "x"),
        (("A", "B", "C"), "y"),
        (("A", "D"), "z"),
        (("E",), "w"),
    ]


def test_a_line_with_a_colon_leads_a_list_in_until_the_prose_after_it() -> None:
    text = "# H\n\nShopping list:\n\n- milk\n- eggs\n\nAfter it.\n"
    assert [(chunk.trail, len(chunk.units)) for chunk in chunked(text)] == [(("H", "Shopping list"), 2), (("H",), 1)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "# User\n\n- Name:\n- **Language:**\n- Time zone: \n* [ ] \n1.\n",
        "# Memory\n\n<!-- one\ntwo -->\n\n---\n",
        "# 2026-11-30\n",
        "## Open questions\n",
        "|---|---|\n",
    ],
)
def test_what_says_nothing_is_no_unit(text: str) -> None:
    assert chunked(text) == []


def test_a_heading_that_says_something_is_found_though_nothing_is_below_it() -> None:
    assert units(chunked("# Log\n\n## Ledger moved from mongo to postgres\n\n## Next\n\nx\n")) == [
        (3, 3, "## Ledger moved from mongo to postgres"),
        (7, 7, "x"),
    ]


def test_an_indented_hash_or_fence_is_text() -> None:
    text = "- 14:03 note\n  # forged\n  ```\n- 14:04 next\n"
    assert [end - start for start, end, _ in units(chunked(text))] == [2, 0]


@pytest.mark.parametrize("line", ["| " + "x" * 21_000 + " |", "字" * 9_000, "word " * 5_000, "é" * 5_000, "🎩" * 3_000])
def test_one_huge_line_is_cut(line: str) -> None:
    """G-MEM-25: no chunk over the limit, each a literal part, the line's number right, no newline put in."""
    text = f"## Table\n\n{line}\nafter\n"
    chunks = chunked(text)
    assert_literal(text, chunks, 400, 100)
    found = units(chunks)
    assert {(start, end) for start, end, _ in found[:-1]} == {(3, 3)}
    assert found[-1] == (4, 4, "after") or found[-1][2].endswith("after")
    assert sum(len(own.replace(" ", "")) for _, _, own in found[:-1]) >= len(line.replace(" ", "")) - 5


def test_neighbours_of_a_section_overlap_and_no_unit_is_twice() -> None:
    text = "# Long\n\n" + "".join(f"- number {n:03} with some words to fill the line up\n" for n in range(100))
    chunks = chunked(text, size=200, overlap=40)
    assert_literal(text, chunks, 200, 100)
    assert len(chunks) > 3
    for one, two in pairwise(chunks):
        assert two.start_line <= one.end_line
    assert [start for start, _, _ in units(chunks)] == list(range(3, 103))


MARKDOWN = st.lists(
    st.one_of(
        st.text(max_size=80),
        st.sampled_from(
            ["# H", "## Two words here now", "- item", "  more", "```", "~~~", "<!--", "-->", "| a | b |", "", ""]
        ),
        st.text(alphabet="ab字é ", min_size=100, max_size=900),
    ),
    max_size=25,
).map(lambda lines: "\n".join(lines).replace("\r", "").replace("\0", ""))


@settings(deadline=None)
@given(MARKDOWN, st.integers(50, 300), st.integers(0, 80), st.integers(20, 100))
def test_chunks_are_literal_whatever_the_text(text: str, size: int, overlap: int, unit: int) -> None:
    """G-MEM-25, for any text and any sizes."""
    chunks = chunked(text, size=size, overlap=overlap, unit=unit)
    assert_literal(text, chunks, size, unit)
    places = [(chunk.start_line, chunk.text.find(own)) for chunk in chunks for _, _, own in units([chunk])]
    assert places == sorted(places, key=lambda place: place[0])
