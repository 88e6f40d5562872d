"""A server, and people and a bot at it. These tests run when their folder is named, and not with all the others.

Linking takes seconds (a client makes 812 keys), so it is done once: every test starts with copies of the sessions and
of what the server knew, as they were right after it.
"""

from __future__ import annotations

import asyncio
import copy
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fakes.whatsapp_relay.directory import Account, Directory
from tests.fakes.whatsapp_relay.library import Words, unsupported
from tests.fakes.whatsapp_relay.person import Person
from tests.fakes.whatsapp_relay.program import words_of_library
from tests.fakes.whatsapp_relay.relay import Relay
from tests.fakes.whatsapp_relay.trust import Trust, new_trust
from tests.whatsapp.bot import AdapterBot, Bot, LibraryBot

HERE = Path(__file__).parent

LIMPET, ANN = "15550000001", "15550000002"

BOTS: dict[str, type[LibraryBot] | type[AdapterBot]] = {"library": LibraryBot, "adapter": AdapterBot}
"""Every scenario is played with each."""


@dataclass(frozen=True, slots=True)
class Linked:
    """What is left of the linking: the sessions in ``folder``, one for each phone number, and what the server knows."""

    folder: Path
    trust: Trust
    words: Words
    directory: Directory

    def relay(self) -> Relay:
        """A server that knows them, and nothing of what another one was told since."""
        return Relay(self.trust, self.words, copy.deepcopy(self.directory))

    def session(self, phone: str, folder: Path) -> Path:
        """A copy of that session, in ``folder``."""
        return Path(shutil.copytree(self.folder / phone, folder / phone))


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    named = [Path(config.invocation_params.dir, argument.partition("::")[0]).resolve() for argument in config.args]
    return None if any(path.is_relative_to(HERE) for path in named) else True


@pytest.fixture(scope="session", autouse=True)
def _supported() -> None:
    if reason := unsupported():
        pytest.skip(reason)


@pytest.fixture(scope="session")
def words(_supported: None) -> Words:
    return words_of_library()


@pytest.fixture(scope="session")
def linked(words: Words, tmp_path_factory: pytest.TempPathFactory) -> Linked:
    folder = tmp_path_factory.mktemp("linked")
    directory = Directory()
    directory.open_account(LIMPET, "100000000000001", "Limpet")
    directory.open_account(ANN, "100000000000002", "Ann")
    made = Linked(folder, new_trust(folder), words, directory)
    asyncio.run(_link(made))
    return made


async def _link(made: Linked) -> None:
    async with Relay(made.trust, made.words, made.directory) as relay:
        people = [Person(relay, account, made.folder / phone) for phone, account in made.directory.accounts.items()]
        try:
            for person in people:
                await person.start()
            await asyncio.gather(*(person.link() for person in people))
            for person in people:
                await person.stop()
        finally:
            for person in people:
                await person.kill()


@pytest.fixture
async def relay(linked: Linked) -> AsyncIterator[Relay]:
    async with linked.relay() as relay:
        yield relay
        assert relay.proxy.refused == [], "a client asked for a host that is none of WhatsApp's"
        assert relay.errors == []


@pytest.fixture
async def ann(linked: Linked, relay: Relay, tmp_path: Path) -> AsyncIterator[Person]:
    """Somebody who writes to the bot."""
    person = await Person(relay, relay.directory.accounts[ANN], linked.session(ANN, tmp_path)).start()
    try:
        await person.until("Connected")
        yield person
    finally:
        await person.kill()


@pytest.fixture
def limpet(relay: Relay) -> Account:
    """Whom she writes to."""
    return relay.directory.accounts[LIMPET]


@pytest.fixture(params=BOTS)
async def bot(
    request: pytest.FixtureRequest, linked: Linked, relay: Relay, limpet: Account, tmp_path: Path
) -> AsyncIterator[Bot]:
    bot = BOTS[request.param](relay, limpet, linked.session(LIMPET, tmp_path))
    try:
        await bot.start()
        yield bot
    finally:
        await bot.kill()
