"""`limpet channels login`: a code is shown until the phone has taken it, and nothing is kept where it doesn't."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.bot.cli.conftest import Limpet

PACKAGE = """
from dataclasses import dataclass

from pydantic import BaseModel

from adapters.errors import AuthFailed, Unreachable
from adapters.linking import PairingCode, QrCode


class Settings(BaseModel):
    colour: str = "red"


@dataclass
class Me:
    id: str = "1"
    username: str = ""
    name: str = "+49 151 0000001"
    link: str = "https://lamp.test/1"


class Lamp:
    channel = "lamp"
    settings_model = Settings
    keeps_folder = True

    def __init__(self, account, settings, folder):
        pass

    @staticmethod
    async def check(settings, folder):
        raise AuthFailed("not linked")

    @staticmethod
    async def link(settings, *, phone, show, folder):
        how = "Photograph this with the lamp."
        show(PairingCode(f"CODE-{phone}", "Type this on the lamp:") if phone else QrCode("first", how))
        if phone is None:
            show(QrCode("second", how))
            picture = folder / "link.png"
            (folder / "seen").write_text(f"{picture.stat().st_mode} {picture.read_bytes()[:4]}")
        match settings.colour:
            case "blue":
                raise Unreachable("the lamp's server can't be reached")
            case "green":
                raise AuthFailed("nobody photographed the code in three minutes")
        return Me()
"""


@pytest.fixture(autouse=True)
def _lamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lamp_door.py").write_text(PACKAGE)
    info = tmp_path / "lamp_door-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lamp-door\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[limpet.adapters]\nlamp = lamp_door:Lamp\n")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.parametrize("words", [("login", "lamp"), ("add", "lamp"), ("login", "hall", "--kind", "lamp")])
def test_an_account_is_linked_and_added(limpet: Limpet, words: tuple[str, ...]) -> None:
    name = words[1]
    outcome = limpet("channels", *words)
    assert (outcome.code, outcome.out.splitlines()[:2]) == (
        0,
        [f"+49 151 0000001 is connected as channels.{name}.", "Write to it: https://lamp.test/1"],
    )
    folder = limpet.home.channel("lamp", name)
    first, second = outcome.err.splitlines()
    assert first == f"Photograph this with the lamp. As a picture: {folder}/link.png"
    assert second == f"The code was renewed. As a picture: {folder}/link.png"
    mode, magic = (folder / "seen").read_text().split(" ", 1)
    assert (stat.S_IMODE(int(mode)), magic) == (0o600, "b'\\x89PNG'")
    assert [file.name for file in folder.iterdir()] == ["seen"], "no code is left on the disk"
    assert f"[channels.{name}]" in limpet.home.config.read_text()


def test_a_code_is_typed_where_a_number_is_given(limpet: Limpet) -> None:
    outcome = limpet("channels", "login", "lamp", "--phone", "+49 151", "--json")
    assert outcome.data == {
        "schema": 1,
        "name": "lamp",
        "kind": "lamp",
        "username": "",
        "link": "https://lamp.test/1",
    }
    assert outcome.err == "Type this on the lamp:\n\n    CODE-+49 151\n\n"


@pytest.mark.parametrize(
    ("colour", "code", "said"),
    [
        ("blue", 75, "the lamp's server can't be reached — nothing was saved; try again when the network is there"),
        ("green", 1, "nobody photographed the code in three minutes"),
    ],
)
def test_what_was_not_linked_is_not_kept(limpet: Limpet, colour: str, code: int, said: str) -> None:
    outcome = limpet("channels", "add", "lamp", "--set", f"colour={colour}")
    assert (outcome.code, outcome.out) == (code, "")
    assert outcome.err.endswith(f"limpet: {said}\n")
    assert not limpet.home.config.exists()
    assert not (limpet.home.channel("lamp", "lamp") / "link.png").exists()


def test_only_what_has_a_phone_is_linked(limpet: Limpet) -> None:
    outcome = limpet("channels", "login", "telegram")
    said = "a channel of the kind 'telegram' has no phone — add it: limpet channels add telegram"
    assert (outcome.code, outcome.err) == (2, f"limpet: {said}\n")
    outcome = limpet("channels", "add", "lamp", "--token", "x")
    assert (outcome.code, outcome.err) == (2, "limpet: a channel of the kind 'lamp' has no token — leave --token out\n")


def test_what_is_left_of_a_link_is_told(limpet: Limpet) -> None:
    assert limpet("channels", "login", "lamp").code == 0
    outcome = limpet("channels", "remove", "lamp", "--yes")
    assert (outcome.code, outcome.out) == (0, "channels.lamp is removed.\n")
    folder = limpet.home.channel("lamp", "lamp")
    assert outcome.err == f"What it kept is still there: unlink it on the phone, then delete {folder}\n"
