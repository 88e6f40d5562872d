"""What is read and replaced in the memory of the client's loaded library; no file of it is changed.

WhatsApp's binary XML names frequent words by number: the tables are read out of the library, so that none is copied.
The key that signs servers is fixed in it: it is overwritten in the process that calls this, with the key of a server
on loopback. Both rest on how Go lays out strings on x86-64; ``python -m`` this module prints what was found, as JSON.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import platform
import re
import struct
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

PINNED_ROOT_KEY = bytes.fromhex("142375574d0a587166aae71ebe516437c4a28b73e3695c6ce1f7f9545da8ee6b")
"""The public key (X25519) that WhatsApp's servers are signed with."""

SINGLE_WORDS = 236
DOUBLE_TABLES, DOUBLE_WORDS = 4, 256

_FIRST_OF_TWO = "read-self"
"""Of the words of two bytes, whose tables lie right behind the one of the words of one byte."""

_HEADER = struct.Struct("<QQ")
"""Of a Go string: where its bytes lie, and how many."""
_SLICE = struct.Struct("<QQQ")
"""Of a Go slice: where it lies, its length and its capacity."""


class ChangedLibraryError(Exception):
    """This release of the library is laid out in another way."""


@dataclass(frozen=True, slots=True)
class Words:
    """The words of the binary XML: those of one byte, and the four tables of those of two."""

    single: tuple[str, ...]
    double: tuple[tuple[str, ...], ...]


def unsupported() -> str:
    """Why the server can't be used here, as a sentence; "" where it can."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return (
            f"the layout of the library is known on Linux x86-64 only, and this is {sys.platform} {platform.machine()}"
        )
    return "" if _binary() else "neonize, or its binary, is not installed"


def load() -> None:
    """Load the library into this process as neonize will; without neonize, whose import does more than that."""
    found = _binary()
    if found is None:
        raise ChangedLibraryError("neonize has no binary named neonize-linux-amd64.so any more")
    ctypes.CDLL(str(found))


def replace_root_key(key: bytes) -> None:
    """Trust ``key`` in the place of WhatsApp's, in this process. Raises ChangedLibraryError if it is not there once."""
    places = [
        start + at.start()
        for start, content, is_writable in _mappings()
        if is_writable
        for at in re.finditer(re.escape(PINNED_ROOT_KEY), content)
    ]
    if len(places) != 1:
        raise ChangedLibraryError(f"the root key was found {len(places)} times in the library, not once")
    ctypes.memmove(places[0], key, len(PINNED_ROOT_KEY))


def words() -> Words:
    """Raises ChangedLibraryError where the tables are not found with the sizes that they had."""
    memory = [(start, content) for start, content, _ in _mappings()]
    return Words(_single(memory), _double(memory))


def _single(memory: list[tuple[int, bytes]]) -> tuple[str, ...]:
    for header in _headers(memory, "xmlstreamstart"):
        table = _strings(memory, header - _HEADER.size, SINGLE_WORDS + 1)
        if table is not None and (table[0], table[2], table[-1]) == ("", "xmlstreamend", _FIRST_OF_TWO):
            return table[:-1]
    raise ChangedLibraryError(f"the {SINGLE_WORDS} words of one byte were not found in the library")


def _double(memory: list[tuple[int, bytes]]) -> tuple[tuple[str, ...], ...]:
    for header in _headers(memory, _FIRST_OF_TWO):
        for place in _places(memory, _SLICE.pack(header, DOUBLE_WORDS, DOUBLE_WORDS)):
            raw = _read(memory, place, _SLICE.size * DOUBLE_TABLES)
            slices = list(_SLICE.iter_unpack(raw)) if raw else []
            tables = [_strings(memory, start, length) for start, length, _ in slices if length == DOUBLE_WORDS]
            whole = tuple(table for table in tables if table is not None)
            if len(whole) == DOUBLE_TABLES:
                return whole
    raise ChangedLibraryError(f"the {DOUBLE_TABLES} tables of {DOUBLE_WORDS} words were not found in the library")


def _strings(memory: list[tuple[int, bytes]], start: int, number: int) -> tuple[str, ...] | None:
    headers = _read(memory, start, _HEADER.size * number)
    if headers is None:
        return None
    found = [_read(memory, place, length) for place, length in _HEADER.iter_unpack(headers)]
    return None if None in found else tuple(text.decode() for text in found if text is not None)


def _headers(memory: list[tuple[int, bytes]], text: str) -> Iterator[int]:
    """Where a Go string says ``text``."""
    for place in _places(memory, text.encode()):
        for header in _places(memory, _HEADER.pack(place, len(text))):
            if header % 8 == 0:
                yield header


def _places(memory: list[tuple[int, bytes]], wanted: bytes) -> Iterator[int]:
    for start, content in memory:
        for found in re.finditer(re.escape(wanted), content):
            yield start + found.start()


def _read(memory: list[tuple[int, bytes]], place: int, size: int) -> bytes | None:
    if size == 0:
        return b""
    for start, content in memory:
        if start <= place and place + size <= start + len(content):
            return content[place - start : place - start + size]
    return None


def _mappings() -> Iterator[tuple[int, bytes, bool]]:
    """The memory of the library in this process: where each piece starts, what is in it, and if it may be written."""
    for line in Path("/proc/self/maps").read_text("utf-8").splitlines():
        if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) r(.)\S+ .*neonize\S*\.so", line):
            start, end = int(found[1], 16), int(found[2], 16)
            yield start, ctypes.string_at(start, end - start), found[3] == "w"


def _binary() -> Path | None:
    spec = importlib.util.find_spec("neonize")
    if spec is None or spec.origin is None:
        return None
    found = Path(spec.origin).parent / "neonize-linux-amd64.so"
    return found if found.exists() else None


if __name__ == "__main__":
    load()
    replace_root_key(PINNED_ROOT_KEY)  # nothing changes, but it has to be there
    sys.stdout.write(json.dumps(asdict(words())))
