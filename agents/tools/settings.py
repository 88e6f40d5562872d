"""The settings of an agent's tools: which it has, where it may write, how much it is given to read at once."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

LONGEST_RESULT = 16_000

ToolName: TypeAlias = Literal[
    "memory_search", "memory_get", "memory_append", "memory_edit", "read", "write", "edit", "list", "grep", "send_file"
]


class ToolSettings(BaseModel):
    """The section ``tools`` of an agent."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    off: tuple[ToolName, ...] = Field(
        default=(), description="Tools that the agent doesn't have.", examples=[["write", "edit"]]
    )
    write_in_groups: bool = Field(
        default=False,
        description="Whether files may be written in groups and channels. Notes may always be, and the files that tell "
        "the agent how to be never.",
    )
    longest_result: int = Field(
        default=LONGEST_RESULT,
        ge=1_000,
        description="Longest result of a tool, in characters. What is longer is given in parts.",
    )
