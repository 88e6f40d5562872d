"""``limpet config``: are the settings right, what does one say, and how to change it without touching the rest."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Container, Iterator, Mapping
from datetime import date, time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli import output
from bot.cli.options import JsonOption
from bot.errors import ConfigError, Problem, UsageError
from bot.home import Home

if TYPE_CHECKING:
    from bot.config import Draft, Settings
    from bot.config_file import ConfigFile
    from bot.toml_positions import Key

app = typer.Typer(help="Check, read and change the settings. Comments and order in the file survive every change.")

KeyArgument = Annotated[str, typer.Argument(help="A setting, such as models.default or bindings[0].agent.")]
ValueArgument = Annotated[str, typer.Argument(help='As in TOML (5, true, ["a"]) or just a text.')]


@app.command()
def check(ctx: typer.Context, json: JsonOption = False) -> int:
    """Say whether the settings can be used. Exit code 1: yes, but something needs a hand; 2: no."""
    from bot.config import load

    home: Home = ctx.obj
    settings = load(home)
    problems = [
        *settings.degraded.values(),
        *settings.warnings,
        *_model_problems(settings, home),
        *_embedder_problems(settings, home),
        *_voice_problems(settings, home),
    ]
    if problems:
        lines = ["The settings can be used, but:", *map(str, problems)]
    elif home.config.exists():
        lines = [f"The settings are fine: {home.config}"]
    else:
        lines = [f"All settings have their defaults, and that is fine: there is no {home.config}"]
    data = {"ok": not problems, "file": str(home.config), "problems": [problem.as_dict() for problem in problems]}
    output.result("\n".join(lines), data, as_json=json)
    return 1 if problems else 0


@app.command()
def get(ctx: typer.Context, key: KeyArgument = "", json: JsonOption = False) -> None:
    """Print a setting as it counts: from the environment, the file or its default. Without KEY: what the file sets."""
    from bot.config import load
    from bot.config_file import dotted, read, toml_value

    home: Home = ctx.obj
    file = read(home.config)
    settings = load(home)
    path = _path(key) if key else ()
    value = _at(path, _shown((), _effective(settings, file) if path else file.data, file), file)
    if value is None:
        output.note(f"{key} is not set")
    elif not (path or value):
        output.note(f"Nothing is set in {home.config}: everything has its default.")
        value = {}
    if _holds_tables(value):
        text = "\n".join(f"{dotted(own)} = {toml_value(leaf)}" for own, leaf in _leaves(path, value))
    else:
        text = "" if value is None or not (path or value) else value if isinstance(value, str) else toml_value(value)
    output.result(text, {"key": key, "value": value}, as_json=json)


@app.command("set", context_settings={"ignore_unknown_options": True})  # a value may be -100123
def set_value(ctx: typer.Context, key: KeyArgument, value: ValueArgument, json: JsonOption = False) -> None:
    """Change a setting, if the whole is valid then. A secret is kept in .env, and the file only names it."""
    from bot.config import secret_variable
    from bot.config_file import read
    from bot.environment import references

    home: Home = ctx.obj
    path = _path(key)
    file = read(home.config)
    old = _raw(path, file)
    variable = None if any(references(value)) else secret_variable(path, file.data)
    before = _before(home)
    new = _accepted(home, path, value) if variable is None else _stored(home, path, variable, value)
    _tell(key, _shown(path, old, file), _shown(path, new, file), json)
    for word in _after_change(home, path, before.agents if before else path):
        output.note(word)


@app.command()
def unset(ctx: typer.Context, key: KeyArgument, json: JsonOption = False) -> None:
    """Take a setting out of the file, so that its default counts; a secret out of .env as well."""
    from bot.config import Draft, secret_variable, set_by
    from bot.config_file import read
    from bot.environment import Environment, references, remove

    home: Home = ctx.obj
    path = _path(key)
    file = read(home.config)
    old = _raw(path, file)
    environment = Environment.of(home)
    variable = secret_variable(path, file.data)
    is_stored = variable in environment.stored
    if old is None and not is_stored:
        setter = set_by(path, file, environment)
        mend = f"{setter} sets it, in {environment.place(setter)}" if setter else "see what is: limpet config get"
        raise UsageError(f"{key} is not set in {home.config}", mend)
    if old is not None:
        Draft.of(home, {path: None}).write()
    if variable is not None and is_stored:
        if variable in references(read(home.config).data):
            output.note(f"{variable} stays in {home.env_file}: another setting names it.")
        else:
            remove(home.env_file, variable)
            output.note(f"{variable} is taken out of {home.env_file}.")
    _tell(key, _shown(path, old, file), None, json)
    for word in _after_change(home, path, path):
        output.note(word)


@app.command()
def path(ctx: typer.Context, json: JsonOption = False) -> None:
    """Print where the settings file is, or would be."""
    home: Home = ctx.obj
    output.result(str(home.config), {"path": str(home.config), "exists": home.config.exists()}, as_json=json)


def _model_problems(settings: Settings, home: Home) -> Iterator[Problem]:
    """Models that can't answer: the name means nothing, or there is no key, no package, no weights."""
    from bot.models import obstacle

    asked: dict[Key, str | None] = {("models", "default"): None} if settings.models.default is None else {}
    for key, name in {**asked, **_asked_models(settings)}.items():
        if problem := obstacle(name, settings, home):
            yield _placed(_written_at(key, name, settings), problem, home)


