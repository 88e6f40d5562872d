"""Loads the configuration: the file, the environment over it, one validated ``Settings``, or every problem at once.

A missing secret or package of one channel takes only that channel away (``Settings.degraded``); anything else that is
wrong refuses the whole. ``load`` never touches the file; a ``Draft`` is written only after the same checks.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import EnvSettingsSource

from bot.config_checks import conflicts, origin, warnings
from bot.config_file import ConfigFile, dotted, read
from bot.config_keys import holds_secret, is_secret, secret_fields
from bot.config_problems import Source, invalid, key_of_error, unresolved
from bot.environment import Environment, resolve
from bot.errors import ConfigError, Problem
from bot.home import Home
from bot.settings import UNAVAILABLE, Settings
from bot.toml_positions import Key

__all__ = ["Draft", "Settings", "build", "change", "load", "secret_variable", "set_by"]


def load(home: Home, environ: Mapping[str, str] | None = None) -> Settings:
    """The settings of ``home``. ``environ`` None means the environment of the process. Raises ConfigError."""
    if home.settings is not None and not home.settings.exists():
        raise ConfigError([Problem("is not there", "mend --config or LIMPET_CONFIG", file=home.settings)])
    return build(read(home.config), Environment.of(home, environ))


@dataclass(frozen=True, slots=True)
class Draft:
    """A changed file that has passed every check, and the settings it makes. On the disk only after ``write``."""

    settings: Settings
    file: ConfigFile
    original: ConfigFile

    @classmethod
    def of(cls, home: Home, values: Mapping[Key, Any], environ: Mapping[str, str] | None = None) -> Draft:
        """The file with keys set (None takes one out); all other bytes stay.

        Raises ConfigError, where a problem of a changed key has no line, as it is in no file, and KeyError for a key to
        take out that is not there.
        """
        file = original = read(home.config)
        for key, value in values.items():
            file = file.without(key) if value is None else file.with_value(key, value)
        return cls._checked(file, original, home, environ, tuple(dotted(key) for key in values))

    @classmethod
    def new(cls, home: Home, text: str, environ: Mapping[str, str] | None = None) -> Draft:
        """A whole new file."""
        return cls._checked(ConfigFile(home.config, text), read(home.config), home, environ, ("",))

    @classmethod
    def _checked(
        cls,
        file: ConfigFile,
        original: ConfigFile,
        home: Home,
        environ: Mapping[str, str] | None,
        changed: tuple[str, ...],
    ) -> Draft:
        try:
            return cls(build(file, Environment.of(home, environ)), file, original)
        except ConfigError as error:
            raise ConfigError([_placeless(p) if p.key.startswith(changed) else p for p in error.problems]) from error

    def write(self) -> None:
        """Put it in the place of the file, which must still be as it was read. Raises BotError."""
        self.file.write(self.original)


def change(home: Home, values: Mapping[Key, Any], environ: Mapping[str, str] | None = None) -> Settings:
    """``Draft.of``, written: the settings afterwards."""
    draft = Draft.of(home, values, environ)
    draft.write()
    return draft.settings


def build(file: ConfigFile, environment: Environment) -> Settings:
    """The settings that ``file`` and ``environment`` make together. Raises ConfigError with every problem found."""
    data, missing = resolve(file.data, environment)
    data = _merged(data, _Variables(environment.variables)())
    if model := environment.get("LIMPET_MODEL"):
        data = _merged(data, {"models": {"default": model}})
    data = _with_usual_secrets(data, environment)
    source = Source(file, environment, data)

    degraded: dict[str, Problem] = {}
    fatal: dict[Key, Problem] = {}
    for reference in missing:
        if (section := _section_of(reference.key)) is not None:
            degraded.setdefault(section, unresolved(reference, source))
        else:
            fatal[reference.key] = unresolved(reference, source)
    unsaid = {reference.key for reference in missing}
    for (key, _), error in _errors(data).items():
        if error["type"] == UNAVAILABLE:
            degraded[str(key[1])] = source.problem(key, error["msg"], error["ctx"]["mend"])
        elif error["type"] == "missing" and (section := _section_of(key)) is not None and is_secret(key, data):
            degraded.setdefault(section, _no_secret(key, source))
        elif key not in unsaid or error["type"] == "extra_forbidden":
            fatal[key] = invalid(error, source)
    if fatal:
        raise ConfigError(sorted(fatal.values(), key=_place))
    return _checked(source, degraded)


def secret_variables(section: str, field: str, data: Mapping[str, Any]) -> list[str]:
    """The usual names of the variable that holds a channel's secret, the most particular first.

    ``[channels.telegram]`` takes TELEGRAM_BOT_TOKEN and, of Slack, SLACK_APP_TOKEN. A section of another name takes its
    own (WORK_BOT_TOKEN), and that of its kind as long as no second section is of that kind.
    """
    channels = data["channels"]
    kinds = {name: own.get("kind", name) if isinstance(own, Mapping) else name for name, own in channels.items()}
    kind = kinds[section]
    names = [section]
    if kind != section and list(kinds.values()).count(kind) == 1:
        names.append(kind)
    suffix = "BOT_TOKEN" if field == "token" else field.upper()
    return [f"{str(name).upper().replace('-', '_')}_{suffix}" for name in names]


def secret_variable(key: Key, data: Mapping[str, Any]) -> str | None:
    """The variable that the secret at ``key`` belongs in; None where ``key`` is no secret."""
    if not holds_secret(key, data):
        return None
    if (section := _section_of(key)) is not None:
        return secret_variables(section, str(key[-1]), _with_section(section, data))[0]
    return "LIMPET_" + "__".join(str(part).upper() for part in key)


def set_by(key: Key, file: ConfigFile, environment: Environment) -> str | None:
    """The variable that gives ``key`` its value, whatever ``file`` says; None where the file does, or nothing.

    A channel's secret comes from its usual variables only where the file has none.
    """
    if key == ("models", "default") and environment.get("LIMPET_MODEL"):
        return "LIMPET_MODEL"
    node: Any = _Variables(environment.variables)()
    for part in key:
        node = node.get(part) if isinstance(node, Mapping) else None
    if node is not None:
        return Source(file, environment, file.data).variable(key)
    section = _section_of(key)
    if section is None or not holds_secret(key, file.data) or file.has(key):
        return None
    usual = secret_variables(section, str(key[-1]), _with_section(section, file.data))
    return next(filter(environment.get, usual), None)


class _Variables(EnvSettingsSource):
    """``LIMPET_MODELS__DEFAULT`` and the like, of the given variables and not of the process.

    Lists and tables are JSON; what is no JSON is left to validation, which names the variable.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        super().__init__(Settings)

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return {name.lower(): value for name, value in self._variables.items()}

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        try:
            return super().decode_complex_value(field_name, field, value)
        except ValueError:
            return value


