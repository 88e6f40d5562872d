"""How the messages of one session queue: what joins the turn that runs, what waits, what is answered together.

Settled per session: what a person chose there, else what its channel's section says, else the table ``[queue]``.
Knows no inbox: it says how, others do it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from adapters.message import Address, Message

if TYPE_CHECKING:
    from bot.choices import Choices

QueueMode: TypeAlias = Literal["steer", "collect", "followup", "interrupt"]

MODES: tuple[QueueMode, ...] = get_args(QueueMode)

PRESS = "press/"
"""Begins the id of a message that is the press of a button: no platform knows it."""


@dataclass(frozen=True, slots=True)
class Queue:
    """``debounce`` is in seconds: what one sender says within them of the message before is one turn; 0.0 for none.

    ``most`` is how many messages may wait in a session. In mode "steer" a person's words join their running turn, in
    "collect" they wait and are answered together, in "followup" each is a turn of its own, and in "interrupt" they end
    the running turn, which begins anew with them.
    """

    mode: QueueMode = "steer"
    debounce: float = 0.0
    most: int = 20

    @property
    def joins(self) -> bool:
        """Whether a turn takes in what its sender says until it is answered."""
        return self.mode in ("steer", "interrupt")


class Queues:
    """``default`` is the table ``[queue]``, ``channels`` the modes of the channels that have their own."""

    def __init__(self, choices: Choices, default: Queue, channels: Mapping[tuple[str, str], QueueMode]) -> None:
        self._choices = choices
        self._default = default
        self._channels = channels

    @property
    def most(self) -> int:
        """How many messages may wait in any session."""
        return self._default.most

    def configured(self, address: Address) -> QueueMode:
        """The mode where nobody chose another."""
        return self._channels.get((address.channel, address.account), self._default.mode)

    async def of(self, address: Address, session: str) -> Queue:
        chosen = (await self._choices.of(session)).queue
        mode = next((mode for mode in MODES if mode == chosen), self.configured(address))
        return self._default if mode == self._default.mode else replace(self._default, mode=mode)


def is_press(message: Message) -> bool:
    """Whether it is a button's words: the answer to a question, which stands alone."""
    return message.id.startswith(PRESS)
