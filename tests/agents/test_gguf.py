"""The window is read from the header of a GGUF file, and a broken file never does harm."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.gguf import NotGGUFError, context_length
from tests.fakes.gguf import gguf

HEADER = gguf(
    ("general.architecture", "llama"),
    ("tokenizer.ggml.tokens", ["a", "b", "ærø"]),
    ("tokenizer.ggml.token_type", [1, 2, 3]),
    ("llama.context_length", 8192),
    ("llama.block_count", 30),
)


def written(folder: Path, data: bytes) -> Path:
    path = folder / "x.gguf"
    path.write_bytes(data)
    return path


def test_the_window_behind_arrays(tmp_path: Path) -> None:
    assert context_length(written(tmp_path, HEADER)) == 8192


def test_a_file_that_does_not_say(tmp_path: Path) -> None:
    assert context_length(written(tmp_path, gguf(("general.architecture", "llama")))) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GGU",
        b"PK\x03\x04" + bytes(100),
        gguf(version=1),
        gguf(version=2**31),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 2**60),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 2**60),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"k" + struct.pack("<I", 99),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"k" + struct.pack("<IIQ", 9, 4, 2**60),
    ],
)
def test_what_is_no_gguf_file(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(NotGGUFError):
        context_length(written(tmp_path, data))


@given(st.integers(0, len(HEADER) - 1), st.binary(max_size=8))
def test_damage_anywhere_is_an_error_or_another_value(
    tmp_path_factory: pytest.TempPathFactory, at: int, junk: bytes
) -> None:
    path = written(tmp_path_factory.mktemp("gguf"), HEADER[:at] + junk + HEADER[at + len(junk) :])
    try:
        length = context_length(path)
    except NotGGUFError:
        return
    assert length is None or isinstance(length, int)