def _written_at(key: Key, name: str | None, settings: Settings) -> Key:
    """Where the model that ``key`` asks for is written out: there, or in the table of that name."""
    table = settings.models.named().get(name or "")
    return ("models", str(name), "model") if table is not None and table.model else key


def _embedder_problems(settings: Settings, home: Home) -> Iterator[Problem]:
    """The embedder that can't be had."""
    from bot.models import embedder_obstacle

    if problem := embedder_obstacle(settings, home):
        yield _placed(("memory", "embedder"), problem, home)


def _voice_problems(settings: Settings, home: Home) -> Iterator[Problem]:
    """The model that is to understand voice notes and can't."""
    from bot.models import transcriber_obstacle

    if problem := transcriber_obstacle(settings, home):
        yield _placed(_written_at(("voice", "model"), settings.voice.model, settings), problem, home)


def _placed(key: Key, problem: Problem, home: Home) -> Problem:
    """``problem`` with the setting that it is about, and its line where the file has it."""
    from bot.config import set_by
    from bot.config_file import dotted, read
    from bot.environment import Environment

    file = read(home.config)
    setter = set_by(key, file, Environment.of(home))
    place = file.position(key) if file.has(key) and setter is None else None
    return Problem(
        f"{setter or dotted(key)}: {problem.message}",
        problem.mend,
        dotted(key),
        file=file.path if place else None,
        line=place.line if place else None,
        column=place.column if place else None,
    )


def _write(draft: Draft, path: Key, home: Home) -> None:
    """Write it, unless what it changes is hardly meant. Raises ConfigError and UsageError."""
    if (before := _before(home)) is not None:
        _refuse_a_mistyped_agent(draft.settings, before, path)
        _refuse_a_misnamed_model(draft.settings, before, home)
    draft.write()


def _before(home: Home) -> Settings | None:
    """The settings as they are, None where they can't be used: this very change may mend them."""
    from bot.config import load

    try:
        return load(home)
    except ConfigError:
        return None


def _refuse_a_mistyped_agent(new: Settings, old: Settings, path: Key) -> None:
    """A key of an agent that there is none of makes one, with a workspace: not by a slip of the finger."""
    from bot.spelling import closest

    name = str(path[1]) if len(path) > 2 and path[0] == "agents" else ""
    if name in new.agents and name not in old.agents and (meant := closest(name, old.agents)):
        raise UsageError(
            f"no agent is called {name!r}",
            f"did you mean {meant!r}? If a new one is meant, make it first: limpet config set agents.{name} {{}}",
        )


def _refuse_a_misnamed_model(new: Settings, old: Settings, home: Home) -> None:
    """Of what is there already nothing is said: one can't mend two settings at once."""
    from agents.catalog import misnamed
    from agents.weights import WeightsStore
    from bot.config_file import dotted

    weights, before = WeightsStore(home.models), _model_names(old)
    problems = []
    for key, name in _model_names(new).items():
        if before.get(key) != name and (error := misnamed(name, new.models, weights)):
            problems.append(Problem(f"{dotted(key)}: {error.what}", error.mend, dotted(key)))
    if problems:
        raise ConfigError(problems)


def _model_names(settings: Settings) -> dict[Key, str]:
    """Every setting that names a model."""
    tables: dict[Key, str] = {
        ("models", name, "model"): own.model for name, own in settings.models.named().items() if own.model
    }
    listening: dict[Key, str] = {("voice", "model"): settings.voice.model} if settings.voice.model else {}
    return tables | _asked_models(settings) | listening


def _asked_models(settings: Settings) -> dict[Key, str]:
    """The models that are asked for, each of a list by its place."""
    from agents.settings import in_order

    settings_of: dict[Key, str | tuple[str, ...] | None] = {
        ("models", "default"): settings.models.default,
        ("models", "small"): settings.models.small,
        **{("agents", name, "model"): own.model for name, own in settings.agents.items()},
    }
    return {
        key if isinstance(value, str) else (*key, index): name
        for key, value in settings_of.items()
        for index, name in enumerate(in_order(value))
    }


def _path(key: str) -> Key:
    from bot.config_file import key_of

    try:
        return key_of(key)
    except ValueError as error:
        raise UsageError(str(error), "write it as models.default or bindings[0].agent") from error


def _accepted(home: Home, path: Key, text: str) -> Any:
    """Set ``path`` to what ``text`` says as TOML or, where that isn't taken, to the text itself; what was taken."""
    from bot.config import Draft

    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    try:
        draft = Draft.of(home, {path: value})
    except ConfigError:
        if isinstance(value, str | list | dict):
            raise
        value = text  # an id such as 123456789 is a text that looks like a number
        draft = Draft.of(home, {path: value})
    _write(draft, path, home)
    return value


