"""The embedded embedder gives the vectors of the package whose weights it reads."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from workspaces.memory import EmbedderError
from workspaces.memory.static_embedder import StaticEmbedder
from workspaces.memory.vectors import packed_query

TEXTS = ["my dog is called Biscuit", "We chose postgres for the ledger.", "成语接龙 🎩", "x", "word " * 500, "a\nb\tc"]


def test_its_vectors_are_the_packages() -> None:
    wordllama = pytest.importorskip("wordllama")
    folder = Path(wordllama.__file__).parent
    theirs = wordllama.WordLlama.load(cache_dir=folder, disable_download=True).embed(TEXTS, norm=True)
    ours = StaticEmbedder().embed_documents(TEXTS)
    assert ours.dtype == np.float32
    assert ours.shape == (len(TEXTS), 256)
    assert np.all(np.sum(ours * theirs, axis=1) > 0.999)


def test_a_question_has_the_vector_of_a_document() -> None:
    embedder = StaticEmbedder()
    for text, document in zip(TEXTS, embedder.embed_documents(TEXTS), strict=True):
        assert float(np.dot(np.frombuffer(embedder.embed_query(text), np.float32), document)) > 0.99999


def test_no_tokens_give_zeros() -> None:
    embedder = StaticEmbedder()
    assert not np.any(embedder.embed_documents([""]))
    assert not any(embedder.embed_query(""))
    assert embedder.embed_documents([]).shape == (0, 256)


def test_batches_do_not_change_a_vector() -> None:
    embedder = StaticEmbedder()
    many = embedder.embed_documents([f"note number {n}" for n in range(150)])
    assert np.array_equal(many[149], embedder.embed_documents(["note number 149"])[0])


def test_a_folder_without_weights_names_the_mend(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match=r"is missing\. Install the package again: `.* wordllama"):
        StaticEmbedder(tmp_path).embed_query("x")


def test_other_weights_are_refused(tmp_path: Path) -> None:
    header = b'{"embedding.weight":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}'
    (tmp_path / "weights").mkdir()
    file = tmp_path / "weights" / "l2_supercat_256.safetensors"
    file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    with pytest.raises(EmbedderError, match="256 columns F16"):
        StaticEmbedder(tmp_path).embed_documents(["x"])


def test_a_question_needs_neither_numpy_nor_the_package() -> None:
    check = (
        "import sys\nfrom workspaces.memory.static_embedder import StaticEmbedder\n"
        "StaticEmbedder().embed_query('x')\nprint(*sorted({'numpy', 'wordllama', 'requests'} & set(sys.modules)))"
    )
    assert importlib.util.find_spec("wordllama")
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_numpy_makes_a_question_cheaper_and_not_another() -> None:
    """A process that has loaded it sums up with it; one that hasn't comes to the same bytes without."""
    texts = [*TEXTS, "", "Where is the spare key?", " ".join(TEXTS) * 20]
    make = (
        "import sys\nfrom workspaces.memory.static_embedder import StaticEmbedder\n"
        "from workspaces.memory.vectors import packed_query\nembedder = StaticEmbedder()\n"
        f"made = [packed_query(embedder.embed_query(text)) for text in {texts!r}]\n"
        "assert 'numpy' not in sys.modules\nprint(made)"
    )
    done = subprocess.run([sys.executable, "-c", make], capture_output=True, text=True, check=True)
    embedder = StaticEmbedder()
    assert done.stdout.strip() == repr([packed_query(embedder.embed_query(text)) for text in texts])
