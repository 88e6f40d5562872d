"""What is needed to have the channel at all: the package, loaded late, and a token."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import SecretStr, ValidationError

from adapters.discord import DiscordSettings, check_token
from adapters.errors import AuthFailed

WITHOUT = """
import sys
sys.modules["discord"] = None
from adapters import registry
try:
    registry.settings_model("discord")
except registry.AdapterError as error:
    print(type(error).__name__, error.extra)
"""

LATE = """
import sys
from adapters import registry
model = registry.settings_model("discord")
registry.build("discord", "main", model.model_validate({"token": "a.b.c"}), None)
print(sorted(name for name in sys.modules if name in ("discord", "aiohttp")))
"""


def printed(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_without_the_package_it_is_said_which_extra_is_missing() -> None:
    assert printed(WITHOUT) == "MissingExtra discord"


def test_the_library_is_loaded_on_first_use() -> None:
    assert printed(LATE) == "[]"


@pytest.mark.parametrize("token", ["x", "no dots at all", "two.dots", "Bot a.b.c"])
async def test_what_is_no_token_is_refused_before_any_call(token: str) -> None:
    with pytest.raises(AuthFailed, match="doesn't look like one") as caught:
        await check_token(DiscordSettings(token=SecretStr(token), base_url="http://127.0.0.1:1"))
    assert token not in str(caught.value)


@pytest.mark.parametrize("given", [{"token": ""}, {"token": "a.b.c", "backfill_messages": 101}, {"tokne": "a.b.c"}])
def test_settings_that_can_t_be_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        DiscordSettings.model_validate(given)
