"""The files that a service is made of, checked as far as that goes without an engine or an init system."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from bot.app import DRAIN_SECONDS
from bot.cli.dispatch import parse

ROOT = Path(__file__).parent.parent
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
COMPOSE: dict[str, Any] = YAML(typ="safe").load(ROOT / "docker-compose.yml")
UNITS = re.findall(r"```ini\n(.*?)```", (ROOT / "docs" / "operations.md").read_text("utf-8"), re.DOTALL)
BIN = Path(sys.executable).parent


def checked(*words: str) -> str:
    """What a checker says; "" for nothing at all."""
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.skipif(not (BIN / "hadolint").exists(), reason="hadolint is installed on Linux only")
def test_the_dockerfile_has_no_finding() -> None:
    assert checked(str(BIN / "hadolint"), "Dockerfile") == ""


def test_the_compose_file_has_the_shape_that_compose_wants() -> None:
    assert checked(str(BIN / "check-jsonschema"), "--builtin-schema", "vendor.compose-spec", "docker-compose.yml") == ""


def test_the_image_gets_every_package_and_runs_as_nobody() -> None:
    copied = {line.split()[1] for line in DOCKERFILE.splitlines() if line.startswith("COPY ") and "--from" not in line}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) <= copied
    assert all((ROOT / path).exists() for path in copied)
    assert re.search(r"^USER [1-9]\d*$", DOCKERFILE, re.MULTILINE)
    assert "--require-hashes -r locks/all.txt" in DOCKERFILE
    for instruction in ("ENTRYPOINT", "CMD", "HEALTHCHECK"):
        assert re.search(rf'^{instruction} .*\["', DOCKERFILE, re.MULTILINE), "a shell would take the signals"


def test_the_service_may_do_nothing_that_it_need_not() -> None:
    (service,) = COMPOSE["services"].values()
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "ports" not in service
    assert int(service["stop_grace_period"].removesuffix("s")) > DRAIN_SECONDS
    volumes = {volume.partition(":")[2] for volume in service["volumes"]}
    assert volumes == {re.findall(r"^VOLUME (\S+)$", DOCKERFILE, re.MULTILINE)[0]}


@pytest.mark.parametrize("page", ["SECURITY.md", "docs/operations.md"])
def test_what_is_said_to_be_tested_is(page: str) -> None:
    named = re.findall(r"`(tests/[\w/]+(?:\.py|/))`", (ROOT / page).read_text("utf-8"))
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("unit", UNITS, ids=["user", "system"])
def test_the_units_stop_start_and_give_up_as_the_program_means_it(unit: str, tmp_path: Path) -> None:
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(unit)
    service = parser["Service"]
    program, *words = service["ExecStart"].split()
    assert Path(program).name == "limpet"
    assert parse(words).words == ["run"]
    assert int(service["TimeoutStopSec"]) > DRAIN_SECONDS
    assert service["Restart"] == "on-failure"
    assert set(service["RestartPreventExitStatus"].split()) == {"2", "3", "77"}, "what no new start mends"
    if shutil.which("systemd-analyze"):
        path = tmp_path / "limpet.service"
        path.write_text(unit.replace(program, sys.executable).replace("User=limpet\n", ""))
        assert "limpet.service:" not in checked("systemd-analyze", "verify", str(path))
