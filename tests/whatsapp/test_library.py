"""What the server assumes of the client's library: a new release of it is found out here first."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.whatsapp_relay.directory import Account
from tests.fakes.whatsapp_relay.library import DOUBLE_TABLES, DOUBLE_WORDS, PINNED_ROOT_KEY, SINGLE_WORDS, Words
from tests.fakes.whatsapp_relay.person import Person
from tests.fakes.whatsapp_relay.relay import Relay
from tests.whatsapp.conftest import ANN, Linked


def test_the_words_of_the_binary_xml_and_one_root_key_are_in_the_library(words: Words) -> None:
    """The program that reads them fails where a table has another size, or the key is not there exactly once."""
    assert len(words.single) == SINGLE_WORDS
    assert [len(table) for table in words.double] == [DOUBLE_WORDS] * DOUBLE_TABLES
    assert {"xmlstreamstart", "message", "receipt", "s.whatsapp.net"} <= set(words.single)
    assert len({word for table in words.double for word in table}) > DOUBLE_WORDS * (DOUBLE_TABLES - 1)


async def test_a_client_whose_root_key_was_not_replaced_hangs_up(
    linked: Linked, relay: Relay, limpet: Account, tmp_path: Path
) -> None:
    """So nothing but the key makes it believe the server, and a client of the real network stays there."""
    session = linked.session(ANN, tmp_path)
    person = Person(relay, relay.directory.accounts[ANN], session, root=PINNED_ROOT_KEY)
    try:
        await person.start()
        assert "failed to verify server cert" in (await person.until("Ended"))["error"]
        assert relay.logins == []
    finally:
        await person.kill()
