"""May this turn use this tool? One rule over the agent's settings, the kind of chat and the level of the turn.

It is asked when tools are offered to the model, and again when one runs: what has come into the conversation since may
have lowered the level. Knows no tool; each says what it needs.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from agents.tools.settings import ToolSettings
from workspaces.paths import normalised
from workspaces.scope import Level, Scope

ChatKind: TypeAlias = Literal["direct", "group", "channel"]

_INSTRUCTIONS = frozenset(
    {"agents.md", "soul.md", "identity.md", "user.md", "tools.md", "heartbeat.md", "bootstrap.md"}
)


@dataclass(frozen=True, slots=True)
class Need:
    """What a tool asks of a turn: the least ``level``, and whether it is on in groups without being allowed there.

    ``at_home``: it is for the owner, in a chat of their own, because it reaches beyond the scope. A tool that sends,
    elsewhere, runs, fetches, schedules, or writes anywhere but into today's note needs more than a guest.
    """

    level: Level = Level.GUEST
    in_groups: bool = True
    at_home: bool = False


NOTHING = Need()
"""Of a tool that reads within the scope or adds to today's note: every turn may."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """``text`` tells the model why and what to do. ``awaits_owner``: the same call may run once the owner says so."""

    text: str
    awaits_owner: bool = False


@dataclass(frozen=True, slots=True)
class Permission:
    """What one turn may do. ``scope`` holds its level.

    ``is_tainted`` says whether foreign text, or a summary of it, is in the model's window: then what is run is run at a
    guest's level. ``approved`` says whether the owner has agreed to this very call, by the tool's name and its
    arguments as the model wrote them; it lifts only what foreign text lowered.
    """

    scope: Scope
    kind: ChatKind = "direct"
    settings: ToolSettings = field(default_factory=ToolSettings)
    is_tainted: Callable[[], bool] = lambda: False
    approved: Callable[[str, str], bool] = lambda _name, _arguments: False

    def offers(self, name: str, need: Need) -> bool:
        """Whether the model is told of a tool. The same throughout a session, so that a prefix cache holds."""
        return not self._barred(name, need)

    def refusal(self, name: str, need: Need, arguments: str) -> Refusal | None:
        """Why a tool is not run now; None when it may."""
        if barred := self._barred(name, need):
            return Refusal(f"Not run: {barred}.")
        if need.level > Level.GUEST and self.is_tainted() and not self.approved(name, arguments):
            return Refusal(
                f"Not run: there is text from outside in this conversation, so {name} waits for the owner's yes. Say "
                "what you would do and why, and ask.",
                awaits_owner=True,
            )
        return None

    def may_change(self, *paths: str) -> bool:
        """Whether a file that is called so may be written, as far as its name tells.

        A file that tells the agent how to be is never written by a guest or in a group.
        """
        may_instruct = self.kind == "direct" and self.scope.level > Level.GUEST
        return may_instruct or not any(is_instruction(path) for path in paths)

    def _barred(self, name: str, need: Need) -> str:
        """Why a tool is none of this turn's, as a clause; "" when it is."""
        if name in self.settings.off:
            return f"{name} is switched off for this agent"
        if self.kind != "direct" and not (need.in_groups or self.settings.write_in_groups):
            return f"{name} is off in groups"
        is_home = self.kind == "direct" and self.scope.is_home and self.scope.level is Level.OWNER
        if need.at_home and not is_home:
            return f"this {name} is for the owner, in a chat of their own"
        if self.scope.level < need.level:
            return f"{name} is for a {need.level.name.lower()}, and one who takes part in this turn is less"
        return ""


def is_instruction(path: str) -> bool:
    """Whether a file of a workspace tells the agent how to be; in any case, as some file systems ignore it."""
    clean = unicodedata.normalize("NFC", normalised(path) or path)
    folded = unicodedata.normalize("NFC", clean.casefold())
    return folded in _INSTRUCTIONS or folded.startswith("skills/")
