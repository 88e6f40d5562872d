"""Settings that are changed from the command line: tried before they are saved, and said to a hub that has old ones."""

from __future__ import annotations

import asyncio
import os
import sys

import pexpect
import pytest

from tests.fakes.model_server import ModelServer
from tests.fakes.telegram_api import TOKEN, TelegramApi
from tests.flows.conftest import Limpet, connect

RESTART = "Restart it to use these: kill"
WRONG = "123456789:AAWrongWrongWrongWrongWrongWrongBAD"


async def test_a_running_hub_with_old_settings_is_told_of(limpet: Limpet, telegram: TelegramApi) -> None:
    """By the command that changed them, and by status until it is started again; a remark is no change."""
    async with ModelServer() as server:
        connect(limpet, telegram, server)
        (limpet.home / "limpet.toml").chmod(0o600)
        before = await limpet("config", "set", "memory.limit", "5")
        assert RESTART not in before.err, "no hub runs"
        async with limpet.hub() as hub:
            assert hub.process.pid is not None
            async with asyncio.timeout(30):
                while (status := await limpet("status")).code:
                    await asyncio.sleep(0.05)  # the channel is not connected yet
            assert status.out.startswith("All well.\n")
            changed = await limpet("config", "set", "memory.limit", "4", "--json")
            assert f"{RESTART} {hub.process.pid}, then limpet run" in changed.err
            assert changed.json["new"] == 4
            stale = await limpet("status")
            assert stale.code == 1
            assert "✗ limpet.toml was changed after the hub was started — restart it: kill" in stale.out
            back = await limpet("config", "set", "memory.limit", "5")
            assert RESTART not in back.err
            limpet.configure("# a remark\n" + (limpet.home / "limpet.toml").read_text("utf-8"))
            (limpet.home / ".env").write_text("# another\n\n")
            (limpet.home / ".env").chmod(0o600)
            assert (await limpet("status")).code == 0
            (limpet.home / ".env").write_text("NEW=1\n")
            assert "✗ .env was changed after the hub was started" in (await limpet("status")).out
            assert RESTART in (await limpet("channels", "remove", "telegram", "--yes")).err
            assert RESTART in (await limpet("init", "--yes")).err
        async with limpet.hub():
            assert (await limpet("status")).code == 0


@pytest.mark.parametrize(
    ("binding", "agent"),
    [
        ("", "main"),
        ('[[bindings]]\nagent = "work"\nchannel = "telegram"\n', "main"),
        ('[[bindings]]\nagent = "work"\n', "work"),
    ],
)
async def test_the_terminal_has_a_home_whatever_agents_there_are(limpet: Limpet, binding: str, agent: str) -> None:
    """`main` by default, another by a binding of everything; and --agent wins over each of them."""
    limpet.configure(f"[agents.work]\n{binding}")
    assert (await limpet("chat", "--once", "Remember that I like tea")).code == 0
    noted = [path.parent.parent.name for path in limpet.home.glob("workspaces/*/memory/20*.md")]
    assert noted == [agent]
    assert (await limpet("memory", "path")).out == f"{limpet.home / 'workspaces' / agent}\n"
    for other in ("main", "work"):
        assert (await limpet("chat", "--once", f"Remember that {other} is it", "--agent", other)).code == 0
        (note,) = limpet.home.glob(f"workspaces/{other}/memory/20*.md")
        assert f"{other} is it" in note.read_text("utf-8")


async def test_a_hub_that_lacks_a_token_names_one_cause_and_one_mend(limpet: Limpet) -> None:
    limpet.configure("[channels.telegram]\n")
    async with limpet.hub() as hub:
        await hub.until("only the terminal is served")
        status = await limpet("status", "--json")
        assert [f["what"].partition(":")[0] for f in status.json["findings"]] == ["telegram can't start"]
    said = [line for line in hub.log if "hub.started" not in line]
    assert len(said) == 2, "".join(said)
    assert "telegram has no token" in said[0]
    assert "TELEGRAM_BOT_TOKEN=…" in said[0]
    assert said[1] == "No channel could be started: only the terminal is served (limpet chat).\n"


