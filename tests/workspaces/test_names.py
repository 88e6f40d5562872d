"""Names of files that every system takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspaces import names


@given(st.text(max_size=60))
def test_a_portable_name_has_no_flaw(text: str) -> None:
    name = names.portable_name(text)
    assert names.flaw(name) == ""
    assert names.original(name) in (text, None)


@pytest.mark.parametrize(
    "name",
    ["ada.md", "My boat.md", "人.md", "café.md", "🎩.md", "console.md", "com.md", "com10.md", "a.con.md", "_", "~x"],
)
def test_a_name_that_every_system_takes(name: str) -> None:
    assert names.flaw(name) == ""


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "..", ".x", " x", "x.", "x ", "a/b", "a\\b", "a:b", "a\0b", "a\nb", "a\x7fb", "a\ud800", "CON",
        "con.md", "Con .md", "nul.tar.gz", "com1", "LPT9.md", "com²", "conout$", "x" * 181, "人" * 61,
    ],
)  # fmt: skip
def test_a_name_that_some_system_refuses(name: str) -> None:
    assert names.flaw(name)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Ada", "ada", True), ("caf\u00e9", "cafe\u0301", True), ("CAFE\u0301", "caf\u00e9", True),
        ("ada", "adam", False), ("Straße", "STRASSE", True),
    ],
)  # fmt: skip
def test_names_that_some_system_takes_for_one(one: str, other: str, same: bool) -> None:
    assert names.same(one, other) == same
