"""How many tokens a text costs, estimated: exact counts are the provider's, after the call.

Four characters a token for most scripts; one each for CJK, kana, Hangul and emoji, which tokenizers split finely.
"""

from __future__ import annotations

import re
from typing import assert_never

from agents.model import AssistantMessage, ChatMessage, ToolResult, UserMessage

_DENSE = re.compile(
    "[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"  # Hangul, CJK, kana, full-width forms
    "\U0001f300-\U0001faff\U00020000-\U0003ffff]"  # emoji, rarer ideographs
)

OVERHEAD = 4
"""Tokens that a message costs beside its text: role and separators."""


def tokens(text: str) -> int:
    """The estimate for a text."""
    dense = len(_DENSE.findall(text))
    return dense + (len(text) - dense + 3) // 4


def estimate(message: ChatMessage) -> int:
    """The estimate for a message with everything that is sent of it."""
    match message:
        case UserMessage(text=text) | ToolResult(text=text):
            return tokens(text) + OVERHEAD
        case AssistantMessage(text=text, tool_calls=calls):
            return tokens(text) + OVERHEAD + sum(tokens(c.name) + tokens(c.arguments) + OVERHEAD for c in calls)
        case _:
            assert_never(message)
