"""Adapters by name: the built-in one, one that a package brings, and one that nobody has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from adapters import registry
from adapters.errors import AdapterError
from adapters.telegram import TelegramAdapter, TelegramSettings
from tests.fakes.telegram_api import TOKEN, TelegramApi

PACKAGE = '''
from pydantic import BaseModel

class Settings(BaseModel):
    url: str

class Pigeon:
    """Just enough of an adapter to be made."""

    channel = "pigeon"
    settings_model = Settings

    def __init__(self, account, settings):
        self.account, self.settings = account, settings
'''


@pytest.fixture
def _pigeon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package beside ours, installed as pip would: a module and its metadata."""
    (tmp_path / "pigeon_post.py").write_text(PACKAGE)
    info = tmp_path / "pigeon_post-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pigeon-post\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[limpet.adapters]\npigeon = pigeon_post:Pigeon\ntelegram = pigeon_post:Pigeon\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


def test_telegram_is_built_in() -> None:
    assert "telegram" in registry.names()
    assert registry.settings_model("telegram") is TelegramSettings
    adapter = registry.build("telegram", "main", TelegramSettings.model_validate({"token": TOKEN}))
    assert isinstance(adapter, TelegramAdapter)
    assert (adapter.channel, adapter.account, adapter.health.state) == ("telegram", "main", "starting")


async def test_a_token_is_checked_by_name() -> None:
    async with TelegramApi() as api:
        settings = registry.settings_model("telegram").model_validate({"token": TOKEN, "base_url": api.url})
        identity = await registry.check("telegram", settings)
    assert (identity.username, identity.name) == ("limpet_bot", "Limpet")


@pytest.mark.usefixtures("_pigeon")
def test_a_package_adds_its_own_and_takes_over_none() -> None:
    assert set(registry.names()) >= {"pigeon", "telegram"}
    settings = registry.settings_model("pigeon").model_validate({"url": "http://loft"})
    adapter = registry.build("pigeon", "home", settings)
    assert (adapter.channel, adapter.account) == ("pigeon", "home")
    assert registry.settings_model("telegram") is TelegramSettings


@pytest.mark.parametrize(
    ("kind", "says"),
    [("telegrm", "Did you mean 'telegram'? Known: telegram"), ("", "Known: telegram"), ("x", "Known: telegram")],
)
def test_an_unknown_name_is_answered_with_the_known_ones(kind: str, says: str) -> None:
    with pytest.raises(registry.UnknownAdapterError, match=r"no adapter is called") as caught:
        registry.settings_model(kind)
    assert says in str(caught.value)
    assert isinstance(caught.value, AdapterError)


def test_nothing_is_imported_before_it_is_needed() -> None:
    program = (
        "import sys\n"
        "heavy = lambda: [name for name in ('pydantic', 'httpx', 'telegram', 'markdown_it') if name in sys.modules]\n"
        "from adapters import registry, markdown, split\n"
        "registry.names()\n"
        "print(heavy())\n"
        "settings = registry.settings_model('telegram').model_validate({'token': '1:x'})\n"
        "registry.build('telegram', 'main', settings)\n"
        "print(heavy())\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split("\n")[:2] == ["[]", "['pydantic']"]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"token": ""},
        {"token": TOKEN, "base_url": "localhost:8081"},
        {"token": TOKEN, "poll_seconds": 0},
        {"token": TOKEN, "tokn": "x"},
    ],
)
def test_settings_are_checked_and_keep_the_token(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        TelegramSettings.model_validate(wrong)
    assert TOKEN not in repr(TelegramSettings.model_validate({"token": TOKEN}))
    assert all(field.description for field in TelegramSettings.model_fields.values())
