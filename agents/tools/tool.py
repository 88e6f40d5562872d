"""A tool: one function, what the model is told of it, and how a call of the model becomes a call of the function.

The schema comes from the function's typed signature and docstring. Arguments are checked before anything runs; what is
wrong with them is told to the model, never raised. Knows no particular tool.
"""

from __future__ import annotations

import inspect
import json
import types
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import structlog

from agents.model import ToolSpec

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a tool gives back to the model. ``noted`` is what it wrote to the memory: pairs of text and citation."""

    text: str
    is_error: bool = False
    noted: tuple[tuple[str, str], ...] = ()


Function = Callable[..., Awaitable[Outcome]]

_JSON_TYPES: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


class ToolError(Exception):
    """A tool could not do what it was asked; the message tells the model why and what to do instead."""


@dataclass(frozen=True, slots=True)
class Tool:
    """``read_only`` tools change nothing."""

    spec: ToolSpec
    function: Function
    read_only: bool = False

    async def call(self, arguments: str) -> Outcome:
        """Run the tool with the JSON that a model wrote. Whatever goes wrong is an outcome for the model to read."""
        try:
            values = self._checked(arguments)
            return await self.function(**values)
        except ToolError as error:
            return Outcome(str(error), is_error=True)
        except Exception as error:  # a fault in one tool must not end the turn; the model can still answer
            log.exception("tool.failed", tool=self.spec.name)
            return Outcome(f"The tool failed ({type(error).__name__}). Go on without it.", is_error=True)

    def _checked(self, arguments: str) -> dict[str, Any]:
        try:
            values = json.loads(arguments or "{}")
        except ValueError as error:
            raise ToolError(f"Not run: the arguments are not valid JSON ({error}). Send them again.") from error
        if not isinstance(values, dict):
            raise ToolError("Not run: the arguments must be a JSON object.")
        properties = self.spec.parameters["properties"]
        for name, value in values.items():
            if name not in properties:
                raise ToolError(f"Not run: no argument is called {name!r}. There are: {', '.join(properties)}.")
            _check(name, value, properties[name])
        missing = [name for name in self.spec.parameters["required"] if name not in values]
        if missing:
            raise ToolError(f"Not run: the argument {missing[0]!r} is missing.")
        return values


def _check(name: str, value: Any, schema: Mapping[str, Any]) -> None:
    wanted = schema["type"]
    fits = {
        "string": isinstance(value, str),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, int | float) and not isinstance(value, bool),
        "boolean": isinstance(value, bool),
    }[wanted]
    if not fits:
        raise ToolError(f"Not run: {name!r} must be of type {wanted}, not {json.dumps(value)[:80]}.")
    if "enum" in schema and value not in schema["enum"]:
        raise ToolError(f"Not run: {name!r} must be one of {', '.join(schema['enum'])}.")


def tool(function: Function, *, read_only: bool = False) -> Tool:
    """Make a tool of an async function.

    Its docstring is the description: the text, then one ``name: meaning`` line for each argument. Parameters are str,
    int, float, bool or a Literal of strings; one with a default is optional.
    """
    text, meanings = _docstring(function)
    hints = get_type_hints(function)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        properties[name] = {**_schema(hints[name]), "description": meanings[name]}
        if parameter.default is inspect.Parameter.empty:
            required.append(name)
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return Tool(ToolSpec(function.__name__, text, schema), function, read_only)


def _docstring(function: Function) -> tuple[str, dict[str, str]]:
    text: list[str] = []
    meanings: dict[str, str] = {}
    parameters = inspect.signature(function).parameters
    for line in (inspect.getdoc(function) or "").splitlines():
        name, colon, meaning = line.partition(": ")
        if colon and name in parameters:
            meanings[name] = meaning
        elif line:
            text.append(line)
    return " ".join(text), meanings


def _schema(hint: Any) -> dict[str, Any]:
    origin = get_origin(hint)
    if origin is Literal:
        return {"type": "string", "enum": list(get_args(hint))}
    if origin in (Union, types.UnionType):
        (hint,) = (arm for arm in get_args(hint) if arm is not type(None))
    return {"type": _JSON_TYPES[hint]}