_ROUNDS = 5
"""How often a broken configuration is looked at again without what was found wrong so far."""


def _errors(data: Mapping[str, Any]) -> dict[tuple[Key, str], ErrorDetails]:
    """All errors, by key and type. Validation stops early in places: what is wrong is taken out, and it goes on.

    An error around something that was taken out may be its consequence and is left for the next time.
    """
    found: dict[tuple[Key, str], ErrorDetails] = {}
    gone: list[Key] = []
    rest = copy.deepcopy(dict(data))
    for _ in range(_ROUNDS):
        try:
            Settings.model_validate(rest)
        except ValidationError as error:
            errors = {(key_of_error(e, rest), e["type"]): e for e in error.errors(include_url=False)}
        else:
            break
        new = {(key, t): e for (key, t), e in errors.items() if not any(g[: len(key)] == key for g in gone)}
        if not new:
            break
        found.update(new)
        gone += [_take_out(rest, key) for key, _ in new]
    return found


def _take_out(data: dict[str, Any], key: Key) -> Key:
    """Remove what stands at ``key``, the whole list for an item of one, and return the key that is gone."""
    while key and not isinstance(key[-1], str):
        key = key[:-1]
    node: Any = data
    for part in key[:-1]:
        node = node[part] if isinstance(node, list) and isinstance(part, int) else node.get(part, {})
    if key and isinstance(node, dict):
        node.pop(key[-1], None)
    return key


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """``above`` laid over ``below``, table by table; lists are replaced."""
    merged = dict(below)
    for key, value in above.items():
        own = merged.get(key)
        merged[key] = _merged(own, value) if isinstance(own, Mapping) and isinstance(value, Mapping) else value
    return merged


def _with_usual_secrets(data: dict[str, Any], environment: Environment) -> dict[str, Any]:
    """Secrets of channels that the file doesn't have, or has empty, from the variables that usually hold them."""
    channels = data.get("channels")
    if not isinstance(channels, Mapping):
        return data
    filled = {}
    for section, own in channels.items():
        fields = secret_fields(section, data) if isinstance(own, Mapping) else []
        absent = [field for field in fields if own.get(field) in (None, "")]
        filled[section] = {key: value for key, value in own.items() if key not in absent} if absent else own
        for field in absent:
            values = (environment.get(name) for name in secret_variables(section, field, data))
            if value := next(filter(None, values), None):
                filled[section][field] = value
    return {**data, "channels": filled}


def _section_of(key: Key) -> str | None:
    """The channel that ``key`` is a setting of, None for a setting of anything else."""
    return str(key[1]) if len(key) > 2 and key[0] == "channels" else None


def _with_section(section: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
    """``data`` with the channel ``section``, empty where it had none."""
    return {**data, "channels": {section: {}, **data.get("channels", {})}}


def _no_secret(key: Key, source: Source) -> Problem:
    section, field = str(key[1]), str(key[-1])
    name = secret_variables(section, field, source.data)[0]
    return source.problem(
        key[:2],
        f"channels.{section} has no {field}: {name} is {source.environment.places}",
        f"add {name}=… to {source.environment.env_file}",
    )


def _checked(source: Source, degraded: Mapping[str, Problem]) -> Settings:
    """The settings without the degraded channels, after the checks that need the whole. Raises ConfigError."""
    data = dict(source.data)
    sections = data.get("channels", {})
    if degraded:
        data["channels"] = {name: own for name, own in sections.items() if name not in degraded}
    settings = Settings.model_validate(data)
    if problems := list(conflicts(settings, source)):
        raise ConfigError(sorted(problems, key=_place))
    settings.attach(
        {name: problem for name, problem in degraded.items() if not _is_off(sections[name])},
        list(warnings(settings, source)),
        [own.binding(origin(i, source)) for i, own in enumerate(settings.bindings)],
    )
    return settings


def _is_off(section: Mapping[str, Any]) -> bool:
    """Whether a section that was not validated, because it can't be, says ``enabled = false``."""
    return str(section.get("enabled")).lower() in ("false", "off", "no", "0")


def _placeless(problem: Problem) -> Problem:
    return replace(problem, file=None, line=None, column=None)


def _place(problem: Problem) -> tuple[int, int]:
    return (problem.line or 0, problem.column or 0)
