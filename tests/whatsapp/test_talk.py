"""A person and the bot talk: every kind of message, both ways, with encryption from end to end."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tests.fakes.whatsapp_relay.directory import Account
from tests.fakes.whatsapp_relay.person import Person
from tests.fakes.whatsapp_relay.person_program import hash_of
from tests.fakes.whatsapp_relay.relay import Relay
from tests.whatsapp.bot import Bot
from tests.whatsapp.conftest import Linked

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PDF = b"%PDF-1.4 hello"
OPUS = b"OggS" + bytes(2000)


async def test_a_text_is_answered_with_a_quote_of_it(ann: Person, bot: Bot) -> None:
    said = await ann.say(bot.account.by_phone, "hello 🐚 ünïcode?")
    heard = await bot.hears(text="hello 🐚 ünïcode?")
    assert (heard.id, heard.sender) == (said, ann.account.phone)
    answer = await ann.sees(text="echo: hello 🐚 ünïcode?")
    assert (answer["quotes"], answer["quoted"]) == (said, "hello 🐚 ünïcode?")


async def test_a_conversation_goes_on(ann: Person, bot: Bot) -> None:
    """Each side's keys move on with every turn."""
    said = [f"number {number}?" for number in range(10)]
    for text in said:
        await ann.say(bot.account.by_phone, text)
        await ann.sees(text=f"echo: {text}")
    assert bot.texts() == said


async def test_a_quote_says_what_it_quotes(ann: Person, bot: Bot) -> None:
    said = await ann.say(bot.account.by_phone, "first?")
    answer = await ann.sees(text="echo: first?")
    await ann.quote(answer["id"], "why?")
    heard = await bot.hears(text="why?")
    assert heard.of == answer["id"]
    assert heard.quoted in ("echo: first?", "")
    await ann.quote_myself(bot.account.by_phone, said, "first?", "I meant this")
    heard = await bot.hears(text="I meant this")
    assert (heard.of, heard.quoted) == (said, "first?")


async def test_an_edit_a_deletion_and_a_reaction_are_of_the_message(ann: Person, bot: Bot) -> None:
    said = await ann.say(bot.account.by_phone, "frist?")
    answer = await ann.sees(text="echo: frist?")
    await ann.edit(bot.account.by_phone, said, "first")
    edited = await bot.hears("edit")
    assert (edited.of, edited.text) == (said, "first")
    await ann.react(answer["id"], "👍")
    reaction = await bot.hears("reaction")
    assert (reaction.of, reaction.text) == (answer["id"], "👍")
    await ann.delete(bot.account.by_phone, said)
    assert (await bot.hears("deletion")).of == said


async def test_the_bot_edits_erases_and_reacts(ann: Person, bot: Bot) -> None:
    said = await ann.say(bot.account.by_phone, "hello")
    heard = await bot.hears(text="hello")
    sent = await bot.send(heard.chat, "a draft")
    assert (await ann.sees(text="a draft"))["id"] == sent
    await bot.edit(heard.chat, sent, "an answer")
    edited = await ann.sees("edit")
    assert (edited["of"], edited["text"]) == (sent, "an answer")
    await bot.react(heard.chat, said, "👀")
    reaction = await ann.sees("reaction")
    assert (reaction["of"], reaction["text"]) == (said, "👀")
    await bot.erase(heard.chat, sent)
    assert (await ann.sees("deletion"))["of"] == sent


async def test_a_person_sees_that_the_bot_writes(ann: Person, bot: Bot) -> None:
    await ann.say(bot.account.by_phone, "hello")
    heard = await bot.hears(text="hello")
    await bot.type(heard.chat)
    assert (await ann.until("ChatPresence"))["State"] == "COMPOSING"


@pytest.mark.parametrize("addressing", ["lid", "pn"])
async def test_a_mention_in_a_group(relay: Relay, ann: Person, bot: Bot, addressing: str) -> None:
    relay.directory.addressing = "lid" if addressing == "lid" else "pn"
    group = relay.directory.open_group("Tide", ann.account, bot.account)
    me = bot.account.named(relay.directory.addressing)
    await ann.mention(group.jid, f"@{me.user} when is high tide?", me)
    heard = await bot.hears("text")
    assert heard.mentions_me
    assert (heard.chat, heard.sender) == (str(group.jid), ann.account.phone)
    answer = await ann.sees("text")
    assert answer["chat"] == str(group.jid)
    assert answer["sender"] == str(bot.account.named(relay.directory.addressing, 1))
    assert len(bot.texts()) == 1


@pytest.mark.parametrize(
    ("kind", "data", "name"), [("image", PNG, ""), ("document", PDF, "tide.pdf")], ids=["image", "document"]
)
async def test_a_file_arrives_with_its_caption(
    relay: Relay, ann: Person, bot: Bot, kind: str, data: bytes, name: str
) -> None:
    said = await ann.send_file(bot.account.by_phone, kind, data, name, "look")
    heard = await bot.hears(kind)
    assert (heard.id, heard.text) == (said, "look")
    assert await bot.fetch(said) == data
    assert all(data not in stored for stored in relay.media.files.values()), "it is encrypted"


async def test_a_voice_note_arrives(ann: Person, bot: Bot) -> None:
    said = await ann.send_voice(bot.account.by_phone, OPUS, 3)
    assert (await bot.hears("audio")).media_type.startswith("audio/ogg")
    assert await bot.fetch(said) == OPUS


@pytest.mark.parametrize(
    ("name", "data", "kind"), [("shell.png", PNG, "image"), ("tide.pdf", PDF, "document")], ids=["image", "document"]
)
async def test_the_bot_sends_a_file(ann: Person, bot: Bot, tmp_path: Path, name: str, data: bytes, kind: str) -> None:
    await ann.say(bot.account.by_phone, "send it")
    heard = await bot.hears(text="send it")
    file = tmp_path / name
    file.write_bytes(data)
    await bot.send(heard.chat, "here", file)
    seen = await ann.sees(kind)
    assert seen["text"] == "here"
    assert await ann.fetch(seen["id"]) == data


async def test_a_vote_is_for_an_option_of_the_poll(
    linked: Linked, relay: Relay, ann: Person, limpet: Account, tmp_path: Path
) -> None:
    """The server can't read it."""
    other = await Person(relay, limpet, linked.session(limpet.phone, tmp_path)).start()
    try:
        await other.until("Connected")
        asked = await ann.ask(limpet.by_lid, "Shall I?", "yes", "no")
        poll = await other.sees("poll")
        assert (poll["text"], poll["options"]) == ("Shall I?", ["yes", "no"])
        await other.vote(poll["id"], "no")
        vote = await ann.sees("vote")
        assert (vote["of"], vote["votes"]) == (asked, [hash_of("no")])
    finally:
        await other.kill()


async def test_a_receipt_says_that_it_was_read(relay: Relay, ann: Person, bot: Bot) -> None:
    await ann.say(bot.account.by_phone, "hello?")
    answer = await ann.sees(text="echo: hello?")
    await ann.read(answer["id"])
    await relay.until(lambda: bool(relay.said("receipt", ann.account, type="read", id=answer["id"])))


async def test_who_is_on_whatsapp(ann: Person, limpet: Account) -> None:
    assert await ann.do("is_there", phone=limpet.phone)
    assert not await ann.do("is_there", phone="15559999999")
