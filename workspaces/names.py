"""Any string as a file name that every system takes, one to one and reversible.

A session key or a chat id may hold slashes, colons or "..", differ from another only in case, or be called "CON".
Letters a-z, digits and "-" stand for themselves; every other byte of the UTF-8 form becomes "_" and two hex digits.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

_SPECIAL = re.compile(rb"[^a-z0-9-]")
_LONGEST = 180
"""File systems take 255 bytes; the rest is left for suffixes such as ``.jsonl.torn``."""

_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)")

_UNFIT = frozenset('<>:"/\\|?*')
"""Windows takes none of them in a name, nor control characters."""


def portable_name(text: str) -> str:
    """The name of ``text``: lower case, at most 180 characters, never empty, never reserved on Windows.

    A text that would be longer ends in a digest of the whole and can't be read back; the rest ``original`` reads back.
    """
    data = text.encode("utf-8", "surrogatepass")
    name = _SPECIAL.sub(lambda special: b"_%02x" % ord(special[0]), data).decode()
    if not name or _RESERVED.fullmatch(name):
        name = f"_{ord(name[0]):02x}{name[1:]}" if name else "_"
    if len(name) > _LONGEST:
        digest = hashlib.sha256(data).hexdigest()[:32]
        name = f"{name[: _LONGEST - 34]}__{digest}"
    return name


def original(name: str) -> str | None:
    """The text that ``portable_name`` made ``name`` of; None where it was too long to be kept."""
    if "__" in name:
        return None
    if name == "_":
        return ""
    data = re.sub(rb"_([0-9a-f]{2})", lambda m: bytes([int(m[1], 16)]), name.encode("ascii"))
    return data.decode("utf-8", "surrogatepass")


def flaw(name: str) -> str:
    """Why ``name``, which a person or a model chose, is no file name on every system, as one clause; "" if it is."""
    if bad := [ch for ch in name if ch in _UNFIT or unicodedata.category(ch) in ("Cc", "Cs")]:
        return f"it holds {bad[0]!r}"
    if name.startswith((".", " ")) or name.endswith((".", " ")):
        return "it starts or ends with a full stop or a space"
    if _RESERVED.fullmatch(name.split(".")[0].rstrip().casefold()):
        return "it is reserved on Windows"
    if len(name.encode()) > _LONGEST:
        return f"it is longer than {_LONGEST} bytes"
    return "" if name else "it is empty"


def same(one: str, other: str) -> bool:
    """Whether a file system that ignores case or the form of accents takes two names for one."""
    return _folded(one) == _folded(other)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
