"""Random Markdown of whole words: what people and models write, beside what only looks like a mark."""

from __future__ import annotations

from hypothesis import strategies as st

_WORDS = [
    *("word", "a_b", "x*y", "https://ex.test/a_b", "🎩", "é", "1.", "-", "#", ">", "~~", "\\", "[x]", "(y)", ":"),
    *("_", "*", "**bold**", "*it*", "`code`", "~~s~~", "[l](https://ex.test/q)", "***both***", "# H", "> q"),
    *("- item", "```\npre\n```", "<https://ex.test>"),
]


def markdowns(*own: str) -> st.SearchStrategy[str]:
    """Words with blanks, line breaks or nothing between them; ``own`` are those that mean something in one app only."""
    words = st.sampled_from([*_WORDS, *own])
    return st.lists(st.tuples(words, st.sampled_from([" ", "", "\n", "\n\n"])), max_size=14).map(
        lambda pieces: "".join(word + gap for word, gap in pieces)
    )
