"""Options that several commands share, so that they are called and explained alike everywhere."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
YesOption: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Answer every question with yes.")]
AgentOption: TypeAlias = Annotated[
    str | None, typer.Option("--agent", "-a", help="The agent; the default one if not given.")
]