async def test_a_hub_knows_its_own_environment_better_than_a_shell_does(limpet: Limpet) -> None:
    """A key that only the service has: the hub can answer, and status beside it says so."""
    limpet.configure('[models]\ndefault = "openai/x"\n')
    assert (await limpet("status")).code == 1
    limpet.env["OPENAI_API_KEY"] = "sk-0123456789abcdef0123"
    async with limpet.hub():
        del limpet.env["OPENAI_API_KEY"]
        assert (await limpet("status")).out.startswith("All well.\n")
    assert (await limpet("status")).code == 1
    async with limpet.hub() as hub:
        limpet.env["OPENAI_API_KEY"] = "sk-0123456789abcdef0123"
        assert "needs a key" in (await limpet("status")).out, "and the other way round"
        await hub.until("not_ready.*openai/x needs a key")


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("poll_seconds=abc", 'poll_seconds must be a whole number, not "abc" — for example: poll_seconds = 30'),
        ("poll_seconds=90", "poll_seconds must be less than or equal to 50"),
        ("base_ulr=http://127.0.0.1:9", "unknown key 'base_ulr' — did you mean 'base_url'?"),
        ("direct=everyone", "direct must be 'pairing', 'allowlist', 'open' or 'disabled'"),
        ("direct=open", 'if it is meant: allow = ["*"]'),
        ('allow=["@ann"]', "'@ann' is a name, and names change hands"),
        (f"token={TOKEN}", "--set token would put a secret into the settings"),
        ("poll_seconds", "is not KEY=VALUE"),
    ],
)
async def test_a_wrong_setting_is_refused_before_the_platform_is_asked(
    limpet: Limpet, telegram: TelegramApi, setting: str, said: str
) -> None:
    limpet.configure("")
    added = await limpet(
        "channels", "add", "telegram", "--token", TOKEN, "--set", f"base_url={telegram.url}", "--set", setting
    )
    assert (added.code, added.out) == (2, "")
    assert said in added.err
    assert "validation error" not in added.err
    assert TOKEN not in added.err
    assert telegram.calls == []
    assert (limpet.home / "limpet.toml").read_text("utf-8") == ""
    assert not (limpet.home / ".env").exists()


async def test_all_that_is_wrong_is_said_at_once_also_elsewhere_in_the_file(
    limpet: Limpet, telegram: TelegramApi
) -> None:
    add = ("channels", "add", "telegram", "--token", TOKEN, "--set", "poll_seconds=abc", "--set", "base_ulr=x")
    limpet.configure("")
    assert len((await limpet(*add)).err.splitlines()) == 2
    unasked = await limpet("channels", "add", "telegram", "--set", "poll_seconds=abc")
    assert "poll_seconds must be" in unasked.err, "before anybody is asked for a token"
    limpet.configure("[memory]\nlimti = 3\n")
    broken = await limpet(*add)
    assert (broken.code, "limpet.toml:2:1 unknown key 'limti'" in broken.err) == (2, True)
    assert telegram.calls == []


async def test_a_channel_that_is_there_keeps_what_is_not_changed(limpet: Limpet, telegram: TelegramApi) -> None:
    """A new token after a 401 must not cost the groups and the allowlist."""
    text = f'[channels.telegram]  # mine\nbase_url = "{telegram.url}"\ngroups = ["-1"]  # the garden\n'
    limpet.configure(text)
    added = await limpet("channels", "add", "telegram", "--token", TOKEN)
    assert added.code == 0, added.err
    assert (limpet.home / "limpet.toml").read_text("utf-8") == text
    assert (limpet.home / ".env").read_text("utf-8") == f"TELEGRAM_BOT_TOKEN={TOKEN}\n"
    again = await limpet("channels", "add", "telegram", "--set", "poll_seconds=5")
    assert again.code == 0, again.err
    assert (limpet.home / "limpet.toml").read_text("utf-8") == f"{text}poll_seconds = 5\n"


async def test_a_token_in_the_file_gives_way_to_the_new_one(limpet: Limpet, telegram: TelegramApi) -> None:
    limpet.configure(f'[channels.telegram]\ntoken = "{WRONG}"\nbase_url = "{telegram.url}"\n')
    assert (await limpet("channels", "add", "telegram", "--token", TOKEN)).code == 0
    text = (limpet.home / "limpet.toml").read_text("utf-8")
    assert text == f'[channels.telegram]\ntoken = "${{TELEGRAM_BOT_TOKEN}}"\nbase_url = "{telegram.url}"\n'


async def test_a_refused_token_names_its_place_and_is_asked_for_again(limpet: Limpet, telegram: TelegramApi) -> None:
    limpet.configure(f'[channels.telegram]\nbase_url = "{telegram.url}"\n')
    (limpet.home / ".env").write_text(f"TELEGRAM_BOT_TOKEN={WRONG}\n")
    refused = await limpet("channels", "add", "telegram")
    assert (refused.code, refused.out) == (1, "")
    assert f"(it is TELEGRAM_BOT_TOKEN of {limpet.home / '.env'})" in refused.err

    def at_a_terminal() -> str:
        environ = {**os.environ, "LIMPET_HOME": str(limpet.home), "TERM": "dumb"}
        environ.pop("TELEGRAM_BOT_TOKEN", None)
        child = pexpect.spawn(
            sys.executable, ["-m", "bot", "channels", "add", "telegram"], env=environ, timeout=60, encoding="utf-8"
        )
        child.expect_exact("Token of the bot (TELEGRAM_BOT_TOKEN): ")
        child.sendline(TOKEN)
        child.expect(pexpect.EOF)
        child.close()
        assert child.exitstatus == 0
        return str(child.before)

    assert "@limpet_bot is connected" in await asyncio.to_thread(at_a_terminal)
    assert (limpet.home / ".env").read_text("utf-8") == f"TELEGRAM_BOT_TOKEN={TOKEN}\n"
