"""A group on Telegram, from its first question to the day its token was revoked: nothing lost, nothing twice."""

from __future__ import annotations

import json
import signal
from typing import Any

from tests.fakes.model_server import Call, ModelServer, Recorded, Reply
from tests.fakes.telegram_api import ANN, BOB, Fault, TelegramApi
from tests.flows.conftest import Limpet, connect

TOPIC = 5
GROUP = -1001

AT_WORK = f'owners = ["telegram:{ANN.id}"]'
ALLOWED = f'groups = ["{GROUP}"]\n'


def asked(request: Recorded) -> str:
    return str([m["content"] for m in request.messages if m["role"] == "user"][-1])


def helper(request: Recorded) -> Reply:
    """Sends the list back when it is asked for it, and repeats anything else."""
    last = asked(request)
    if request.messages[-1]["role"] == "tool":
        return Reply("Here it is.")
    if "send it back" in last:
        path = last.partition("list.txt, ")[2].partition(": ")[2].partition("]")[0]
        return Reply(calls=[Call("send_file", json.dumps({"path": path, "caption": "the list"}))])
    return Reply(f"You said: {last.rpartition('] ')[2]}")


async def test_a_group_is_answered_in_its_topic_through_all_that_happens(limpet: Limpet, telegram: TelegramApi) -> None:
    group = telegram.group(GROUP, topics=[TOPIC])
    where: dict[str, Any] = {"chat": group, "topic": TOPIC}
    async with ModelServer(helper) as server:
        connect(limpet, telegram, server, AT_WORK, ALLOWED)
        async with limpet.hub() as hub:
            telegram.says("The key is under the pot.", user=BOB, **where)
            question = telegram.says("@limpet_bot where is the key?", **where)
            (answer,) = await telegram.wait_sent(1)
            assert (answer.thread, answer.reply_to) == (TOPIC, question)
            assert answer.text == "You said: where is the key?"
            assert "Bob: The key is under the pot." in asked(server.requests[0])

            while (await limpet("status", "--json")).json["unsent"]:
                pass  # who reacts has read the answer, and we know that it was sent
            telegram.edits(question, "@limpet_bot where is the other key?", chat=group)
            telegram.react(answer.id, "👍", chat=group)
            telegram.add_file("file-1", b"milk\n")
            document = {"file_id": "file-1", "file_unique_id": "u", "file_name": "list.txt", "file_size": 5}
            caption = "@limpet_bot send it back"
            mention = [{"type": "mention", "offset": 0, "length": 11}]
            telegram.push(
                message=telegram.message(
                    ANN,
                    group,
                    document=document,
                    caption=caption,
                    caption_entities=mention,
                    message_thread_id=TOPIC,
                    is_topic_message=True,
                )
            )
            sent = await telegram.wait_sent(3)
            assert [one.text for one in sent[1:]] == ["Here it is.", "the list"]
            assert (sent[2].kind, sent[2].thread, sent[2].file.data) == ("document", TOPIC, b"milk\n")
            assert "changed an earlier message" in asked(server.requests[1])
            assert "Ann reacted to your message with 👍" in asked(server.requests[1])

            await telegram.stop()
            telegram.says("@limpet_bot are you there?", **where)
            await telegram.start()
            telegram.fail("sendMessage", Fault(502, body=b"<html>Bad Gateway</html>"))
            sent = await telegram.wait_sent(4, seconds=30)
            assert (sent[3].text, sent[3].thread) == ("You said: are you there?", TOPIC)

            await telegram.wait_confirmed()
            telegram.fail("getUpdates", Fault(401, "Unauthorized"), times=1)
            telegram.says("@limpet_bot and now?", **where)
            await hub.until("channel.failed")
            status = await limpet("status")
            assert "is wrong or was revoked" in status.out
            await hub.stop(signal.SIGTERM)
        async with limpet.hub() as hub:
            sent = await telegram.wait_sent(5, seconds=30)
            assert sent[4].text == "You said: and now?"
            await telegram.wait_confirmed()
            await hub.stop(signal.SIGTERM)
    assert len(telegram.sent) == 5, "nothing twice"
    assert len(server.requests) == 5, "an edit and a reaction are no turns"
