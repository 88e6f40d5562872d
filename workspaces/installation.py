"""How this program was installed, and so the exact command that adds a package to it or brings a newer version of it.

A command names this very interpreter, so it works from any shell and folder, and an added package as the metadata pin
it: an index that this program was not taken from may have somebody else's of the same name. Asks no network.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from typing import Any

AGAIN = ("--force-reinstall", "--no-deps")
"""Options of pip for a package that is here and damaged, which it would else call satisfied."""

_NAME = "limpet"


def install_extra(extra: str, *options: str) -> str:
    """The command that installs what the extra ``extra`` is made of; ``options`` are pip's."""
    pattern = rf"\bextra\s*==\s*['\"]{re.escape(extra)}['\"]"
    found = [text.partition(";")[0].strip() for text in _requirements() if re.search(pattern, text)]
    return _pip_install(*options, *(found or _program(f"[{extra}]")))  # a clone may be newer than its metadata


def install_package(name: str, *options: str) -> str:
    """The command that installs a package that this program always needs, as pinned; ``options`` are pip's."""
    pattern = rf"{re.escape(name)}(?![\w.-])"
    found = [text.partition(";")[0].strip() for text in _requirements() if re.match(pattern, text)]
    return _pip_install(*options, *(found[:1] or [name]))


def upgrade() -> str:
    """The command that brings the newest version, from wherever this one was taken."""
    folder = _folder()
    if folder is None:
        return _pip_install("--upgrade", *_program())
    return f"{shlex.join(['git', '-C', folder, 'pull'])} && {_pip_install(*_program())}"


def _program(extras: str = "") -> list[str]:
    """What pip is told to install this program anew from where it was taken, with ``extras`` ("[local]")."""
    origin, folder = _origin(), _folder()
    if folder is not None:
        return [*(["-e"] if origin["dir_info"].get("editable") else []), f"{folder}{extras}"]
    if "vcs_info" in origin:
        return [f"{_NAME}{extras} @ {origin['vcs_info'].get('vcs')}+{origin.get('url')}"]
    return [f"{_NAME}{extras}"]


def _folder() -> str | None:
    """The folder that was installed, None for what came from elsewhere."""
    from urllib.parse import unquote, urlsplit

    origin = _origin()
    return unquote(urlsplit(str(origin.get("url", ""))).path) if "dir_info" in origin else None


def _pip_install(*words: str) -> str:
    python = sys.executable or "python3"
    pip = shlex.join([python, "-m", "pip", "install", *words])
    if importlib.util.find_spec("pip") is not None:
        return pip
    import shutil

    if shutil.which("uv") is not None:
        return shlex.join(["uv", "pip", "install", "--python", python, *words])
    return f"{shlex.join([python, '-m', 'ensurepip'])} && {pip}"


def _requirements() -> list[str]:
    """Every requirement of this program as its metadata have it; none where it runs without having been installed."""
    from importlib import metadata

    try:
        return metadata.requires(_NAME) or []
    except metadata.PackageNotFoundError:
        return []


def _origin() -> dict[str, Any]:
    """What an installer has left about where it took this program from; nothing for an index (PEP 610)."""
    import json
    from importlib import metadata

    try:
        origin = json.loads(metadata.distribution(_NAME).read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        return {}
    return origin if isinstance(origin, dict) else {}
