"""``limpet allow`` and ``limpet deny``: at the machine, beside a running hub or without one."""

from __future__ import annotations

import pytest

from tests.bot.cli.conftest import Limpet

TELEGRAM = '[channels.telegram]\ntoken = "123456:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"\n'
ASK = ("route", "explain", "--channel", "telegram", "--sender", "7")


def test_an_account_is_let_in_and_blocked_and_let_in_again(limpet: Limpet) -> None:
    limpet.home.config.write_text(TELEGRAM, "utf-8")
    assert "gets a pairing code" in limpet(*ASK).out
    assert limpet("allow", "telegram:7", "--member").out == "telegram:7 is a member now.\n"
    assert limpet(*ASK, "--json").data["route"]["level"] == "member"
    assert limpet("deny", "telegram:7").code == 0
    assert "the sender is blocked" in limpet(*ASK).out
    assert limpet("pairing", "list", "--json").data["people"][0]["level"] == "blocked"
    assert "blocked" in limpet("pairing", "list").out
    assert limpet("allow", "telegram:7").code == 0
    assert limpet(*ASK, "--json").data["route"]["level"] == "guest"


def test_a_group_is_answered_and_then_no_more(limpet: Limpet) -> None:
    limpet.home.config.write_text(TELEGRAM, "utf-8")
    asked = (*ASK, "--chat", "-5", "--group", "--mention")
    assert "not in the list of groups" in limpet(*asked).out
    assert limpet("allow", "--group", "telegram:-5").out == "-5 is answered on channels.telegram now.\n"
    assert limpet(*asked).code == 0
    assert limpet("allow", "--group", "telegram:-5", "--json").data["new"] is False
    assert limpet("pairing", "list").out.startswith("group  telegram:-5")
    assert [group["chat"] for group in limpet("pairing", "list", "--json").data["groups"]] == ["-5"]
    assert limpet("deny", "--group", "telegram:-5").code == 0
    assert "not in the list of groups" in limpet(*asked).out
    limpet.home.config.write_text(TELEGRAM + 'groups = ["-5"]\n', "utf-8")
    refused = limpet("deny", "--group", "telegram:-5")
    assert refused.code == 1
    assert "take it out there" in refused.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("allow",), "say who is let in"),
        (("allow", "telegram:7", "--group", "telegram:-5"), "say who is let in"),
        (("allow", "telegram:7", "--member", "--owner"), "exclude each other"),
        (("allow", "--group", "telegram:-5", "--owner"), "a group has no level"),
        (("allow", "ann"), "is no account"),
        (("allow", "telegram:@ann"), "is no account"),
        (("deny", "telegrm:7"), "did you mean 'telegram'"),
        (("deny", "--group", "telegram"), "is no group"),
        (("deny", "--group", "work:-5"), "no section of [channels] is called 'work'"),
    ],
)
def test_what_names_nobody_changes_nothing(limpet: Limpet, words: tuple[str, ...], said: str) -> None:
    limpet.home.config.write_text(TELEGRAM, "utf-8")
    refused = limpet(*words)
    assert refused.code == 2
    assert said in refused.err
    assert limpet("pairing", "list", "--json").data["people"] == []


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ('direct = "allowlist"\nallow = ["1"]\n', "add '7' to channels.telegram.allow"),
        ('blocked = ["7"]\n', "That is so by the settings"),
    ],
)
def test_who_is_kept_out_by_the_settings_is_not_said_to_be_let_in(limpet: Limpet, settings: str, said: str) -> None:
    limpet.home.config.write_text(TELEGRAM + settings, "utf-8")
    refused = limpet("allow", "telegram:7")
    assert refused.code == 1
    assert said in refused.err
    assert "telegram:7" not in limpet("pairing", "list").out


def test_an_owner_of_the_settings_is_not_blocked(limpet: Limpet) -> None:
    limpet.home.config.write_text('owners = ["telegram:7"]\n' + TELEGRAM, "utf-8")
    refused = limpet("deny", "telegram:7")
    assert refused.code == 1
    assert "take it out of owners" in refused.err
    assert limpet(*ASK, "--json").data["route"]["level"] == "owner"


def test_a_phone_number_is_one_account_in_any_writing(limpet: Limpet) -> None:
    """What was let in is blocked and explained by another writing of the same number."""
    limpet.settings("[channels.whatsapp]\n")
    assert limpet("allow", "whatsapp:+1 (555) 000-1234", "--member").out == "whatsapp:+15550001234 is a member now.\n"
    explained = limpet("route", "explain", "--channel", "whatsapp", "--sender", "001555 0001234")
    assert "known as member" in explained.out
    assert limpet("deny", "whatsapp:1-555-000-1234").code == 0
    assert "is blocked" in limpet("route", "explain", "--channel", "whatsapp", "--sender", "+15550001234").out
    refused = limpet("allow", "whatsapp:ann")
    assert (refused.code, refused.err) == (
        2,
        "limpet: 'ann' is no phone number — write it with its country code, such as +15550001234\n",
    )
