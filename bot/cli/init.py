"""``limpet init``: from nothing to a first chat, by questions at a terminal or by options in a script.

Writes a short settings file and the agent's workspace. What is there already stays: a key that is asked for is changed,
everything else in the file and every line a person wrote in USER.md is left alone. Running it twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli import output
from bot.cli.options import JsonOption, YesOption
from bot.errors import ConfigError, Problem
from bot.home import Home
from bot.zone import machine_zone, suggested, zone

if TYPE_CHECKING:
    from bot.config import Draft, Settings
    from bot.toml_positions import Key

_TEMPLATE = """\
# Settings of Limpet. A setting that is not here has its default; `limpet config check` finds mistakes.
# No secrets here: keys and tokens are found in the environment or in .env beside this file.

[models]
# provider/model, such as openai/{hosted} or ollama/qwen3:4b.
# Without it: the first provider whose key is found, else the embedded model.
{model}
# To answer on Telegram too: limpet channels add telegram
"""

_READY = "Ready. Talk: limpet"
_WITHOUT_MODEL = "Ready, without a model. Get one: limpet models pull smollm2"

NameOption = Annotated[str, typer.Option(help="What the assistant calls you.")]
LanguageOption = Annotated[str, typer.Option(help="The language you speak with it.")]
ZoneOption = Annotated[str, typer.Option("--time-zone", help="Such as Europe/Berlin; this machine's if not given.")]
ModelOption = Annotated[str, typer.Option("--model", "-m", help="provider/model, such as ollama/qwen3:4b.")]
UrlOption = Annotated[str, typer.Option("--base-url", help="Address of an OpenAI-compatible server.")]


@dataclass(frozen=True, slots=True)
class _Answers:
    """What the person said; "" is no answer."""

    name: str
    language: str
    time_zone: str
    model: str
    base_url: str


def command(
    ctx: typer.Context,
    name: NameOption = "",
    language: LanguageOption = "",
    time_zone: ZoneOption = "",
    model: ModelOption = "",
    base_url: UrlOption = "",
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """Set up: who you are, where your days begin, which model answers. Asks at a terminal, unless told by options."""
    from bot.models import obstacle
    from bot.start_record import advice

    home: Home = ctx.obj
    given = _Answers(name, language, time_zone, model, base_url)
    asks = not yes and not any((name, language, time_zone, model, base_url)) and output.is_interactive()
    answers = _asked(home) if asks else given
    if not answers.time_zone and (here := machine_zone()):
        answers = replace(answers, time_zone=here.key)
    draft, settings, changes = _checked(home, answers)
    if draft is not None:
        draft.write()
    if asks:
        _ask_for_key(settings, home)
    root = settings.workspace(settings.default_agent, home)
    for line in _write_profile(root, answers):
        output.note(line)
    if word := advice(home):
        output.note(word)
    model_name, why = _model(settings, home)
    problem = obstacle(None, settings, home)
    lines = [*changes, f"settings   {home.config}", f"memory     {root}", f"model      {model_name or why}"]
    if problem is not None:
        lines.append(f"Ready, but nothing can answer yet: {problem}")
    else:
        lines.append(_READY if model_name else _WITHOUT_MODEL)
    data = {
        "config": str(home.config),
        "workspace": str(root),
        "model": model_name,
        "problem": problem.as_dict() if problem else None,
        "changed": changes,
    }
    output.result("\n".join(lines), data, as_json=json)


def _asked(home: Home) -> _Answers:
    from bot.config import load
    from workspaces.profile import read_profile

    settings = load(home)
    known = read_profile(settings.workspace(settings.default_agent, home))
    output.note("Return takes what is in brackets; everything can be changed later.")
    here = machine_zone()
    name = output.ask("What shall I call you?", known.name)
    language = output.ask("Which language do you speak?", known.language or "English")
    time_zone = output.ask("Your time zone?", known.time_zone or (here.key if here else "UTC"))
    while zone(time_zone) is None:
        near = suggested(time_zone)
        time_zone = output.ask(f"{time_zone!r} is no time zone. Which one?", near or "UTC")
    return _Answers(name, language, time_zone, _asked_model(settings, home), "")


def _asked_model(settings: Settings, home: Home) -> str:
    """A model whose name means something; "" for the one that is there."""
    if problem := _meaningless(settings, home):
        output.note(f"Model: {problem}")
    else:
        model, why = _model(settings, home)
        output.note(f"Model: {model} ({why})" if model else f"Model: {why}")
    question = "Another model, as provider/model? (ollama looks for a local Ollama)"
    while True:
        default = settings.models.default
        chosen = output.ask(question, default if isinstance(default, str) else "")  # a list stays as it is
        if chosen == "ollama":
            chosen = _local_model(home)
        tried = settings.model_copy(update={"models": settings.models.model_copy(update={"default": chosen})})
        problem = _meaningless(tried, home) if chosen else None
        if problem is None:
            return chosen
        output.note(str(problem))
        question = "Which model?"


def _ask_for_key(settings: Settings, home: Home) -> None:
    """The key of the model, where that is all it lacks; kept in .env."""
    from agents.catalog import check, resolve
    from agents.errors import MissingKey, ModelError
    from agents.weights import WeightsStore
    from bot.environment import Environment, store

    variables, weights = Environment.of(home).variables, WeightsStore(home.models)
    try:
        if choice := resolve(settings.models, variables, weights):
            check(choice, variables, weights)
    except MissingKey as error:
        output.note(f"{error.what}.")
        if key := output.ask(f"The key, kept in {home.env_file} (Return: later)", secret=True):
            store(home.env_file, error.variable, key)
    except ModelError:  # told at the end
        pass


def _checked(home: Home, answers: _Answers) -> tuple[Draft | None, Settings, list[str]]:
    """What is to be written, as ``_draft`` says. Raises ConfigError with every problem of the answers at once."""
    problems = []
    if answers.time_zone and zone(answers.time_zone) is None:
        near = suggested(answers.time_zone)
        mend = f"did you mean {near!r}?" if near else "use a name such as Europe/Berlin"
        problems.append(Problem(f"{answers.time_zone!r} is no time zone", mend))
    if answers.base_url and not answers.model:
        problems.append(Problem("--base-url needs to know which model is there", "add --model NAME"))
        answers = replace(answers, base_url="")
    try:
        draft, settings, changes = _draft(home, answers)
    except ConfigError as error:
        raise ConfigError([*problems, *error.problems]) from error
    if problem := _meaningless(settings, home):
        problems.append(problem)
    if problems:
        raise ConfigError(problems)
    return draft, settings, changes


def _meaningless(settings: Settings, home: Home) -> Problem | None:
    """Why the name of the default model means nothing; None when it does, whether or not the model can answer yet."""
    from agents.catalog import resolve
    from agents.errors import ModelError, UnknownModel
    from agents.weights import WeightsStore
    from bot.environment import Environment

    try:
        resolve(settings.models, Environment.of(home).variables, WeightsStore(home.models))
    except UnknownModel as error:
        return Problem(error.what, error.mend or None)
    except ModelError:  # it is known, and something else is amiss with it
        pass
    return None


def _draft(home: Home, answers: _Answers) -> tuple[Draft | None, Settings, list[str]]:
    """The file to write (None: it says all that already), its settings, and a line for each key that changes."""
    from bot.config import Draft, load
    from bot.config_file import dotted, read, toml_value

    asked: dict[Key, str] = {("models", "default"): answers.model, ("models", "base_url"): answers.base_url}
    asked = {key: value for key, value in asked.items() if value}
    if not home.config.exists():
        draft = Draft.new(home, _template(asked))
        return draft, draft.settings, []
    file = read(home.config)
    said = []
    for key, value in list(asked.items()):
        before = file.get(key) if file.has(key) else None
        if before == value:
            del asked[key]
        else:
            said.append(f"{dotted(key)}: {toml_value(before) if before else 'not set'} → {toml_value(value)}")
    if not asked:
        return None, load(home), []
    draft = Draft.of(home, asked)
    return draft, draft.settings, said


def _template(asked: Mapping[Key, str]) -> str:
    from agents.catalog import PROVIDERS
    from bot.config_file import toml_value

    lines = [f"{key[-1]} = {toml_value(value)}" for key, value in asked.items()]
    model = "\n".join(lines) or '# default = "ollama/qwen3:4b"'
    return _TEMPLATE.format(hosted=PROVIDERS["openai"].model, model=model + "\n")


def _write_profile(root: Path, answers: _Answers) -> list[str]:
    """Open or make the workspace and fill the empty lines of USER.md; a note for each line that says otherwise."""
    from workspaces.profile import LANGUAGE, NAME, TIME_ZONE, read_profile, write_profile
    from workspaces.workspace import Workspace

    workspace = Workspace.open(root)
    known = read_profile(root)
    fields = (
        (NAME, known.name, answers.name),
        (LANGUAGE, known.language, answers.language),
        (TIME_ZONE, known.time_zone, answers.time_zone),
    )
    empty = {field: said for field, before, said in fields if said and not before}
    if empty:
        write_profile(root, empty)
    if all(before or said for _, before, said in fields):
        workspace.end_interview()  # nothing is left that the first chat would ask
    return [
        f"USER.md says {field}: {before}, and that stays; change it there: {root / 'USER.md'}"
        for field, before, said in fields
        if before and said and before != said
    ]


def _model(settings: Settings, home: Home) -> tuple[str | None, str]:
    """The model that would answer now and why; without one, the reason."""
    from agents.catalog import found_keys, resolve
    from agents.errors import ModelError
    from agents.weights import WeightsStore
    from bot.environment import Environment

    variables = Environment.of(home).variables
    try:
        choice = resolve(settings.models, variables, WeightsStore(home.models))
    except ModelError as error:
        return None, error.what
    if choice is None:
        return None, "none yet: no key in the environment, no embedded model"
    why = f"{found_keys(variables)[0]} is set" if choice.why == "key found" else choice.why
    return choice.name, why


def _local_model(home: Home) -> str:
    """The first model that the local Ollama offers, "" where none answers. Looked for because the person said so."""
    import http.client
    import json
    from urllib.parse import urlsplit

    from bot.environment import Environment

    host = Environment.of(home).get("OLLAMA_HOST") or "127.0.0.1:11434"
    place = urlsplit(host if "://" in host else f"http://{host}")
    connection = http.client.HTTPConnection(place.hostname or "127.0.0.1", place.port or 11434, timeout=1)
    try:
        connection.request("GET", "/api/tags")
        names = [str(model["name"]) for model in json.loads(connection.getresponse().read())["models"]]
    except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError):
        names = []
    finally:
        connection.close()
    if not names:
        output.note(f"No Ollama answers at {place.netloc}.")
        return ""
    output.note(f"Ollama has: {', '.join(names)}")
    return output.ask("Which one?", f"ollama/{names[0]}")
