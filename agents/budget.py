"""How many tokens something costs: estimated before a call, corrected by what the provider counted after it.

The estimate is a quarter of the UTF-8 bytes: four Latin letters a token, two Cyrillic or Arabic ones, three quarters
of a token for a Chinese or Thai character, one for an emoji. Measured counts lie around that: 100 Chinese characters
are 50 tokens for one tokenizer and 125 for another. Knows no provider.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import assert_never

from agents.model import AssistantMessage, ChatMessage, Request, ToolResult, ToolSpec, Usage, UserMessage

OVERHEAD = 4
"""Tokens that a message costs beside its text: role and separators."""

IMAGE = 1_500
"""Tokens of a picture: providers scale it down and charge 1,000 to 3,000, however many bytes it has."""

CREDIBLE = (0.25, 4.0)
"""A count outside this share of the estimate is of something else: of what was not in a cache, of one message."""


def tokens(text: str) -> int:
    """The estimate for a text."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return (size + 3) // 4


def estimate(message: ChatMessage) -> int:
    """The estimate for a message with everything that is sent of it."""
    match message:
        case UserMessage(text=text, images=images):
            return tokens(text) + OVERHEAD + IMAGE * len(images)
        case ToolResult(text=text):
            return tokens(text) + OVERHEAD
        case AssistantMessage(text=text, tool_calls=calls):
            spent = tokens(text) + OVERHEAD + sum(tokens(c.name) + tokens(c.arguments) + OVERHEAD for c in calls)
            if calls:  # a thought goes back with the calls it led to, in the provider's form or as text
                state = tokens(json.dumps([dict(part) for part in message.state])) if message.state else 0
                spent += max(state, tokens(message.reasoning))
            return spent
        case _:
            assert_never(message)


def total(messages: Iterable[ChatMessage]) -> int:
    return sum(map(estimate, messages))


def tools_estimate(specs: Sequence[ToolSpec]) -> int:
    """The estimate for the tools of a request, whose schemas are sent as JSON."""
    return sum(
        tokens(spec.name) + tokens(spec.description) + tokens(json.dumps(dict(spec.parameters))) + OVERHEAD
        for spec in specs
    )


def request_estimate(request: Request) -> int:
    """The estimate for all that a call sends."""
    return tokens(request.system) + OVERHEAD + tools_estimate(request.tools) + total(request.messages)


@dataclass(frozen=True, slots=True)
class Meter:
    """Turns estimates into the tokens of one model, by the last call whose count is known.

    ``ratio`` is tokens by the provider's count for each estimated one. As a conversation only grows at its end, the
    last count is exact for nearly all of the next request.
    """

    ratio: float = 1.0

    def learned(self, estimated: int, usage: Usage) -> Meter:
        """The meter after a call whose request was ``estimated``; itself where the provider gave no credible count."""
        if estimated <= 0 or usage.input <= 0:
            return self
        ratio = usage.input / estimated
        return Meter(ratio) if CREDIBLE[0] <= ratio <= CREDIBLE[1] else self

    def counted(self, estimated: int) -> int:
        """Tokens that what was ``estimated`` really costs."""
        return round(estimated * self.ratio)

    def estimated(self, counted: int) -> int:
        """What may be estimated to stay within ``counted`` real tokens."""
        return int(counted / self.ratio)
