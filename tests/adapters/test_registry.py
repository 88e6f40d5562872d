"""Adapters by name: the built-in one, one that a package brings, and one that nobody has."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from adapters import registry
from adapters.errors import AdapterError
from adapters.telegram import TelegramAdapter, TelegramSettings
from bot.config import load
from bot.home import Home
from tests.fakes.telegram_api import TOKEN, TelegramApi

ROOT = Path(__file__).parent.parent.parent

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


def test_telegram_is_built_in(tmp_path: Path) -> None:
    assert "telegram" in registry.names()
    assert registry.settings_model("telegram") is TelegramSettings
    adapter = registry.build("telegram", "main", TelegramSettings.model_validate({"token": TOKEN}), tmp_path)
    assert isinstance(adapter, TelegramAdapter)
    assert (adapter.channel, adapter.account, adapter.health.state) == ("telegram", "main", "starting")


async def test_a_token_is_checked_by_name() -> None:
    async with TelegramApi() as api:
        settings = registry.settings_model("telegram").model_validate({"token": TOKEN, "base_url": api.url})
        identity = await registry.check("telegram", settings, Path("unused"))
    assert (identity.username, identity.name) == ("limpet_bot", "Limpet")


@pytest.mark.usefixtures("_pigeon")
def test_a_package_adds_its_own_and_takes_over_none(tmp_path: Path) -> None:
    assert set(registry.names()) >= {"pigeon", "telegram"}
    settings = registry.settings_model("pigeon").model_validate({"url": "http://loft"})
    adapter = registry.build("pigeon", "home", settings, tmp_path)
    assert (adapter.channel, adapter.account) == ("pigeon", "home")
    assert registry.settings_model("telegram") is TelegramSettings


def test_the_example_of_the_docs_passes_the_contract_suite(tmp_path: Path) -> None:
    """Outside of this project: a module, its entry point and its tests, just as docs/adapters.md has them."""
    page = (ROOT / "docs" / "adapters.md").read_text("utf-8")
    module, tests = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    ((name, place),) = re.findall(r'^\[project.entry-points."limpet.adapters"\]\n(.+) = "(.+)"$', page, re.MULTILINE)
    (tmp_path / "letterbox.py").write_text(module)
    (tmp_path / "test_letterbox.py").write_text(tests)
    info = tmp_path / "limpet_letterbox-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: limpet-letterbox\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[limpet.adapters]\n{name} = {place}\n")
    environ = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "LIMPET_HOME": str(tmp_path / "home")}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
        )

    suite = run("-m", "pytest", "-p", "no:cacheprovider", "-q", "test_letterbox.py")
    assert suite.returncode == 0, suite.stdout
    passed = re.search(r"(\d+) passed", suite.stdout)
    assert passed is not None
    assert int(passed[1]) >= 15, "and it is not skipped instead"
    (tmp_path / "letters").mkdir()
    added = run("-m", "bot", "channels", "add", "letterbox", "--set", f"folder={tmp_path / 'letters'}")
    assert added.returncode == 0, added.stderr
    assert "The letterbox is connected as channels.letterbox." in added.stdout
    assert run("-m", "bot", "channels", "add", "letterbox", "--token", "x").returncode == 2, "it has none"


def test_a_package_that_can_not_be_imported_says_which_and_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lost_post.py").write_text("import nothing_of_that_name")
    info = tmp_path / "lost_post-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lost-post\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[limpet.adapters]\nlost = lost_post:Lost\nodd = lost_post:\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for kind, reason in (("lost", "nothing_of_that_name"), ("odd", "Error")):
        with pytest.raises(
            registry.BrokenAdapterError, match=f"the adapter '{kind}' of the package lost-post"
        ) as caught:
            registry.settings_model(kind)
        assert reason in str(caught.value)
        assert caught.value.package == "lost-post"
    home = Home(tmp_path)
    home.config.write_text(f'[channels.lost]\nx = 1\n\n[channels.telegram]\ntoken = "{TOKEN}"\n')
    settings = load(home, {})
    assert set(settings.channels) == {"telegram"}, "and the others are served"
    assert settings.degraded["lost"].mend == "update lost-post, or uninstall it"


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("telegrm", "Did you mean 'telegram'? Known: discord, slack, telegram, webhook, whatsapp"),
        ("", "Known: discord, slack, telegram, webhook, whatsapp"),
        ("x", "Known: discord, slack, telegram, webhook, whatsapp"),
    ],
)
def test_an_unknown_name_is_answered_with_the_known_ones(kind: str, says: str) -> None:
    with pytest.raises(registry.UnknownAdapterError, match=r"no adapter is called") as caught:
        registry.settings_model(kind)
    assert says in str(caught.value)
    assert isinstance(caught.value, AdapterError)


def test_nothing_is_imported_before_it_is_needed() -> None:
    program = (
        "import sys\n"
        "known = ('pydantic', 'httpx', 'aiohttp', 'telegram', 'markdown_it')\n"
        "heavy = lambda: [name for name in known if name in sys.modules]\n"
        "from adapters import registry, markdown, split\n"
        "registry.names()\n"
        "print(heavy())\n"
        "settings = registry.settings_model('telegram').model_validate({'token': '1:x'})\n"
        "registry.build('telegram', 'main', settings, None)\n"
        "more = {'secret': 16 * 'x', 'callback_url': 'http://127.0.0.1:1/'}\n"
        "registry.build('webhook', 'home', registry.settings_model('webhook').model_validate(more), None)\n"
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
