"""Who is who: hidden ids, phone numbers, devices, and phone numbers as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.whatsapp.identity import Identities, Jid, normalized

LID = "100000000000001@lid"
PHONE = "15550001234@s.whatsapp.net"


def jid(text: str) -> Jid:
    found = Jid.parse(text)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("100000000000001:1@lid", LID),
        ("100000000000001@lid", LID),
        ("15550001234:12@s.whatsapp.net", "+15550001234"),
        ("15550001234.0:12@s.whatsapp.net", "+15550001234"),
        ("15550001234@c.us", "+15550001234"),
        ("15550001234:99@hosted", "+15550001234"),
        ("100000000000001:99@hosted.lid", LID),
        ("120363000000000001@g.us", "120363000000000001@g.us"),
        ("15550001234-1600000000@g.us", "15550001234-1600000000@g.us"),
    ],
)
def test_a_device_is_no_part_of_an_id(text: str, own: str) -> None:
    """G-RTE-20."""
    assert jid(text).id == own
    assert Jid.of_id(own) == jid(text)


@pytest.mark.parametrize("text", ["", "@lid", "nobody", "15550001234", "a@b@c", "s.whatsapp.net"])
def test_what_is_no_address_is_none(text: str) -> None:
    assert Jid.parse(text) is None


@pytest.mark.parametrize("own", ["", "+", "+0", "15550001234", "x@newsletter", "status@broadcast", "+1555@lid"])
def test_nothing_is_sent_to_what_is_no_id(own: str) -> None:
    assert Jid.of_id(own) is None


def test_a_lid_is_no_phone_number() -> None:
    """G-RTE-21: a hidden id looks like a long number, and is none."""
    person = Identities().person(jid("235085806727321@lid"))
    assert (person.id, person.aliases) == ("235085806727321@lid", ())


def test_both_addresses_are_one_person_in_either_order() -> None:
    """G-RTE-20: an allowlist of phone numbers holds for who is known by a hidden id."""
    for told in ([jid(LID), jid(PHONE)], [jid(PHONE), None, jid(LID)]):
        identities = Identities()
        learned = identities.learn(told)
        assert learned is not None
        assert learned.was is None
        assert (learned.person.id, learned.person.aliases) == (LID, ("+15550001234",))
        assert identities.person(jid(PHONE)) == identities.person(jid(LID)) == learned.person
        assert identities.learn(told) is None


def test_what_was_learned_outlives_a_restart() -> None:
    """G-RTE-20: the second message comes without the phone number."""
    before = Identities()
    before.learn([jid(LID), jid(PHONE)])
    assert Identities(before.pairs).person(jid("100000000000001:7@lid")).aliases == ("+15550001234",)


def test_who_was_known_by_a_number_is_still_the_same_when_the_lid_comes() -> None:
    """The hub is told that the chat has another id, also after a restart in between."""
    before = Identities()
    assert before.meet(jid(PHONE)).id == "+15550001234"
    identities = Identities(before.pairs, before.met)
    learned = identities.learn([jid(PHONE), jid(LID)])
    assert learned is not None
    assert (learned.was, learned.person.id) == ("+15550001234", LID)
    again = Identities(identities.pairs, identities.met).learn([jid(PHONE), jid(LID)])
    assert again == learned, "the hub may not have heard it"
    identities.moved(learned.was or "")
    assert identities.learn([jid(PHONE), jid(LID)]) is None
    assert identities.met == ()
    assert identities.meet(jid(PHONE)).id == LID
    assert identities.met == ()


def test_one_address_alone_and_a_group_teach_nothing() -> None:
    identities = Identities()
    assert identities.learn([jid(LID), None]) is None
    assert identities.learn([jid(LID), jid("1@g.us")]) is None
    assert identities.pairs == {}


def test_a_number_that_changed_hands_is_the_new_owners_alone() -> None:
    identities = Identities()
    identities.learn([jid("1@lid"), jid(PHONE)])
    identities.learn([jid("2@lid"), jid(PHONE)])
    assert identities.person(jid("1@lid")).aliases == ()
    assert identities.person(jid("2@lid")).aliases == ("+15550001234",)
    assert identities.person(jid(PHONE)).id == "2@lid"


def test_a_person_with_a_new_number_has_lost_the_old_one() -> None:
    identities = Identities()
    identities.learn([jid("1@lid"), jid(PHONE)])
    identities.learn([jid("1@lid"), jid("4915100000@s.whatsapp.net")])
    assert identities.person(jid("1@lid")).aliases == ("+4915100000",)
    assert identities.person(jid(PHONE)).id == "+15550001234"


@pytest.mark.parametrize(
    "written",
    [
        *("+15550001234", "15550001234", "0015550001234", "+1 (555) 000-1234", "1.555.000.1234", "+1/555/0001234"),
        *("+1\u00a0555\u2011000\u20131234", "tel:+1-555-000-1234", "whatsapp:+15550001234", " +15550001234\n"),
        *(
            "https://wa.me/15550001234",
            "wa.me/15550001234?text=hi",
            "15550001234@s.whatsapp.net",
            "+１５５５０００１２３４",
        ),
        *("15550001234:3@s.whatsapp.net", "15550001234@c.us", "\u202a+1 555 000 1234\u202c", "+١٥٥٥٠٠٠١٢٣٤"),
    ],
)
def test_a_phone_number_in_any_writing(written: str) -> None:
    assert normalized(written) == "+15550001234"


def test_a_zero_that_is_dialled_at_home_is_no_part_of_a_number() -> None:
    assert normalized("+49 (0)151 2345678") == "+491512345678"


@pytest.mark.parametrize(
    ("written", "own"), [("1:1@lid", "1@lid"), ("120363000000000001@g.us", "120363000000000001@g.us")]
)
def test_an_id_of_whatsapps_own_is_taken_as_it_is(written: str, own: str) -> None:
    assert normalized(written) == own


@pytest.mark.parametrize(
    "written", ["", "*", "ann", "0151 2345678", "+0151", "1234", "+1234567890123456", "x@newsletter", "+1555O001234"]
)
def test_what_can_not_be_told_is_refused_with_the_mend(written: str) -> None:
    with pytest.raises(ValueError, match=r"\+15550001234"):
        normalized(written)


@given(st.from_regex(r"[1-9][0-9]{7,13}", fullmatch=True), st.lists(st.sampled_from([*" -./"]), max_size=6))
def test_what_stands_between_the_digits_decides_nothing(digits: str, signs: list[str]) -> None:
    written = "".join(digit + sign for digit, sign in zip(digits, [*signs, *[""] * 20], strict=False))
    assert normalized(f"+{written}") == f"+{digits}"
