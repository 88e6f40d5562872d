"""The checks that need the whole of the settings: what contradicts itself, and what is allowed but hardly meant.

Each value is right by itself when these run. They tell, and decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bot import router
from bot.config_keys import is_secret
from bot.config_problems import Source
from bot.errors import Problem
from bot.settings import Settings
from bot.spelling import closest, did_you_mean
from bot.tables import TERMINAL, BindingSettings, channel_names
from bot.toml_positions import Key
from workspaces.memory.embedders import NAMES

_OWN_VARIABLES = ("LIMPET_HOME", "LIMPET_CONFIG", "LIMPET_MODEL", "LIMPET_DEBUG")
"""Variables of the program that are no settings."""


def conflicts(settings: Settings, source: Source) -> Iterator[Problem]:
    """What refuses the settings: names that lead nowhere, two that claim the same."""
    yield from _binding_conflicts(settings, source)
    for name in settings.templates.keys() & settings.agents.keys():
        yield source.problem(("templates", name), f"{name!r} is the name of an agent as well", "call one otherwise")
    yield from _identity_conflicts(settings, source)
    yield from _memory_conflicts(settings, source)


def warnings(settings: Settings, source: Source) -> Iterator[Problem]:
    """What is allowed but hardly meant."""
    for name, section in settings.channels.items():
        if section.direct == "allowlist" and not section.allow and section.enabled:
            yield source.problem(
                ("channels", name, "direct"),
                f'channels.{name} has direct = "allowlist" and an empty allow: nobody may write to it',
                'add ids: allow = ["…"]',
            )
    for index, binding in enumerate(settings.bindings):
        if reason := _hopeless(binding, settings):
            message, mend = reason
            yield source.problem(("bindings", index), f"can never match: {message}", mend)
    if bad := source.environment.bad_lines:
        first, *more = bad
        also = f", and so are lines {', '.join(map(str, more))}" if more else ""
        yield Problem(
            f"is no NAME=value and sets nothing{also}",
            "mend it, or put # before a remark",
            file=source.environment.env_file,
            line=first,
        )
    for variable in source.environment.variables:
        if variable.startswith("LIMPET_") and (meant := _misspelt(variable)):
            yield Problem(f"{variable} means nothing", f"did you mean {meant}?")
    in_the_open = any(is_secret(key, source.data) and "${" not in text for key, text in _texts((), source.file.data))
    for path in (source.environment.env_file, source.file.path if in_the_open else None):
        if path is not None and path.exists() and path.stat().st_mode & 0o077:
            yield Problem("holds secrets and others on this machine can read it", f"chmod 600 {path}", file=path)


def origin(index: int, source: Source) -> str:
    """Where a binding is written, short: "limpet.toml:12"."""
    place = source.file.position(("bindings", index))
    variable = source.variable(("bindings", index))
    return variable or f"{source.file.path.name}:{place.line if place else 1}"


def _binding_conflicts(settings: Settings, source: Source) -> Iterator[Problem]:
    sections = source.data.get("channels", {})
    first: dict[router.Match, int] = {}
    for index, binding in enumerate(settings.bindings):
        checks = (
            ("agent", binding.agent, settings.agents.keys(), "agent"),
            ("template", binding.template, settings.templates.keys(), "template"),
            ("account", binding.account, sections.keys(), "section of [channels]"),
            ("channel", binding.channel, channel_names(), "channel"),
        )
        for name, value, known, what in checks:
            if value is not None and value not in known:
                key, message = ("bindings", index, name), f"no {what} is called {value!r}"
                yield source.problem(key, message, did_you_mean(value, known), value=value)
        if (other := first.setdefault(binding.match, index)) != index:
            yield source.problem(
                ("bindings", index),
                f"asks the same as the binding at {origin(other, source)}: only one of them can answer",
                "take one out, or ask for more in one of them",
            )


def _hopeless(binding: BindingSettings, settings: Settings) -> tuple[str, str] | None:
    """Why no message can match, and the mend; None where one can, as far as the settings tell.

    What is allowed beside them, in the database, is not known here: where that may matter the binding has hope.
    """
    sections = {
        name: own
        for name, own in settings.channels.items()
        if binding.account in (None, name) and binding.channel in (None, own.kind)
    }
    asks_terminal = binding.channel in (None, TERMINAL) and binding.account in (None, TERMINAL)
    if asks_terminal:
        return None
    account = settings.channels.get(binding.account or "")
    if account is not None and binding.channel not in (None, account.kind):
        return f"channels.{binding.account} is {account.kind}", f'write channel = "{account.kind}", or leave it out'
    if not sections and binding.account not in settings.degraded:
        where = f"channels.{binding.account}" if binding.account else binding.channel
        return f"nothing connects {where}", f"connect it: limpet channels add {binding.account or binding.channel}"
    if sections and not any(own.enabled for own in sections.values()):
        return f"{', '.join(f'channels.{name}' for name in sections)} is switched off", "set enabled = true there"
    return None


def _memory_conflicts(settings: Settings, source: Source) -> Iterator[Problem]:
    name, tables = settings.memory.embedder, settings.models.__pydantic_extra__ or {}
    if name not in (*NAMES, *tables) and "/" not in name:
        mend = did_you_mean(name, NAMES) or f"one of {', '.join(NAMES)}, or PROVIDER/MODEL"
        yield source.problem(("memory", "embedder"), f"no embedder is called {name!r}", mend, value=name)


def _identity_conflicts(settings: Settings, source: Source) -> Iterator[Problem]:
    owner_of: dict[str, str] = {}
    for name, accounts in settings.accounts().items():
        for index, account in enumerate(accounts):
            other = owner_of.setdefault(account, name)
            if other != name:
                yield source.problem(
                    ("identities", name, index), f"{account!r} is also in identities.{other}", "one account, one person"
                )


def _misspelt(variable: str) -> str | None:
    """What a variable that sets nothing was probably meant to be; None for a right one, and for one of someone else."""
    name, delimiter, rest = variable.partition("__")
    known = [f"LIMPET_{field.upper()}" for field in Settings.model_fields]
    if name in known or (variable in _OWN_VARIABLES):
        return None
    meant = closest(name, known if delimiter else [*_OWN_VARIABLES, *known])
    return f"{meant}{delimiter}{rest}" if meant else None


def _texts(key: Key, node: Any) -> Iterator[tuple[Key, str]]:
    """Every string below ``node``."""
    if isinstance(node, str):
        yield key, node
    elif isinstance(node, Mapping | list):
        for name, value in node.items() if isinstance(node, Mapping) else enumerate(node):
            yield from _texts((*key, name), value)
