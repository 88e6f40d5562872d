"""Who is who over a restart: G-RTE-20's mapping, on a real disk."""

from __future__ import annotations

import logging
import stat
from pathlib import Path

import pytest

from adapters.whatsapp.acquaintances import Acquaintances
from adapters.whatsapp.identity import Identities, Jid

LID, PHONE = Jid("100000000000001", "lid"), Jid("15550001234", "s.whatsapp.net")


def test_the_mapping_survives_a_restart(tmp_path: Path) -> None:
    """G-RTE-20."""
    folder = tmp_path / "whatsapp" / "main"
    people = Acquaintances(folder).load()
    people.learn([LID, PHONE])
    people.meet(Jid("15550009999", "s.whatsapp.net"))
    Acquaintances(folder).save(people)
    again = Acquaintances(folder).load()
    assert again.person(LID).aliases == ("+15550001234",)
    assert again.met == ("15550009999",)


def test_it_is_nobody_elses_to_read(tmp_path: Path) -> None:
    folder = tmp_path / "whatsapp"
    folder.mkdir()
    (folder / "people.new").touch(0o644)  # left by a power cut
    Acquaintances(folder).save(Identities())
    assert stat.S_IMODE((folder / "people.json").stat().st_mode) == 0o600
    assert [path.name for path in folder.iterdir()] == ["people.json"]


def test_what_did_not_change_is_not_written(tmp_path: Path) -> None:
    kept = Acquaintances(tmp_path)
    kept.save(Identities())
    (tmp_path / "people.json").unlink()
    kept.save(Identities())
    assert not (tmp_path / "people.json").exists()


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b'{"pairs": [], "met": []}', b"\xff\xfe", b'{"pairs": {}}']
)
def test_a_broken_file_is_put_aside_and_said(content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    (tmp_path / "people.json").write_bytes(content)
    kept = Acquaintances(tmp_path)
    people = kept.load()
    assert (people.pairs, people.met) == ({}, ())
    assert (tmp_path / "people.broken").read_bytes() == content
    assert len(caplog.records) == 1
    people.learn([LID, PHONE])
    kept.save(people)
    assert Acquaintances(tmp_path).load().pairs == {LID.user: PHONE.user}
