"""Which model answers in a session where a person chose one of the configured: each built when it is first needed.

The agent stays the same; it is handed out with the model of the session in the place of its own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from agents.settings import in_order
from bot.models import model_called, obstacle

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from agents.agent import Agent
    from agents.model import Model
    from bot.choices import Choices
    from bot.errors import Problem
    from bot.home import Home
    from bot.settings import Settings

MOST_METERED = 256
"""Pairs of agent and model that are kept; a pair that was let go is made again."""


class Switch:
    """The agents of ``roster``, as each session has them.

    ``metered`` puts the meter of an agent around a model. What is built is closed with ``stack``.
    """

    def __init__(
        self,
        settings: Settings,
        home: Home,
        stack: AsyncExitStack,
        *,
        roster: Callable[[str], Awaitable[Agent]],
        choices: Choices,
        metered: Callable[[Model, str], Model],
    ) -> None:
        self._settings = settings
        self._home = home
        self._stack = stack
        self._roster = roster
        self._choices = choices
        self._meter = metered
        self._models: dict[str, Model] = {}
        self._metered: OrderedDict[tuple[str, str], Model] = OrderedDict()

    async def agent(self, name: str, session: str) -> Agent:
        """The agent called ``name`` with the model of ``session``.

        A choice that is not configured any more is as none. Raises ModelError for an embedder that means nothing.
        """
        agent = await self._roster(name)
        chosen = (await self._choices.of(session)).model
        if chosen is None or chosen not in self.names(name):
            return agent
        return replace(agent, model=partial(self._model, name, chosen))

    def names(self, agent: str) -> tuple[str, ...]:
        """The models that a session of ``agent`` can have, as the settings call them."""
        own = in_order(self._settings.agent(agent).model)
        return tuple(dict.fromkeys((*own, *in_order(self._settings.models.default), *self._settings.models.named())))

    def obstacle(self, name: str) -> Problem | None:
        """Why the model called ``name`` can't answer, and the mend; None when nothing is known. Asks no server."""
        return obstacle(name, self._settings, self._home)

    def _model(self, agent: str, name: str) -> Model:
        """Raises ModelError where it can't be built."""
        if (agent, name) not in self._metered:
            if name not in self._models:
                self._models[name] = model_called(name, self._settings, self._home)
                self._stack.push_async_callback(self._models[name].close)
            self._metered[agent, name] = self._meter(self._models[name], agent)
        self._metered.move_to_end((agent, name))
        if len(self._metered) > MOST_METERED:
            self._metered.popitem(last=False)
        return self._metered[agent, name]
