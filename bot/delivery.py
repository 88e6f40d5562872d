"""From an answer to the parts that one channel takes. Knows no database and makes no platform call."""

from __future__ import annotations

from adapters.adapter import Adapter
from adapters.markdown import parse
from adapters.message import Address, Part
from adapters.split import split
from adapters.text import FormattedText, sanitize


def parts_of(answer: str, address: Address, adapter: Adapter, reply_to: str | None = None) -> list[Part]:
    """The parts of ``answer`` (Markdown), in the order of sending; none when there is nothing to see.

    ``reply_to`` goes with the first part only. A channel without markup gets the Markdown as it was written.
    """
    capabilities = adapter.capabilities
    text = parse(answer) if capabilities.markup else FormattedText(sanitize(answer))
    pieces = split(text, capabilities.text_limit, adapter.measure) if capabilities.text_limit else [text]
    shown = [piece for piece in pieces if piece]
    return [Part(address, piece, reply_to if number == 0 else None) for number, piece in enumerate(shown)]
