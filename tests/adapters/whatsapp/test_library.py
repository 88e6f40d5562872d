"""What loading the library does to the program it is loaded into: nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from adapters.errors import AuthFailed
from adapters.whatsapp.library import check_binary

_LOAD = """
import logging
before = (logging.getLogger().handlers[:], logging.getLogger().level)
from adapters.whatsapp.library import load
load()
assert (logging.getLogger().handlers[:], logging.getLogger().level) == before

import sys
assert not {"PIL", "httpx", "linkpreview", "magic", "phonenumbers", "requests"} & set(sys.modules)
import httpx
httpx.Client
"""


def test_it_leaves_all_else_alone_and_warns_of_nothing() -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", _LOAD], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_door_that_is_not_used_loads_nothing() -> None:
    imported = "import sys, adapters.whatsapp.inbound, adapters.whatsapp.outbound; print('neonize' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", imported], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"


def test_a_missing_binary_is_explained_and_not_fetched(tmp_path: Path) -> None:
    with pytest.raises(AuthFailed, match="Install neonize again"):
        check_binary(tmp_path)
    (tmp_path / "neonize-linux-amd64.so").touch()
    check_binary(tmp_path)
