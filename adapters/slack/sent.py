"""Whether a part that may have arrived did: Slack knows no idempotency key, but keeps what a message carries with it.

So our messages carry the key of their part, and what we said is read back. A message with files carries it in the block
above them; without one it is known by the names and sizes of its files, as long as nobody has said anything since.
Pure: what was said is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapters.slack.client import Json

EVENT_TYPE = "limpet_part"
"""What the metadata of our messages is called."""


def block_id(key: str) -> str:
    """What the block above files is called, so that they are found again."""
    return f"{EVENT_TYPE}:{key}"[:255]


def message_with(
    key: str, said: Sequence[Json], is_ours: Callable[[Json], bool], files: Sequence[tuple[str, int]] = ()
) -> str | None:
    """The message that shows the part of ``key``; ``said`` is oldest first, ``files`` are names and sizes in bytes."""
    for message in filter(is_ours, said):
        if _key(message) == key:
            return str(message.get("ts"))
    return _last_with(files, said, is_ours) if files else None


def _last_with(files: Sequence[tuple[str, int]], said: Sequence[Json], is_ours: Callable[[Json], bool]) -> str | None:
    for message in reversed(said):
        if not is_ours(message):
            return None
        held = message.get("files")
        shown = [(one.get("title"), one.get("size")) for one in held] if isinstance(held, list) else []
        if shown == list(files) and not _key(message):
            return str(message.get("ts"))
    return None


def _key(message: Json) -> str:
    metadata = message.get("metadata")
    if isinstance(metadata, dict) and metadata.get("event_type") == EVENT_TYPE:
        payload = metadata.get("event_payload")
        return str(payload.get("key") or "") if isinstance(payload, dict) else ""
    blocks = message.get("blocks")
    held = (
        [str(block.get("block_id")) for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
    )
    return next((name.partition(":")[2] for name in held if name.startswith(f"{EVENT_TYPE}:")), "")
