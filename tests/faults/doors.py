"""The channels whose hub is killed: how each is set up, what is said there, and what its people see.

A channel is added by one more class and its line in ``DOORS``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Generic, Protocol, TypeVar

from yarl import URL

from tests.fakes import discord_api, slack_api
from tests.fakes.discord_api import DiscordApi
from tests.fakes.loopback import Loopback
from tests.fakes.slack_api import SlackApi
from tests.fakes.telegram_api import ANN, TOKEN, TelegramApi
from tests.fakes.webhook_program import SECRET, WebhookProgram
from tests.flows.conftest import Limpet


class Door(Protocol):
    """A platform that runs, with a chat between one owner and the bot.

    ``settles``: it takes the same part once. ``keeps``: what is said while nobody listens is handed out later, also the
    first message that ever was in a chat.
    """

    settles: bool
    keeps: bool

    def settings(self, limpet: Limpet) -> str:
        """The sections of the settings; what is secret goes into the environment of ``limpet``."""
        ...

    async def ready(self) -> None:
        """Returns once somebody listens, where that matters."""
        ...

    def says(self, text: str) -> None:
        """The owner writes; the platform hands it out until it is taken."""
        ...

    def shown(self) -> Sequence[str]:
        """What the bot has said, in the order in which it is seen."""
        ...


class _Sent(Protocol):
    @property
    def text(self) -> str: ...


class _Api(Protocol):
    @property
    def sent(self) -> Sequence[_Sent]: ...

    def says(self, text: str) -> object: ...


Api = TypeVar("Api", bound=_Api)
Fake = TypeVar("Fake", bound=Loopback)


class Kept:
    """A platform that keeps what is said until it is taken."""

    keeps = True

    async def ready(self) -> None:
        pass


class Messenger(Kept, Generic[Api]):
    """One whose fake says and shows as those of all messengers do."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def says(self, text: str) -> None:
        self._api.says(text)

    def shown(self) -> Sequence[str]:
        return [sent.text for sent in self._api.sent]


class Telegram(Messenger[TelegramApi]):
    settles = False

    def settings(self, limpet: Limpet) -> str:
        limpet.env["TELEGRAM_BOT_TOKEN"] = TOKEN
        return f'owners = ["telegram:{ANN.id}"]\n[channels.telegram]\nbase_url = "{self._api.url}"\npoll_seconds = 5\n'


class Webhook(Kept):
    settles = True

    def __init__(self, program: WebhookProgram) -> None:
        self._program = program

    def settings(self, limpet: Limpet) -> str:
        limpet.env["HOME_SECRET"] = SECRET
        return (
            'owners = ["webhook:home/ann"]\n'
            f'[channels.home]\nkind = "webhook"\ncallback_url = "{self._program.url}"\n'
            f"port = {URL(self._program.bot).port}\n"
        )

    def says(self, text: str) -> None:
        self._program.say(self._program.message(text))

    def shown(self) -> Sequence[str]:
        return [str(taken["text"]) for taken in self._program.taken]


class Discord(Messenger[DiscordApi]):
    """It knows a part by its nonce for minutes, and by the history of the channel after that.

    What was missed is read from the history of the chats that are known: not of one where nothing was ever taken.
    """

    settles = True
    keeps = False

    def settings(self, limpet: Limpet) -> str:
        limpet.env["DISCORD_BOT_TOKEN"] = discord_api.TOKEN
        return f'owners = ["discord:{discord_api.ANN.id}"]\n[channels.discord]\nbase_url = "{self._api.root}"\n'

    async def ready(self) -> None:
        while not self._api.is_listened_to:
            await asyncio.sleep(0.01)


class Slack(Messenger[SlackApi]):
    """A part carries its key as metadata, by which it is found in the history."""

    settles = True

    def settings(self, limpet: Limpet) -> str:
        limpet.env |= {"SLACK_BOT_TOKEN": slack_api.TOKEN, "SLACK_APP_TOKEN": slack_api.APP_TOKEN}
        return f'owners = ["slack:{slack_api.ANN.id}"]\n[channels.slack]\nbase_url = "{self._api.base_url}"\n'


@asynccontextmanager
async def opened(fake: Fake, door: Callable[[Fake], Door]) -> AsyncIterator[Door]:
    """The door to ``fake``, which runs for the length of the block."""
    async with fake:
        yield door(fake)


DOORS: dict[str, Callable[[], AbstractAsyncContextManager[Door]]] = {
    "discord": lambda: opened(DiscordApi(), Discord),
    "slack": lambda: opened(SlackApi(), Slack),
    "telegram": lambda: opened(TelegramApi(), Telegram),
    "webhook": lambda: opened(WebhookProgram(), Webhook),
}
