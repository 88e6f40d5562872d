"""``limpet config``: are the settings right, what does one say, and how to change it without touching the rest."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli import output
from bot.cli.options import JsonOption
from bot.errors import ConfigError, Problem, UsageError
from bot.home import Home

if TYPE_CHECKING:
    from bot.config import Settings
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
    problems = [*settings.degraded.values(), *settings.warnings, *_model_problems(settings, home)]
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
    from bot.config_file import read, toml_value

    home: Home = ctx.obj
    file = read(home.config)
    settings = load(home)
    path = _path(key) if key else ()
    value = _at(path, _shown((), _effective(settings, file) if path else file.data, file), file)
    if isinstance(value, Mapping):
        text = "\n".join(f"{name} = {toml_value(leaf)}" for name, leaf in _leaves((), value))
    elif value is None:
        output.note(f"{key} is not set")
        text = ""
    else:
        text = value if isinstance(value, str) else toml_value(value)
    output.result(text, {"key": key, "value": value}, as_json=json)


@app.command("set", context_settings={"ignore_unknown_options": True})  # a value may be -100123
def set_value(ctx: typer.Context, key: KeyArgument, value: ValueArgument, json: JsonOption = False) -> None:
    """Change a setting, if the whole is valid then. A secret is kept in .env, and the file only names it."""
    from bot.config import Draft, secret_variable
    from bot.config_file import read
    from bot.environment import references, store

    home: Home = ctx.obj
    path = _path(key)
    file = read(home.config)
    old = _raw(path, file)
    variable = None if any(references(value)) else secret_variable(path, file.data)
    if variable is None:
        new = _accepted(home, path, value)
    else:
        new = f"${{{variable}}}"
        draft = Draft.of(home, {path: new}, {**os.environ, variable: value})
        store(home.env_file, variable, value)
        draft.write()
        output.note(f"The value is in {home.env_file} as {variable}")
    _tell(key, _shown(path, old, file), _shown(path, new, file), json)


@app.command()
def unset(ctx: typer.Context, key: KeyArgument, json: JsonOption = False) -> None:
    """Take a setting out of the file, so that its default counts."""
    from bot.config import Draft
    from bot.config_file import read

    home: Home = ctx.obj
    path = _path(key)
    file = read(home.config)
    old = _raw(path, file)
    if old is None:
        raise UsageError(f"{key} is not set in {home.config}", "see what is: limpet config get")
    Draft.of(home, {path: None}).write()
    _tell(key, _shown(path, old, file), None, json)


@app.command()
def path(ctx: typer.Context, json: JsonOption = False) -> None:
    """Print where the settings file is, or would be."""
    home: Home = ctx.obj
    output.result(str(home.config), {"path": str(home.config), "exists": home.config.exists()}, as_json=json)


def _model_problems(settings: Settings, home: Home) -> Iterator[Problem]:
    """Names of models that mean nothing, or whose weights are not here."""
    from agents.catalog import resolve
    from agents.errors import ModelError
    from agents.weights import WeightsStore
    from bot.config_file import key_of, read
    from bot.environment import Environment

    file = read(home.config)
    variables = Environment.of(home).variables
    named = {"models.default": None, **{f"agents.{n}.model": a.model for n, a in settings.agents.items() if a.model}}
    for key, name in named.items():
        try:
            resolve(settings.models, variables, WeightsStore(home.models), name)
        except ModelError as error:
            place = file.position(key_of(key)) if file.has(key_of(key)) else None
            line, column = (place.line, place.column) if place else (None, None)
            yield Problem(f"{key}: {error}", key=key, file=file.path if place else None, line=line, column=column)


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
        Draft.of(home, {path: value}).write()
    except ConfigError:
        if isinstance(value, str | list | dict):
            raise
        Draft.of(home, {path: text}).write()  # an id such as 123456789 is a text that looks like a number
        return text
    return value


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
    if isinstance(value, list | tuple):
        return [_shown((*path, index), own, file) for index, own in enumerate(value)]
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value.get_secret_value() if hasattr(value, "get_secret_value") else str(value)
    return masked(text) if is_secret(path, file.data) and not any(references(text)) else text


def _at(path: Key, values: Any, file: ConfigFile) -> Any:
    """The value at ``path``. Raises UsageError where there is no such setting."""
    from bot.config_keys import fields_of
    from bot.spelling import did_you_mean

    node = values
    for depth, part in enumerate(path):
        try:
            node = node[part]
        except (LookupError, TypeError):
            known: Sequence[str] = list(
                fields_of(path[:depth], file.data) or (node if isinstance(node, Mapping) else ())
            )
            if part in known:
                return None
            raise UsageError(f"unknown key {str(part)!r}", did_you_mean(str(part), known)) from None
    return node


def _leaves(path: Key, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The dotted names and values below ``values``, without what is not set."""
    from bot.config_file import dotted

    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves((*path, name), value)
        elif value is not None:
            yield dotted((*path, name)), value
