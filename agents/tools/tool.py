"""A tool: one function, what the model is told of it, and how a call of the model becomes a call of the function.

The schema comes from the function's typed signature and docstring. Arguments and permission are checked before anything
runs, and a result that is too long is cut; what is wrong is told to the model, never raised. Knows no particular tool.
"""

from __future__ import annotations

import inspect
import json
import types
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

import structlog

from agents.model import ToolSpec
from agents.tools.permission import NOTHING, Need, Permission
from agents.tools.settings import LONGEST_RESULT

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a tool gives back to the model. ``noted`` is what it wrote to the memory: pairs of text and citation.

    ``is_foreign``: some of the text is not the scope's own words but a file's, another chat's, a page's. While it is in
    the window ``Permission.is_tainted`` has to say so. ``awaits_owner``: nothing was done yet, see ``Refusal``.
    """

    text: str
    is_error: bool = False
    noted: tuple[tuple[str, str], ...] = ()
    is_foreign: bool = False
    awaits_owner: bool = False


Function: TypeAlias = Callable[..., Awaitable[Outcome]]

Tell: TypeAlias = Callable[[str], None]
"""Takes one short line about how far a tool has come, for the person who waits."""

_SPECS: dict[types.CodeType, tuple[ToolSpec, frozenset[str]]] = {}
"""What was found of each function, which is always the same (see ``_described``)."""

_GIVEN = frozenset({"tell", "room", "permission"})
"""Keywords that a function may have and no model is told of."""

_MARGIN = 400
"""Characters of a result that are left for what stands around it, a source and a hint; at most half of a short one."""

_JSON_TYPES: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


class ToolError(Exception):
    """A tool could not do what it was asked; the message tells the model why and what to do instead."""


@dataclass(frozen=True, slots=True)
class Tool:
    """``read_only`` tools change nothing, and may run beside each other. ``given`` are the keywords that it is given.

    ``permission`` None lets every call through. ``longest`` is in characters: a function that can page its result is
    given the ``room`` there is and says how to read on; what is over all the same is cut off.
    """

    spec: ToolSpec
    function: Function
    read_only: bool = False
    need: Need = NOTHING
    given: frozenset[str] = frozenset()
    permission: Permission | None = None
    longest: int = LONGEST_RESULT

    async def call(self, arguments: str, tell: Tell = lambda _: None) -> Outcome:
        """Run the tool with the JSON that a model wrote. Whatever goes wrong is an outcome for the model to read."""
        try:
            values = self._checked(arguments)
            refusal = self.permission and self.permission.refusal(self.spec.name, self.need, arguments)
            if refusal:
                return Outcome(refusal.text, is_error=True, awaits_owner=refusal.awaits_owner)
            given = {"tell": tell, "room": self._room, "permission": self.permission}
            return self._cut(await self.function(**values, **{name: given[name] for name in self.given}))
        except ToolError as error:
            return self._cut(Outcome(str(error), is_error=True))
        except Exception as error:  # a fault in one tool must not end the turn; the model can still answer
            log.exception("tool.failed", tool=self.spec.name)
            return Outcome(f"The tool failed ({type(error).__name__}). Go on without it.", is_error=True)

    @property
    def _room(self) -> int:
        return self.longest - min(_MARGIN, self.longest // 2)

    def _checked(self, arguments: str) -> dict[str, Any]:
        try:
            values = json.loads(arguments or "{}")
        except (ValueError, RecursionError) as error:
            raise ToolError(f"Not run: the arguments are not valid JSON ({error}). Send them again.") from error
        if not isinstance(values, dict):
            raise ToolError("Not run: the arguments must be a JSON object.")
        properties, required = self.spec.parameters["properties"], self.spec.parameters["required"]
        # Many models send null for what they leave out.
        values = {name: value for name, value in values.items() if value is not None or name in required}
        for name, value in values.items():
            if name not in properties:
                raise ToolError(f"Not run: no argument is called {name!r}. There are: {', '.join(properties)}.")
            _check(name, value, properties[name])
        missing = [name for name in required if name not in values]
        if missing:
            raise ToolError(f"Not run: the argument {missing[0]!r} is missing.")
        return values

    def _cut(self, outcome: Outcome) -> Outcome:
        """``outcome`` within ``longest`` characters, cut at a line end; a fence that this left open is closed."""
        text = outcome.text
        if len(text) <= self.longest:
            return outcome
        room = self._room
        end = text.rfind("\n", room // 2, room)
        kept = text[: end if end > 0 else room]
        fence = "\n</note>" if kept.rfind("<note ") > kept.rfind("</note>") else ""
        said = f"(Cut: {len(kept):,} of {len(text):,} characters are shown. Ask for less at once.)"
        return replace(outcome, text=f"{kept}{fence}\n{said}")


def _check(name: str, value: Any, schema: Mapping[str, Any]) -> None:
    wanted = schema["type"]
    fits = {
        "string": isinstance(value, str),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, int | float) and not isinstance(value, bool),
        "boolean": isinstance(value, bool),
        "array": isinstance(value, list),
    }[wanted]
    if not fits:
        raise ToolError(f"Not run: {name!r} must be of type {wanted}, not {json.dumps(value)[:80]}.")
    if "enum" in schema and value not in schema["enum"]:
        raise ToolError(f"Not run: {name!r} must be one of {', '.join(schema['enum'])}.")
    for item in value if wanted == "array" else ():
        _check(name, item, schema["items"])


def tool(function: Function, *, name: str | None = None, read_only: bool = False, need: Need = NOTHING) -> Tool:
    """Make a tool of an async function; ``name`` None calls it as that is called.

    Its docstring is the description: the text, then a ``name: meaning`` line for each argument that needs one.
    Parameters are str, int, float, bool, a Literal of strings or a list of one of these, any of them ``| None``; one
    with a default is optional. Keywords called ``tell`` (a ``Tell``), ``room`` (characters that its result may hold)
    and ``permission`` (the turn's) are no part of the schema: it is given them.
    """
    spec, given = _described(function)
    return Tool(replace(spec, name=name) if name else spec, function, read_only, need, given)


def _described(function: Function) -> tuple[ToolSpec, frozenset[str]]:
    """What a model is told of ``function``, and which of its keywords it is given besides.

    Tools are made for each agent anew, of the same few functions: each is looked into once. By its code, for an inner
    function is another one each time.
    """
    code = function.__code__
    if code not in _SPECS:
        _SPECS[code] = _looked_into(function)
    return _SPECS[code]


def _looked_into(function: Function) -> tuple[ToolSpec, frozenset[str]]:
    text, meanings = _docstring(function)
    hints = get_type_hints(function)
    properties: dict[str, Any] = {}
    required: list[str] = []
    parameters = inspect.signature(function).parameters
    given = _GIVEN.intersection(parameters)
    for each in (each for each in parameters if each not in given):
        properties[each] = _schema(hints[each]) | ({"description": meanings[each]} if each in meanings else {})
        if parameters[each].default is inspect.Parameter.empty:
            required.append(each)
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return ToolSpec(function.__name__, text, schema), given


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
    if origin is list:
        return {"type": "array", "items": _schema(*get_args(hint))}
    if origin in (Union, types.UnionType):
        (hint,) = (arm for arm in get_args(hint) if arm is not type(None))
        return _schema(hint)
    return {"type": _JSON_TYPES[hint]}
