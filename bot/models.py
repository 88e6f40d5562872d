"""The model of each agent: chosen from the settings, the environment and the weights that are here.

In this order: the configured models, a provider whose key is in the environment, the embedded model if its weights and
its engine are here, else none (notes mode). Builds no connection and reads no weights.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from agents.catalog import ModelChoice, build, check, resolve, resolve_all
from agents.errors import MissingExtra, MissingKey, ModelError, WeightsError
from agents.settings import in_order
from agents.weights import WeightsStore
from bot.environment import Environment
from bot.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agents.model import Model
    from agents.prices import Prices
    from agents.transcription import Transcriber
    from bot.home import Home
    from bot.settings import Settings
    from workspaces.memory import Embedder

DEMO_SIZED = (
    "{name} is a demo-sized model: it words answers from your notes and invents the rest. "
    "For a real one: limpet config set models.default PROVIDER/MODEL"
)
KEY_FOUND = "Using {name}, since {place} is set. To settle it: limpet config set models.default {name}"

Meter: TypeAlias = "Callable[[Model], Model]"
"""Puts the meter around one model; a chain of several has one around each."""


def _unmetered(model: Model) -> Model:
    return model


@dataclass(frozen=True, slots=True)
class Chosen:
    """``model`` None means notes mode; ``notice`` is what to tell the person once, None when all is as configured."""

    model: Model | None
    name: str | None
    notice: str | None


def choices_of(agent: str, settings: Settings, home: Home) -> tuple[ModelChoice, ...]:
    """What ``agent`` would talk with, and what is asked in its place; empty for notes mode.

    Raises agents.errors.UnknownModel for a name that means nothing.
    """
    names = in_order(settings.agent(agent).model)
    return resolve_all(settings.models, Environment.of(home).variables, WeightsStore(home.models), names)


def named_for(agent: str, settings: Settings) -> tuple[str | None, ...]:
    """The names of the models of ``agent`` in the order in which they are asked; None for the one that is found."""
    return in_order(settings.agent(agent).model) or in_order(settings.models.default) or (None,)


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


def model_of(agent: str, settings: Settings, home: Home, *, metered: Meter = _unmetered) -> Chosen:
    """The model of ``agent``, or a chain of several, each of them ``metered``.

    Raises agents.errors.ModelError when no configured one can be built; an embedded model that nobody chose and that
    can't be used leaves the notes.
    """
    try:
        choices = choices_of(agent, settings, home)
        if not choices:
            from agents.notebook import HOW_TO_ADD_A_MODEL  # with the memory behind it: only for who needs it

            return Chosen(None, None, HOW_TO_ADD_A_MODEL)
        model, misgiving = _built(choices, home, metered)
    except (MissingExtra, WeightsError) as error:
        if settings.agent(agent).model or settings.models.default:
            raise
        return Chosen(None, None, f"Notes only: {error}")
    return Chosen(model, model.name, misgiving or _notice(choices[0]))


def small_model_of(settings: Settings, home: Home, *, metered: Meter = _unmetered) -> Model | None:
    """The model for flushes and summaries; None when each agent's own does that. Raises agents.errors.ModelError."""
    names = in_order(settings.models.small)
    if not names:
        return None
    choices = resolve_all(settings.models, Environment.of(home).variables, WeightsStore(home.models), names)
    return _built(choices, home, metered)[0]


def model_called(name: str, settings: Settings, home: Home) -> Model:
    """The one model of that name, as the settings have it. Raises agents.errors.ModelError when it can't be built."""
    choices = resolve_all(settings.models, Environment.of(home).variables, WeightsStore(home.models), (name,))
    return _built(choices, home, _unmetered)[0]


def prices_of(settings: Settings, home: Home) -> dict[str, Prices | None]:
    """What each model of the settings costs, by its name; None for one whose price is not known.

    Two that are called alike and cost differently have no price: which of them answered can't be told.
    """
    agents = (in_order(own.model) for own in (*settings.agents.values(), *settings.templates.values()))
    others = (*in_order(settings.models.small), *in_order(settings.voice.model))
    names = {*others, *settings.models.named()}.union((), *agents)
    variables, weights = Environment.of(home).variables, WeightsStore(home.models)
    prices: dict[str, Prices | None] = {}
    for wanted in ((), *((name,) for name in names)):
        try:
            choices = resolve_all(settings.models, variables, weights, wanted)
        except ModelError:  # it can't be asked, so it costs nothing
            continue
        for choice in choices:
            same = prices.setdefault(choice.name, choice.prices) == choice.prices
            prices[choice.name] = choice.prices if same else None
    return prices


def _built(choices: Sequence[ModelChoice], home: Home, metered: Meter) -> tuple[Model, str | None]:
    """The model of one choice, or the chain of several, and which of them it has to do without.

    Raises MissingExtra or WeightsError when none can be built.
    """
    built: list[Model] = []
    errors: list[ModelError] = []
    for choice in choices:
        try:
            if choice.client == "local":
                check(choice, {}, WeightsStore(home.models))
            built.append(metered(build(choice)))
        except (MissingExtra, WeightsError) as error:
            errors.append(error)
    if not built:
        raise errors[0]
    misgiving = f"One of its models can't be asked: {errors[0]}" if errors else None
    if len(built) == 1:
        return built[0], misgiving
    from agents.chain import Chain

    return Chain(built, clock=time.monotonic), misgiving


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


def embedder_obstacle(settings: Settings, home: Home, environ: Mapping[str, str] | None = None) -> Problem | None:
    """Why the embedder of the settings can't make vectors, and the mend; None when nothing is known. Asks no server."""
    from workspaces.memory.embedders import NAMES

    name = settings.memory.embedder
    if name == "local":
        return _without_package()
    if name in NAMES:
        return None
    try:
        embedders_of(settings, home, environ)
    except ModelError as error:  # it means nothing, or a model to talk with
        return Problem(error.what, error.mend or None)
    return obstacle(name, settings, home, environ)


def transcriber_of(settings: Settings, home: Home) -> Transcriber | None:
    """What listens to voice notes, None where nothing is to; one that can't be had says why whenever it is asked."""
    if (name := settings.voice.model) is None:
        return None
    try:
        return _transcriber(name, settings, home)
    except ModelError as error:
        from agents.transcription import Unavailable

        return Unavailable(name, error)


def transcriber_obstacle(settings: Settings, home: Home) -> Problem | None:
    """Why nothing listens to voice notes though it is to, and the mend; None when nothing is known. Asks no server."""
    if (name := settings.voice.model) is None:
        return None
    try:
        _transcriber(name, settings, home)
    except MissingKey:
        return obstacle(name, settings, home)
    except ModelError as error:
        return Problem(error.what, error.mend or None)
    return None


def _transcriber(name: str, settings: Settings, home: Home) -> Transcriber:
    from agents import transcription

    return transcription.resolve(name, settings.models, Environment.of(home).variables, WeightsStore(home.models))


def _without_package() -> Problem | None:
    import importlib.util

    from workspaces.installation import install_extra
    from workspaces.memory.local_embedder import EXTRA, PACKAGE

    if importlib.util.find_spec(PACKAGE) is not None:
        return None
    return Problem(f"the local embedder needs the extra {EXTRA!r}", f"install it: {install_extra(EXTRA)}")


def _notice(choice: ModelChoice) -> str | None:
    if choice.why == "key found":
        return KEY_FOUND.format(name=choice.name, place=choice.key_place)
    if choice.why == "embedded":
        return DEMO_SIZED.format(name=choice.name)
    return None
