"""The command that is advised for a missing package is one that works here, in whatever way this was installed."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from workspaces.installation import AGAIN, install_extra, install_package, upgrade

ROOT = Path(__file__).parent.parent.parent
EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]


def requirement(command: str) -> str:
    """The last word, without what different spellings of the same may differ in."""
    return shlex.split(command)[-1].replace("-", "").replace(".", "").lower()


@pytest.mark.parametrize("extra", [name for name in EXTRAS if name != "all"])
def test_an_extra_is_what_the_project_pins(extra: str) -> None:
    """Never the name of this program: an index may have another package of that name."""
    command = install_extra(extra)
    assert shlex.split(command)[:4] == [sys.executable, "-m", "pip", "install"]
    named = shlex.split(command)[4:]
    assert len(named) == len(EXTRAS[extra])
    for pinned, word in zip(sorted(EXTRAS[extra]), sorted(named), strict=True):
        name = re.split(r"[=<>]", pinned)[0]
        assert requirement(word).startswith(name.replace("-", "").replace(".", ""))
        assert set(re.findall(r"[=<>]+[\w.]+", pinned)) == set(re.findall(r"[=<>]+[\w.]+", word))


@pytest.mark.parametrize("command", [install_extra("litellm"), install_package("pysqlite3"), install_extra("all")])
def test_the_command_runs_in_any_folder(command: str, tmp_path: Path) -> None:
    """All that it names is installed for the tests, so it needs no network and changes nothing."""
    if importlib.util.find_spec("pip") is None:
        pytest.skip("this environment was made without pip")
    environ = os.environ | {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(command, shell=True, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Requirement already satisfied" in done.stdout


def test_options_come_before_the_package() -> None:
    """A package that is damaged is installed anew, not found to be there already."""
    for command, name in ((install_package("wordllama", *AGAIN), "wordllama"), (install_extra("local", *AGAIN), "xll")):
        assert shlex.split(command)[4:6] == ["--force-reinstall", "--no-deps"]
        assert shlex.split(command)[6].startswith(name)


def test_where_there_is_no_pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pip" else find(name))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert install_extra("local").startswith(f"{sys.executable} -m ensurepip && {sys.executable} -m pip install ")
    (tmp_path / "uv").write_text("#!/bin/sh\n")
    (tmp_path / "uv").chmod(0o755)
    assert install_extra("local").startswith(f"uv pip install --python {sys.executable} xllamacpp==")


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "{python} -m pip install --upgrade limpet"),
        (
            {"url": "file:///srv/my%20limpet", "dir_info": {"editable": True}},
            "git -C '/srv/my limpet' pull && {python} -m pip install -e '/srv/my limpet'",
        ),
        ({"url": "file:///srv/l", "dir_info": {}}, "git -C /srv/l pull && {python} -m pip install /srv/l"),
        ({"url": "file:///srv/l.whl", "archive_info": {}}, "{python} -m pip install --upgrade limpet"),
        (
            {"url": "https://x.test/l.git", "vcs_info": {"vcs": "git"}},
            "{python} -m pip install --upgrade 'limpet @ git+https://x.test/l.git'",
        ),
    ],
    ids=["an index", "a clone", "a folder", "a file", "a repository"],
)
def test_the_newest_version_comes_from_where_this_one_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, origin: object, command: str
) -> None:
    installed_from(origin, tmp_path, monkeypatch)
    assert upgrade() == command.format(python=sys.executable)


@pytest.mark.parametrize(
    ("origin", "what"),
    [
        (None, "'limpet[new]'"),
        ({"url": "file:///srv/l", "dir_info": {"editable": True}}, "-e '/srv/l[new]'"),
        ({"url": "file:///srv/l", "dir_info": {}}, "'/srv/l[new]'"),
    ],
    ids=["an index", "a clone", "a folder"],
)
def test_an_extra_that_the_metadata_do_not_know_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, origin: object, what: str
) -> None:
    """A clone that was pulled has the code of today and the metadata of its installation."""
    installed_from(origin, tmp_path, monkeypatch)
    assert install_extra("new") == f"{sys.executable} -m pip install {what}"


def installed_from(origin: object, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PEP 610: an installer leaves what it was told to install."""
    about = folder / "limpet-9.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: limpet\nVersion: 9\n")
    if origin is not None:
        (about / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.syspath_prepend(folder)
    assert metadata.version("limpet") == "9"
