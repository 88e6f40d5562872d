"""Which keys may stand where in the configuration: the settings' models, walked by path.

For suggestions, examples, masking and completion. Knows no file and no value, except that the ``kind`` of a channel
says which adapter's keys stand in its section.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from adapters.errors import AdapterError
from adapters.registry import settings_model
from agents.settings import ModelsSettings, NamedModel
from bot.redaction import names_a_secret
from bot.settings import Settings
from bot.tables import ChannelSettings
from bot.toml_positions import Key


def fields_of(path: Key, data: Mapping[str, Any]) -> Mapping[str, FieldInfo] | None:
    """The keys of the table at ``path``; None where any name may stand (``agents``) or no table is."""
    if len(path) == 2 and path[0] == "channels":
        return _channel_fields(str(path[1]), data)
    if len(path) > 2 and path[0] == "channels":
        inner = _channel_fields(str(path[1]), data).get(str(path[2]))
        return _descend(inner.annotation if inner else None, path[3:])
    if len(path) > 1 and path[0] == "models" and path[1] not in ModelsSettings.model_fields:
        return _descend(NamedModel, path[2:])
    return _descend(Settings, path)


def field_at(path: Key, data: Mapping[str, Any]) -> FieldInfo | None:
    """The setting at ``path``; None for a table, an item of a list, and what does not exist."""
    if not path:
        return None
    return (fields_of(path[:-1], data) or {}).get(str(path[-1]))


def holds_secret(path: Key, data: Mapping[str, Any]) -> bool:
    """Whether the setting at ``path`` is a secret by its type."""
    field = field_at(path, data)
    return field is not None and _holds(field.annotation, SecretStr)


def is_secret(path: Key, data: Mapping[str, Any]) -> bool:
    """Whether the value at ``path`` is not to be shown: by its type, else by its name."""
    if holds_secret(path, data):
        return True
    return any(isinstance(part, str) and names_a_secret(part) for part in path[-2:])


def secret_fields(section: str, data: Mapping[str, Any]) -> list[str]:
    """The keys of a channel's section that hold its secrets."""
    return [name for name, field in _channel_fields(section, data).items() if _holds(field.annotation, SecretStr)]


def all_keys(data: Mapping[str, Any]) -> Iterator[Key]:
    """Every key that may be set; for ``agents`` and ``channels`` below the names that ``data`` has."""
    yield from _keys_below((), Settings, data)


def example_of(field: FieldInfo) -> Any:
    """A value that would be accepted: the field's own, its default, or one of its type; None where none is known."""
    if field.examples:
        return field.examples[0]
    default = field.get_default(call_default_factory=True, validated_data={})
    if isinstance(default, bool | int | float | str) and not field.is_required():
        return default
    least = next((limit.ge for limit in field.metadata if hasattr(limit, "ge")), None)
    for kind, example in ((bool, True), (int, least or 10), (float, least or 0.5), (tuple, ["…"]), (list, ["…"])):
        if _holds(field.annotation, kind):
            return example
    choices = [choice for part in _parts(field.annotation) if get_origin(part) is Literal for choice in get_args(part)]
    return choices[0] if choices else None


def _channel_fields(section: str, data: Mapping[str, Any]) -> dict[str, FieldInfo]:
    sections = data.get("channels")
    own = sections.get(section) if isinstance(sections, Mapping) else None
    kind = own.get("kind", section) if isinstance(own, Mapping) else section
    fields = {name: field for name, field in ChannelSettings.model_fields.items() if name != "options"}
    try:
        return {**fields, **settings_model(str(kind)).model_fields}
    except AdapterError:  # no such kind, or its package is missing: the error is told where it matters
        return fields


def _descend(annotation: Any, path: Key) -> Mapping[str, FieldInfo] | None:
    for part in path:
        annotation = _child(annotation, part)
    model = _model(annotation)
    return model.model_fields if model else None


def _child(annotation: Any, part: str | int) -> Any:
    """The type of what stands at ``part`` in a value of the type ``annotation``; None where nothing can."""
    for kind in _parts(annotation):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            field = kind.model_fields.get(str(part))
            return field.annotation if field else None
        if get_origin(kind) in (dict, list, tuple):
            return next(iter(get_args(kind)[-1:] if get_origin(kind) is dict else get_args(kind)), None)
    return None


def _model(annotation: Any) -> type[BaseModel] | None:
    return next((k for k in _parts(annotation) if isinstance(k, type) and issubclass(k, BaseModel)), None)


def _parts(annotation: Any) -> Iterator[Any]:
    """``annotation`` without ``Annotated``, and each side of a union."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _parts(get_args(annotation)[0])
    elif origin in (Union, types.UnionType):
        for side in get_args(annotation):
            yield from _parts(side)
    else:
        yield annotation


def _holds(annotation: Any, kind: type) -> bool:
    return any((get_origin(part) or part) is kind for part in _parts(annotation))


def _keys_below(path: Key, annotation: Any, data: Mapping[str, Any]) -> Iterator[Key]:
    fields = fields_of(path, data)
    if fields is not None:
        for name, field in fields.items():
            yield from _keys_below((*path, name), field.annotation, data)
        return
    inner = next((k for k in _parts(annotation) if get_origin(k) in (dict, list, tuple)), None)
    item = _model(_child(annotation, 0)) if inner is not None else None
    if item is None:
        yield path
    elif get_origin(inner) is dict:
        node: Any = data
        for part in path:
            node = node.get(part, {}) if isinstance(node, Mapping) else {}
        for name in node:
            yield from _keys_below((*path, name), item, data)
    else:
        yield from _keys_below((*path, 0), item, data)
