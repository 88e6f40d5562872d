"""What ``limpet channels add`` and ``limpet doctor`` hear of an account."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from adapters.errors import AuthFailed, Unreachable
from adapters.slack import check_tokens
from adapters.slack.findings import inspect
from adapters.slack.settings import SCOPES
from tests.adapters.slack.conftest import settings_for
from tests.fakes.slack_api import APP_TOKEN, TOKEN, Fault, SlackApi
from tests.fakes.slack_api.methods import SCOPES as REAL_SCOPES


async def test_an_account_is_who_its_tokens_say(api: SlackApi) -> None:
    me = await check_tokens(settings_for(api))
    assert (me.id, me.username, me.team, me.name) == ("U0LIMPET1", "limpet", "T0GARDEN1", "limpet in Garden")
    assert me.link == "https://garden.slack.test/app_redirect?team=T0GARDEN1&channel=U0LIMPET1"
    assert [method for method, _ in api.calls] == ["auth.test", "apps.connections.open"], "nothing is received"


async def test_signed_http_needs_no_app_token(api: SlackApi) -> None:
    settings = settings_for(api, transport="http", signing_secret=SecretStr("x"), app_token=None)
    assert (await check_tokens(settings)).username == "limpet"


@pytest.mark.parametrize(
    ("token", "error", "words"),
    [
        (TOKEN, "token_revoked", "set token"),
        (TOKEN, "account_inactive", "install it again"),
        (APP_TOKEN, "invalid_auth", "connections:write"),
    ],
)
async def test_a_wrong_token_is_told_apart(api: SlackApi, token: str, error: str, words: str) -> None:
    api.revoked[token] = error
    for ask in (check_tokens(settings_for(api)), inspect(settings_for(api), [])):
        with pytest.raises(AuthFailed) as caught:
            await ask
        assert words.casefold() in str(caught.value).casefold()
        assert token not in str(caught.value)


async def test_an_app_token_without_its_scope_is_told(api: SlackApi) -> None:
    api.fail("apps.connections.open", Fault("missing_scope", fields=(("needed", "connections:write"),)))
    with pytest.raises(AuthFailed, match="connections:write"):
        await check_tokens(settings_for(api))


async def test_a_network_that_is_away_is_told(api: SlackApi) -> None:
    settings = settings_for(api)
    await api.stop()
    with pytest.raises(Unreachable):
        await check_tokens(settings)


async def test_nothing_is_amiss(api: SlackApi) -> None:
    channel = api.channel()
    assert await inspect(settings_for(api), [channel.id]) == []


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_missing_scope_is_named(api: SlackApi, scope: str) -> None:
    api.scopes.remove(scope)
    (found,) = await inspect(settings_for(api), [])
    assert f"lacks the scope {scope}" in found.what
    assert SCOPES[scope] in found.what
    assert "install" in found.mend


def test_without_its_extra_only_this_channel_is_missing() -> None:
    program = (
        "import sys; sys.modules['slack_bolt'] = None; from adapters import registry; registry.settings_model('slack')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "MissingExtra: slack needs the extra 'slack'" in done.stderr


def test_the_libraries_are_loaded_on_first_use() -> None:
    program = "import sys; from adapters import registry; registry.settings_model('slack'); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not any(f"'{name}'" in done.stdout for name in ("slack_bolt", "slack_sdk", "aiohttp"))


def test_the_manifest_to_paste_is_what_the_bot_needs() -> None:
    page = (Path(__file__).parents[3] / "docs" / "channels" / "slack.md").read_text("utf-8")
    manifest = json.loads(page.partition("```json\n")[2].partition("```")[0])
    assert manifest["oauth_config"]["scopes"]["bot"] == sorted(SCOPES)
    events = set(manifest["settings"]["event_subscriptions"]["bot_events"])
    assert {"app_mention", "message.im", "message.mpim", "message.channels", "message.groups"} <= events
    assert {"reaction_added", "reaction_removed", "tokens_revoked", "app_uninstalled"} <= events
    assert manifest["settings"]["socket_mode_enabled"] is manifest["settings"]["interactivity"]["is_enabled"] is True
    assert [command["command"] for command in manifest["features"]["slash_commands"]] == ["/limpet"]


async def test_every_scope_is_asked_for(api: SlackApi) -> None:
    assert set(SCOPES) == set(REAL_SCOPES)


async def test_a_channel_without_the_bot_is_told(api: SlackApi) -> None:
    public = api.add_chat("C0PUBLIC", "channel", "public", with_bot=False)
    secret = api.add_chat("C0SECRET", "group", "secret", with_bot=False)
    archived = api.channel("old")
    archived.is_archived = True
    mpim = api.add_chat("G0ANNBOB", "mpim")
    found = await inspect(settings_for(api), [public.id, secret.id, archived.id, mpim.id, "C0WRONG"])
    assert [one.what for one in found] == [
        "@limpet is not in #public (C0PUBLIC)",
        "there is no channel C0SECRET, or it is private and @limpet is not in it",
        "#old (C0OLD) is archived",
        "there is no channel C0WRONG, or it is private and @limpet is not in it",
    ]
    assert "/invite @limpet" in found[0].mend
