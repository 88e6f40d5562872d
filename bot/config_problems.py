"""What is wrong with a configuration, in words: the place, the key, the value seen, and what to write instead.

Turns the errors of validation into ``Problem``s. Decides nothing about them: that is ``bot.config``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic_core import ErrorDetails

from bot.config_file import ConfigFile, dotted, toml_value
from bot.config_keys import example_of, field_at, fields_of, is_secret
from bot.environment import Environment, Unresolved
from bot.errors import Problem
from bot.redaction import Redactor, masked
from bot.spelling import closest, did_you_mean
from bot.toml_positions import Key

_LONGEST_VALUE = 60

_MUST = {
    "bool": "must be true or false",
    "int": "must be a whole number",
    "float": "must be a number",
    "string": "must be text",
    "list": "must be a list",
    "tuple": "must be a list",
    "dict": "must be a table",
    "mapping": "must be a table",
    "model": "must be a table",
    "path": "must be a path",
    "url": "must be a URL",
}
"""By pydantic's error type without its end ("bool_parsing", "int_type")."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where the values came from; ``data`` is what was validated, references resolved and the environment laid over."""

    file: ConfigFile
    environment: Environment
    data: Mapping[str, Any]

    def problem(self, key: Key, message: str, mend: str | None = None, *, value: Any = None) -> Problem:
        """A problem of ``key``, at its line; one that came from a variable names that instead."""
        shown = None if value is None else self.shown(key, value)
        variable = self.variable(key)
        if variable is not None:
            return Problem(f"{variable}: {message}", mend, dotted(key), shown)
        place = self.file.position(key)
        line, column = (place.line, place.column) if place else (None, None)
        return Problem(message, mend, dotted(key), shown, self.file.path, line, column)

    def variable(self, key: Key) -> str | None:
        """The variable that set ``key`` or the list or table around it; None where the file did, or nothing."""
        names = {name.upper(): name for name in self.environment.variables}
        if key[:2] == ("models", "default") and "LIMPET_MODEL" in names:
            return "LIMPET_MODEL"
        while key:
            if all(isinstance(part, str) for part in key):
                name = "LIMPET_" + "__".join(str(part).upper() for part in key)
                if name in names:
                    return names[name]
            key = key[:-1]
        return None

    def shown(self, key: Key, value: Any) -> str:
        """``value`` as in the file, shortened, masked where it is or looks secret."""
        if is_secret(key, self.data):
            return masked(str(value))
        try:
            text = toml_value(value)
        except (TypeError, ValueError):
            text = repr(value)
        text = Redactor()(" ".join(text.split()))
        return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def invalid(error: ErrorDetails, source: Source) -> Problem:
    """The problem that one error of pydantic stands for."""
    key = key_of_error(error, source.data)
    kind = error["type"]
    if kind == "extra_forbidden":
        return unknown_key(key, source)
    context = error.get("ctx", {})
    if kind == "refused":
        return source.problem(key, str(context["message"]), context["mend"], value=_seen(error))
    field = field_at(key, source.data)
    name = dotted(key[-1:])
    value = example_of(field) if field is not None else None
    example = f"for example: {name} = {toml_value(value)}" if value is not None else None
    if kind == "missing":
        return source.problem(key, f"{dotted(key[:-1]) or 'the file'} has no {name}", example)
    must = _MUST.get(re.sub(r"_(type|parsing|parsing_size|from_float|attributes_type)$", "", kind)) or _own_words(error)
    if kind == "value_error":
        return source.problem(key, f"{name}: {must}", example, value=_seen(error))
    value = error["input"]
    if kind in ("literal_error", "enum") and isinstance(value, str):
        found = closest(value, re.findall(r"'([^']*)'", must))
        example = f"did you mean {found!r}?" if found else example
    return source.problem(key, f"{name} {must}, not {source.shown(key, value)}", example, value=value)


def unknown_key(key: Key, source: Source) -> Problem:
    """``key`` is none of the keys of its table."""
    known = fields_of(key[:-1], source.data) or {}
    word = str(key[-1])
    return source.problem(key, f"unknown key {word!r}", did_you_mean(word, known))


def unresolved(reference: Unresolved, source: Source) -> Problem:
    """A reference to a variable that is nowhere, or one that is malformed."""
    key = dotted(reference.key)
    if reference.name is None:
        return source.problem(
            reference.key, f"{key} holds '${{' without a name and '}}'", "write ${NAME}, or $${ for the two characters"
        )
    return source.problem(
        reference.key,
        f"{key} needs the variable {reference.name}: {source.environment.places}, and no default beside it",
        f"add {reference.name}=… to {source.environment.env_file}, or write ${{{reference.name}:-default}}",
    )


def key_of_error(error: ErrorDetails, data: Mapping[str, Any]) -> Key:
    """The path of the key that ``error`` is about, as it stands in the file."""
    parts = [part for part in error["loc"] if part != "[key]"]
    if parts[:1] == ["channels"] and parts[2:3] == ["options"]:
        del parts[2]
    key: Key = ()
    node: Any = data
    for part in parts:
        is_item = isinstance(node, list) and isinstance(part, int) and part < len(node)
        if is_item or (isinstance(node, Mapping) and part in node):
            node = node[cast(Any, part)]
        elif error["type"] == "missing" and part == parts[-1]:
            return (*key, part)
        else:  # the name of a union's member
            break
        key = (*key, part)
    return key


def _seen(error: ErrorDetails) -> Any:
    """The value an error is about, unless it is a whole table."""
    return None if isinstance(error["input"], Mapping) else error["input"]


def _own_words(error: ErrorDetails) -> str:
    text = error["msg"].removeprefix("Value error, ").replace("Input should be", "must be", 1)
    return text[:1].lower() + text[1:]
