"""The variables a configuration may name, and where they are looked for: the process, then ``.env`` of the home.

Resolves ``${VAR}`` and ``${VAR:-default}`` in values. Knows no setting; nothing it resolves is ever written back.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.errors import ConfigError, Problem
from bot.home import Home
from bot.toml_positions import Key


@dataclass(frozen=True, slots=True)
class Environment:
    """``variables`` are the process's over those of ``env_file``. An empty variable counts as unset."""

    variables: Mapping[str, str]
    env_file: Path

    @classmethod
    def of(cls, home: Home, environ: Mapping[str, str] | None = None) -> Environment:
        """The variables of ``environ`` (None: of the process) and of the home's ``.env``. Raises ConfigError."""
        environ = os.environ if environ is None else environ
        stored: dict[str, str] = {}
        if home.env_file.is_file():
            import dotenv

            try:
                values = dotenv.dotenv_values(home.env_file, interpolate=False, encoding="utf-8-sig")
            except (OSError, UnicodeDecodeError) as error:
                raise ConfigError([Problem(f"can't be read: {error}", file=home.env_file)]) from error
            stored = {name: value for name, value in values.items() if value is not None}
        return cls({**stored, **{name: value for name, value in environ.items() if value}}, home.env_file)

    def get(self, name: str) -> str | None:
        return self.variables.get(name) or None

    @property
    def places(self) -> str:
        """Where a variable was looked for, in order, for a message."""
        return f"not in the environment, not in {self.env_file}"


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A reference that stands for nothing. ``name`` is the variable, None where the reference itself is malformed."""

    key: Key
    name: str | None


_REFERENCE = re.compile(r"\$(\$\{)|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|)")


def resolve(data: Mapping[str, Any], environment: Environment) -> tuple[dict[str, Any], list[Unresolved]]:
    """``data`` with every reference in its values replaced, and those that could not be.

    ``$${`` stands for a literal ``${``. An unresolved value is left as it is written.
    """
    unresolved: list[Unresolved] = []
    return _resolved(data, (), environment, unresolved), unresolved


def references(text: str) -> Iterator[str]:
    """The variables that ``text`` names."""
    for match in _REFERENCE.finditer(text):
        if match[2]:
            yield match[2]


def _resolved(node: Any, key: Key, environment: Environment, unresolved: list[Unresolved]) -> Any:
    if isinstance(node, Mapping):
        return {name: _resolved(value, (*key, name), environment, unresolved) for name, value in node.items()}
    if isinstance(node, list):
        return [_resolved(value, (*key, index), environment, unresolved) for index, value in enumerate(node)]
    if isinstance(node, str) and "${" in node:

        def value_of(match: re.Match[str]) -> str:
            escaped, name, default = match.groups()
            if escaped:
                return "${"
            value = environment.get(name) if name else None
            if value is None and default is None:
                unresolved.append(Unresolved(key, name))
                return match[0]
            return value if value is not None else default

        return _REFERENCE.sub(value_of, node)
    return node


def store(env_file: Path, name: str, value: str) -> None:
    """Keep a secret in ``.env`` (mode 0600): the line of ``name`` is replaced or added, all others stay as they are.

    Raises ValueError for a value that spans lines.
    """
    if re.search(r"[\r\n\0]", value):
        raise ValueError(f"the value of {name} spans lines")
    from bot.config_file import replace

    plain = re.fullmatch(r"[A-Za-z0-9_:./@%+,=-]*", value)
    quoted = value if plain else "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    text = env_file.read_text("utf-8") if env_file.exists() else ""
    line = f"{name}={quoted}"
    pattern = re.compile(rf"^[ \t]*(?:export[ \t]+)?{re.escape(name)}[ \t]*=[^\n]*$", re.MULTILINE)
    if pattern.search(text):
        text = pattern.sub(lambda _: line, text)
    else:
        text += ("" if not text or text.endswith("\n") else "\n") + line + "\n"
    replace(env_file, text.encode())
    env_file.chmod(0o600)
