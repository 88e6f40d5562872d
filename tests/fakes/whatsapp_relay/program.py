"""The whole program before this server: in as many processes as it likes it trusts the server, and reaches no other.

Python imports ``sitecustomize`` at its start, from wherever it is found first.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.fakes.whatsapp_relay.directory import Account
from tests.fakes.whatsapp_relay.library import Words
from tests.fakes.whatsapp_relay.lines import ROOT, SECONDS
from tests.fakes.whatsapp_relay.relay import Relay
from tests.flows.conftest import Limpet

_TRUSTING = """
from tests.fakes.whatsapp_relay import library

library.load()
library.replace_root_key(bytes.fromhex("{root}"))
"""

_CODE = re.compile(rb"[0-9A-Z]{4}-[0-9A-Z]{4}")


def words_of_library() -> Words:
    """Read in a process of its own, so that the library is not loaded in this one."""
    command = [sys.executable, "-m", "tests.fakes.whatsapp_relay.library"]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=ROOT).stdout)
    return Words(tuple(found["single"]), tuple(tuple(table) for table in found["double"]))


def trusting(relay: Relay, folder: Path) -> dict[str, str]:
    """The environment of a program that trusts ``relay``; ``folder`` is made for it."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_TRUSTING.format(root=relay.trust.root.hex()), "utf-8")
    return relay.trust.environment | {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}


async def log_in(relay: Relay, limpet: Limpet, account: Account) -> None:
    """``limpet channels login``, with the code that it shows typed on the phone."""
    process = await limpet._start("channels", "login", "whatsapp", "--phone", f"+{account.phone}")
    assert process.stderr is not None
    said = b""
    async with asyncio.timeout(SECONDS):
        while (code := _CODE.search(said)) is None:
            line = await process.stderr.readline()
            assert line, said.decode()
            said += line
    await relay.pairing.enter(code[0].decode(), account)
    async with asyncio.timeout(SECONDS):
        _, rest = await process.communicate()
    assert process.returncode == 0, (said + rest).decode()
