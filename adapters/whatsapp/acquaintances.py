"""Who is who, kept over a restart: one small file in the folder of an account, for nobody else to read.

Losing it loses no message: people are known by fewer of their ids until WhatsApp says them again.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

from adapters.whatsapp.identity import Identities

log = logging.getLogger(__name__)


class Acquaintances:
    """The file. ``folder`` is made where it is missing."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "people.json"
        self._kept = ""

    def load(self) -> Identities:
        """What was kept; nothing where there is no file, or none that can be read, which is then put aside."""
        try:
            text = self._path.read_text("utf-8")
        except FileNotFoundError:
            return Identities()
        except (OSError, ValueError) as error:
            return self._put_aside(error)
        try:
            content = json.loads(text)
            found = Identities({str(lid): str(phone) for lid, phone in content["pairs"].items()}, content["met"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return self._put_aside(error)
        self._kept = text
        return found

    def save(self, identities: Identities) -> None:
        """Durable when it returns; no write where nothing changed. Raises OSError where that fails."""
        text = json.dumps({"pairs": identities.pairs, "met": identities.met}, indent=1)
        if text == self._kept:
            return
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._path.with_suffix(".new")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(descriptor, 0o600)
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        draft.replace(self._path)
        self._kept = text

    def _put_aside(self, error: Exception) -> Identities:
        log.warning("%s can't be read (%s): it is put aside, and people are learned anew", self._path, error)
        try:
            self._path.replace(self._path.with_suffix(".broken"))
        except OSError as failed:
            log.warning("%s can't be put aside either: %s", self._path, failed)
        return Identities()
