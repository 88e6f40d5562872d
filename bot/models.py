"""The model of each agent: chosen from the settings, the environment and the weights that are here.

In this order: the configured model, a provider whose key is in the environment, the embedded model if its weights and
its engine are here, else none (notes mode). Builds no connection and reads no weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agents.catalog import ModelChoice, build, resolve
from agents.errors import MissingExtra
from agents.weights import WeightsStore
from bot.environment import Environment

if TYPE_CHECKING:
    from agents.model import Model
    from bot.home import Home
    from bot.settings import Settings

DEMO_SIZED = (
    "{name} is a demo-sized model: it words answers from your notes and invents the rest. "
    "For a real one: limpet config set models.default PROVIDER/MODEL"
)
KEY_FOUND = "Using {name}, since {place} is set. To settle it: limpet config set models.default {name}"
NO_MODEL = "Notes only: there is no model here. The small embedded one: limpet models pull smollm2"


@dataclass(frozen=True, slots=True)
class Chosen:
    """``model`` None means notes mode; ``notice`` is what to tell the person once, None when all is as configured."""

    model: Model | None
    name: str | None
    notice: str | None


def choice_of(agent: str, settings: Settings, home: Home) -> ModelChoice | None:
    """What ``agent`` would talk with. Raises agents.errors.UnknownModel for a name that means nothing."""
    variables = Environment.of(home).variables
    return resolve(settings.models, variables, WeightsStore(home.models), settings.agents[agent].model)


def model_of(agent: str, settings: Settings, home: Home) -> Chosen:
    """The model of ``agent``. Raises agents.errors.ModelError when a configured one can't be built."""
    choice = choice_of(agent, settings, home)
    if choice is None:
        return Chosen(None, None, NO_MODEL)
    try:
        model = build(choice)
    except MissingExtra as error:
        if choice.why != "embedded":
            raise
        return Chosen(None, None, f"Notes only: {error}")
    return Chosen(model, choice.name, _notice(choice))


def _notice(choice: ModelChoice) -> str | None:
    if choice.why == "key found":
        return KEY_FOUND.format(name=choice.name, place=choice.key_place)
    if choice.why == "embedded":
        return DEMO_SIZED.format(name=choice.name)
    return None
