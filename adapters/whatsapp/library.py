"""neonize, which is loaded on first use, and kept from what its import does besides.

It asks the system its name through a shell, sets up the logging of the whole program, and where its binary is missing
it fetches one over the network. It makes previews of links, thumbnails and guesses at what a file is, and loads what
that takes. Nothing of that is wanted here. What it logs it logs with the words that people wrote, unless it is told to
be quiet.
"""

from __future__ import annotations

import functools
import importlib.util
import io
import logging
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from adapters.errors import AuthFailed, MissingExtra
from adapters.whatsapp.calls import Calls

_SPARED = (
    *("PIL", "httpx", "linkpreview", "linkpreview.exceptions", "magic", "phonenumbers", "requests"),
    "requests.exceptions",
)
"""What is loaded for what is not wanted: a fifth of the memory, and ``magic`` needs a library of the system."""


@dataclass(frozen=True, slots=True)
class Library:
    """The modules of neonize that are used: ``events`` and ``bodies`` are protobuf, ``keys`` name messages.

    ``dispatch`` holds the event loop, ``kinds`` the number of each event, ``enums`` what calls are made with.
    """

    client: ModuleType
    events: ModuleType
    bodies: ModuleType
    keys: ModuleType
    dispatch: ModuleType
    kinds: ModuleType
    enums: ModuleType
    kept: list[Any] = field(default_factory=list)
    """What Go's threads may still call after the end: it is never let go."""


@functools.cache
def load() -> Library:
    """Raises MissingExtra where it is not installed, and AuthFailed, with the mend, where it can't work here."""
    spec = importlib.util.find_spec("neonize")
    if spec is None or spec.origin is None:
        raise MissingExtra("whatsapp", "whatsapp")
    check_binary(Path(spec.origin).parent)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    popen = os.popen
    os.popen = _uname  # type: ignore[assignment]  # it leaves its shells behind with open pipes
    try:
        with _spared():
            from neonize import events as kinds
            from neonize.aioze import client
            from neonize.aioze import events as dispatch
            from neonize.proto import Neonize_pb2 as events
            from neonize.proto.waCommon import WACommon_pb2 as keys
            from neonize.proto.waE2E import WAWebProtobufsE2E_pb2 as bodies
            from neonize.utils import enum as enums
    except (ImportError, OSError, RuntimeError) as error:
        raise AuthFailed(f"neonize can't be loaded ({error}): install it again") from error
    finally:
        os.popen = popen
        root.handlers[:], root.level = handlers, level
    for name in ("neonize.utils.log", "neonize.utils.ffmpeg"):  # the level of the first is Go's as well
        logging.getLogger(name).setLevel(logging.ERROR)
    client.async_gocode = Calls(client)  # each client takes it when it is made
    return Library(client, events, bodies, keys, dispatch, kinds, enums)


@contextmanager
def _spared() -> Iterator[None]:
    """In the place of those modules is nothing, unless the program has loaded them itself."""
    absent = {name: _Absent(name) for name in _SPARED if name.partition(".")[0] not in sys.modules}
    sys.modules.update(absent)
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


class _Absent(ModuleType):
    """Has every name, for whoever imports it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Nothing


class _NothingType(type):
    def __getattr__(cls, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls

    def __call__(cls, *_: object, **__: object) -> NoReturn:
        raise NotImplementedError("neonize is loaded without what this takes")


class _Nothing(Exception, metaclass=_NothingType):
    """May be annotated with, and caught; can't be used."""


def _uname(_: str) -> io.StringIO:
    return io.StringIO(" ".join(platform.uname()))


def check_binary(folder: Path) -> None:
    """Raises AuthFailed where ``folder`` has no binary of neonize: its import would fetch one without a word."""
    if not any(folder.glob("neonize-*.so")) and not any(folder.glob("neonize-*.d*l*")):
        raise AuthFailed(
            f"the binary of neonize is missing in {folder}: there is none for this system, or it was taken away. "
            "Install neonize again, on a system that it has a wheel for"
        )
