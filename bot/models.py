"""The model of each agent: chosen from the settings, the environment and the weights that are here.

In this order: the configured model, a provider whose key is in the environment, the embedded model if its weights and
its engine are here, else none (notes mode). Builds no connection and reads no weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agents.catalog import ModelChoice, build, check, resolve
from agents.errors import MissingExtra, MissingKey, ModelError, WeightsError
from agents.weights import WeightsStore
from bot.environment import Environment
from bot.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents.model import Model
    from bot.home import Home
    from bot.settings import Settings
    from workspaces.memory import Embedder

DEMO_SIZED = (
    "{name} is a demo-sized model: it words answers from your notes and invents the rest. "
    "For a real one: limpet config set models.default PROVIDER/MODEL"
)
KEY_FOUND = "Using {name}, since {place} is set. To settle it: limpet config set models.default {name}"


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


def obstacle(
    name: str | None, settings: Settings, home: Home, environ: Mapping[str, str] | None = None
) -> Problem | None:
    """Why the model called ``name`` (None: the default one) can't answer, and the mend; None when nothing is known.

    Asks no server: the name, the package, the weights and whether there is a key are all that is looked at. ``environ``
    None means the environment of the process. No model at all is no obstacle: notes mode answers.
    """
    environment = Environment.of(home, environ)
    weights = WeightsStore(home.models)
    try:
        choice = resolve(settings.models, environment.variables, weights, name)
        if choice is not None:
            check(choice, environment.variables, weights)
    except MissingKey as error:
        return Problem(error.what, f"add {error.variable}=… to {environment.env_file}, or choose another model")
    except ModelError as error:
        return Problem(error.what, error.mend or None)
    return None


def model_of(agent: str, settings: Settings, home: Home) -> Chosen:
    """The model of ``agent``. Raises agents.errors.ModelError when a configured one can't be built.

    An embedded model that nobody chose and that can't be used leaves the notes.
    """
    from agents.notebook import HOW_TO_ADD_A_MODEL  # with the memory behind it: only for who is about to talk

    try:
        choice = choice_of(agent, settings, home)
        if choice is None:
            return Chosen(None, None, HOW_TO_ADD_A_MODEL)
        if choice.client == "local":
            check(choice, {}, WeightsStore(home.models))
        return Chosen(build(choice), choice.name, _notice(choice))
    except (MissingExtra, WeightsError) as error:
        if settings.agents[agent].model or settings.models.default:
            raise
        return Chosen(None, None, f"Notes only: {error}")


def embedders_of(
    settings: Settings, home: Home, environ: Mapping[str, str] | None = None
) -> tuple[Embedder | None, Embedder | None]:
    """What finds by meaning in every agent's memory, and what stands in until that is complete; None for neither.

    Raises agents.errors.UnknownModel for a name that means nothing. Asks no server and reads no weights.
    """
    from workspaces.memory.embedders import NAMES, STATIC, embedded

    name = settings.memory.embedder
    if name in NAMES:
        preferred = embedded(name)
    else:
        from agents import embedders

        preferred = embedders.resolve(
            name, settings.models, Environment.of(home, environ).variables, WeightsStore(home.models)
        )
    return preferred, None if preferred is None or name == STATIC else embedded(STATIC)


def _notice(choice: ModelChoice) -> str | None:
    if choice.why == "key found":
        return KEY_FOUND.format(name=choice.name, place=choice.key_place)
    if choice.why == "embedded":
        return DEMO_SIZED.format(name=choice.name)
    return None
