"""Where everything a user owns lives: one folder, ``~/.limpet`` or ``LIMPET_HOME``.

Only names of paths: nothing here is read, made or checked, and nothing but the standard library is imported, so that
the quickest commands can afford it. What lies in each place is known by the module that reads it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.agent_names import template_of
from workspaces.names import original, portable_name


@dataclass(frozen=True, slots=True)
class Home:
    """The paths below ``root``. ``settings`` is the file of ``LIMPET_CONFIG``, None for the usual ``limpet.toml``."""

    root: Path
    settings: Path | None = None

    @classmethod
    def locate(cls, environ: Mapping[str, str] | None = None) -> Home:
        """The home that ``environ`` names (None: the environment of the process). An empty variable counts as unset."""
        environ = os.environ if environ is None else environ
        root = environ.get("LIMPET_HOME") or "~/.limpet"
        settings = environ.get("LIMPET_CONFIG")
        return cls(_absolute(root), _absolute(settings) if settings else None)

    def with_config(self, path: str) -> Home:
        """The same home with another configuration file (``--config``)."""
        return Home(self.root, _absolute(path))

    @property
    def config(self) -> Path:
        return self.settings or self.root / "limpet.toml"

    @property
    def env_file(self) -> Path:
        return self.root / ".env"

    @property
    def workspaces(self) -> Path:
        return self.root / "workspaces"

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def database(self) -> Path:
        return self.state / "limpet.sqlite"

    @property
    def socket(self) -> Path:
        return self.state / "limpet.sock"

    @property
    def lock(self) -> Path:
        return self.state / "limpet.lock"

    @property
    def start_record(self) -> Path:
        return self.state / "started.json"

    @property
    def models(self) -> Path:
        return self.root / "models"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def log_file(self) -> Path:
        return self.logs / "limpet.log"

    @property
    def templates(self) -> Path:
        """What workspaces are made from, a folder each."""
        return self.root / "templates"

    def workspace(self, agent: str) -> Path:
        """Where the agent's Markdown lies unless its settings name another folder."""
        return self.workspaces / portable_name(agent)

    def made_agents(self) -> list[str]:
        """The agents whose workspace was made from a template, by name. One whose name is too long is left out."""
        try:
            names = [original(entry.name) for entry in os.scandir(self.workspaces) if "_2f" in entry.name]
        except FileNotFoundError:
            return []
        return sorted(name for name in names if name is not None and template_of(name))

    def index(self, agent: str) -> Path:
        return self._of(agent) / "index.sqlite"

    def sessions(self, agent: str) -> Path:
        return self._of(agent) / "sessions"

    def history(self, agent: str) -> Path:
        return self._of(agent) / "history"

    def copies(self, agent: str) -> Path:
        """What the agent's file tools replaced."""
        return self._of(agent) / "copies"

    def curated(self, agent: str) -> Path:
        """A small file with the day on which the agent last went through its notes."""
        return self._of(agent) / "curated"

    def channel(self, kind: str, account: str) -> Path:
        """What the adapter of an account keeps between runs, where it keeps something."""
        return self.state / "channels" / portable_name(kind) / portable_name(account)

    def folder_index(self, name: str) -> Path:
        """The index of a folder that is no agent's."""
        return self.state / "folders" / name / "index.sqlite"

    def _of(self, agent: str) -> Path:
        return self.state / "agents" / portable_name(agent)


def _absolute(path: str) -> Path:
    return Path(os.path.abspath(os.path.expanduser(path)))  # noqa: PTH100, PTH111 - Path.absolute keeps ".."