def _stored(home: Home, path: Key, variable: str, value: str) -> str:
    """Keep the secret ``value`` in .env and have ``path`` name it; what the file says now."""
    from bot.config import Draft
    from bot.environment import store

    new = f"${{{variable}}}"
    draft = Draft.of(home, {path: new}, {**os.environ, variable: value})
    try:
        store(home.env_file, variable, value)
    except ValueError as error:
        raise UsageError(str(error), "a secret is one line") from error
    draft.write()
    output.note(f"The value is in {home.env_file} as {variable}.")
    if os.environ.get(variable) not in (None, "", value):
        output.note(f"The environment has another {variable}, and that wins.")
    return new


def _after_change(home: Home, path: Key, known: Container[object]) -> Iterator[str]:
    """What to know once ``path`` was changed: who else sets it, what can't work now, who has to be told.

    ``known`` are the agents that are no news.
    """
    from bot.config import load, set_by
    from bot.config_file import dotted, read
    from bot.environment import Environment, references
    from bot.health import deaf, speechless, unembedded
    from bot.start_record import advice

    environment = Environment.of(home)
    file = read(home.config)
    setter = set_by(path, file, environment)
    if setter is not None and setter not in references(_raw(path, file)):
        yield f"{setter} in {environment.place(setter)} sets {dotted(path)}, and that wins."
    if path[0] in ("models", "agents"):
        yield from (f"Note: {finding.what} — {finding.mend}" for finding in speechless(load(home), home))
    if path[0] == "memory":
        yield from (f"Note: {finding.what} — {finding.mend}" for finding in unembedded(load(home), home))
    if path[0] in ("models", "voice"):
        yield from (f"Note: {finding.what} — {finding.mend}" for finding in deaf(load(home), home))
    if path[0] == "agents" and len(path) > 1 and str(path[1]) not in known:
        yield f"{path[1]} is a new agent, with a memory of its own."
    if word := advice(home):
        yield word


def _tell(key: str, old: Any, new: Any, as_json: bool) -> None:
    from bot.config_file import toml_value

    def said(value: Any) -> str:
        return "not set" if value is None else toml_value(value)

    output.result(f"{key}: {said(old)} → {said(new)}", {"key": key, "old": old, "new": new}, as_json=as_json)


def _raw(path: Key, file: ConfigFile) -> Any:
    try:
        return file.get(path)
    except KeyError:
        return None


def _effective(settings: Settings, file: ConfigFile) -> dict[str, Any]:
    """All settings as in the file, the adapters' among the others; channels that can't start as they are written."""
    values = settings.model_dump()
    for section in values["channels"].values():
        section.update(section.pop("options"))
    written = file.data.get("channels", {})
    values["channels"] = {**written, **values["channels"]}
    return values


def _shown(path: Key, value: Any, file: ConfigFile) -> Any:
    """``value`` of ``path`` in plain types, secrets masked."""
    from bot.config_keys import is_secret
    from bot.environment import references
    from bot.redaction import masked

    if isinstance(value, Mapping):
        return {name: _shown((*path, name), own, file) for name, own in value.items()}
    if isinstance(value, set | frozenset):
        value = sorted(value)
    if isinstance(value, list | tuple):
        return [_shown((*path, index), own, file) for index, own in enumerate(value)]
    if value is None or isinstance(value, bool | int | float | date | time):
        return value
    text = value.get_secret_value() if hasattr(value, "get_secret_value") else str(value)
    return masked(text) if is_secret(path, file.data) and not any(references(text)) else text


def _at(path: Key, values: Any, file: ConfigFile) -> Any:
    """The value at ``path``. Raises UsageError where there is no such setting."""
    from bot.config_file import dotted
    from bot.config_keys import fields_of
    from bot.spelling import did_you_mean

    node = values
    for depth, part in enumerate(path):
        if isinstance(part, int) and isinstance(node, list):
            if part >= len(node):
                raise UsageError(f"{dotted(path[:depth])} has no item {part}", f"it has {len(node)}, from [0] on")
            node = node[part]
        elif isinstance(node, Mapping) and part in node:
            node = node[part]
        else:
            known = list(fields_of(path[:depth], file.data) or (node if isinstance(node, Mapping) else ()))
            if part in known:
                return None
            raise UsageError(f"unknown key {str(part)!r}", did_you_mean(str(part), known))
    return node


def _leaves(path: Key, value: Any) -> Iterator[tuple[Key, Any]]:
    """The paths and values below ``value``, without what is not set."""
    if _holds_tables(value):
        for name, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _leaves((*path, name), inner)
    elif value is not None:
        yield path, value


def _holds_tables(value: Any) -> bool:
    """Whether ``value`` is a table, or a list of them, with something in it."""
    return bool(value) and (isinstance(value, Mapping) or (isinstance(value, list) and isinstance(value[0], Mapping)))
