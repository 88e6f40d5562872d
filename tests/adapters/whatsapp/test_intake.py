"""Who is who: asked of the library where an event does not say it, kept, and told where a chat has another id by it."""

from __future__ import annotations

from adapters.message import Edited, Message, Moved
from adapters.whatsapp import WhatsAppAdapter
from tests.adapters.whatsapp.conftest import IN_GROUP, Open
from tests.adapters.work import Received, running, until
from tests.fakes.whatsapp_events import ANN, BOT
from tests.fakes.whatsapp_seam import Seam, ann

_NO_NUMBER = {"alt": ""}


async def test_the_phone_number_is_asked_for_where_an_event_has_none(
    seam: Seam, adapter: WhatsAppAdapter, opened: Open
) -> None:
    """G-RTE-20: an allowlist of phone numbers holds for a hidden id, and after a restart without asking."""
    seam.phones[ANN["lid"]] = ANN["phone"]
    received = Received()
    async with running(adapter, received.accept):
        seam.says("hello", **_NO_NUMBER)
        await until(lambda: received.texts == ["hello"])
    seam.phones.clear()
    await adapter.close()
    again = opened()
    async with running(again, received.accept):
        seam.says("again", **_NO_NUMBER)
        await until(lambda: "again" in received.texts)
    for message in received.messages:
        assert (message.sender.id, message.sender.aliases) == (ann(), (f"+{ANN['phone']}",))


async def test_the_hidden_id_is_asked_for_too(seam: Seam, adapter: WhatsAppAdapter) -> None:
    seam.phones[ANN["lid"]] = ANN["phone"]
    phone = f"{ANN['phone']}@s.whatsapp.net"
    received = Received()
    async with running(adapter, received.accept):
        seam.says("hello", chat=phone, sender=phone, alt="")
        await until(lambda: received.texts == ["hello"])
    assert received.messages[0].address.chat == received.messages[0].sender.id == ann()


async def test_who_is_known_by_nothing_else_is_heard_all_the_same(seam: Seam, adapter: WhatsAppAdapter) -> None:
    """G-RTE-20: denied by the hub, with a line in its log, and not dropped here."""
    received = Received()
    async with running(adapter, received.accept):
        seam.says("hello", **_NO_NUMBER)
        await until(lambda: received.texts == ["hello"])
    assert received.messages[0].sender.aliases == ()


async def test_a_chat_that_gets_its_hidden_id_is_the_same_chat(seam: Seam, adapter: WhatsAppAdapter) -> None:
    phone = f"{ANN['phone']}@s.whatsapp.net"
    received = Received()
    async with running(adapter, received.accept):
        seam.says("one", chat=phone, sender=phone, alt="")
        seam.says("two")
        await until(lambda: received.texts == ["one", "two"])
    (moved,) = received.of(Moved)
    assert (moved.address.chat, moved.to_chat) == (f"+{ANN['phone']}", ann())


async def test_a_chat_that_could_not_be_moved_is_moved_the_next_time(seam: Seam, adapter: WhatsAppAdapter) -> None:
    """Session and memory hang on it: a disk that is full for a moment must not part a person from them."""
    phone = f"{ANN['phone']}@s.whatsapp.net"
    received = Received(troubles=[None, OSError("full")])
    async with running(adapter, received.accept):
        for text in ("one", "two", "three"):
            seam.says(text, **({"chat": phone, "sender": phone, "alt": ""} if text == "one" else {}))
        await until(lambda: received.texts == ["one", "two", "three"])
    assert [moved.to_chat for moved in received.of(Moved)] == [ann()]


async def test_the_chat_with_oneself_is_one_chat(seam: Seam, adapter: WhatsAppAdapter) -> None:
    """By whichever of the account's two ids it comes: they are known from the link."""
    received = Received()
    async with running(adapter, received.accept):
        for text, own in (("one", f"{BOT['phone']}@s.whatsapp.net"), ("two", f"{BOT['lid']}@lid")):
            seam.says(text, chat=own, sender=own, alt="", from_me=True)
        await until(lambda: received.texts == ["one", "two"])
    assert {(said.address.chat, said.sender.id) for said in received.messages} == {(f"{BOT['lid']}@lid",) * 2}


async def test_one_group_message_that_comes_twice_is_one(seam: Seam, adapter: WhatsAppAdapter) -> None:
    """A key comes first, under the same id: stored for a message, it would hide the words."""
    received = Received()
    async with running(adapter, received.accept):
        key = {"senderKeyDistributionMessage": {"groupID": "x"}}
        message = seam.reports_message(key, **IN_GROUP)
        seam.says("the words", **IN_GROUP, id=message)
        seam.reports_message(None, **IN_GROUP)
        seam.reports_message({"conversation": ""}, **IN_GROUP)
        seam.says("after it", **IN_GROUP)
        await until(lambda: "after it" in received.texts)
    assert [(said.id == message, said.text) for said in received.of(Message)] == [
        (True, "the words"),
        (False, "after it"),
    ]


async def test_a_change_is_no_second_turn(seam: Seam, adapter: WhatsAppAdapter) -> None:
    """G-DLV-05"""
    received = Received()
    async with running(adapter, received.accept):
        said = seam.says("teh")
        seam.edits(said, "the")
        await until(lambda: bool(received.of(Edited)))
    assert received.texts == ["teh"]
    assert received.of(Edited)[0].id == said


async def test_an_event_that_is_all_wrong_holds_up_nothing(seam: Seam, adapter: WhatsAppAdapter) -> None:
    received = Received()
    async with running(adapter, received.accept):
        await until(lambda: adapter.health.state == "connected")
        for running_client in seam._clients.values():
            running_client.reported.put((17, b"\xff\xff\xff no protobuf"))
            running_client.reported.put((99, b""))
        seam.says("after it")
        await until(lambda: received.texts == ["after it"])
