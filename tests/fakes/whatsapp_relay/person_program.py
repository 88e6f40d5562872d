"""Runs a real client and does with it what a person does with theirs; the other side is ``person``.

``echoes`` makes it a bot that repeats, as a quote, what others ask it.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import os
import sys
from typing import Any

from tests.fakes.whatsapp_relay import library
from tests.fakes.whatsapp_relay.lines import Lines

log = logging.getLogger(__name__)

_MEDIA = ("imageMessage", "videoMessage", "audioMessage", "documentMessage", "stickerMessage")


class Program:
    """One client. The library's events and functions have no types."""

    def __init__(self, lines: Lines) -> None:
        from neonize.aioze.client import NewAClient
        from neonize.events import EVENT_TO_INT
        from neonize.proto import Neonize_pb2 as events

        self._lines = lines
        self._echoes = bool(lines.settings.get("echoes"))
        self._seen: dict[str, Any] = {}
        self._client = NewAClient(lines.settings["store"], uuid=lines.settings["name"])
        self._client.event.qr(self._shows_qr)
        for kind in EVENT_TO_INT:
            self._client.event(kind)(self._happened)
        self._client.event(events.Message)(self._message)

    async def run(self) -> None:
        from neonize._binder import ProxySettings

        running = await self._client.connect(ProxySettings(proxy_address=self._lines.settings["proxy"]))
        running.add_done_callback(self._ended)
        names = (name for name in dir(self) if name.startswith("do_"))
        await self._lines.serve({name.removeprefix("do_"): getattr(self, name) for name in names})

    def _ended(self, running: asyncio.Task[None]) -> None:
        error = None if running.cancelled() else running.exception()
        self._lines.tell("Ended", error=str(error or ""))

    # What it sees -----------------------------------------------------------------------------------------------------

    async def _shows_qr(self, _: Any, code: bytes) -> None:
        self._lines.tell("QR", code=code.decode())

    async def _happened(self, _: Any, event: Any) -> None:
        from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]  # it has no types

        self._lines.tell(type(event).__name__, **MessageToDict(event, preserving_proto_field_name=True))

    async def _message(self, _: Any, event: Any) -> None:
        try:
            await self._received(event)
        except Exception:
            log.exception("a message was lost")

    async def _received(self, event: Any) -> None:
        source, body = event.Info.MessageSource, event.Message
        if body.HasField("senderKeyDistributionMessage") and len(body.ListFields()) <= 2 and not _said(body):
            self._lines.tell("SenderKey", id=event.Info.ID)
            return
        self._seen[event.Info.ID] = event
        self._lines.tell(
            "Message",
            id=event.Info.ID,
            chat=_jid(source.Chat),
            sender=_jid(source.Sender),
            beside=_jid(source.SenderAlt),
            name=event.Info.Pushname,
            is_own=source.IsFromMe,
            **await self._content(event, body),
        )
        if self._echoes and not source.IsFromMe and _said(body).endswith("?"):
            await self._client.reply_message(f"echo: {_said(body)}", event)

    async def _content(self, event: Any, body: Any) -> dict[str, Any]:
        """What kind of message it is, and what is in it."""
        kind = next((field.name for field, _ in body.ListFields() if field.name in _KINDS), "")
        said: dict[str, Any] = {"kind": _KINDS.get(kind, "other"), "text": _said(body)}
        part: Any = getattr(body, kind) if kind not in ("", "conversation") else None
        if kind == "protocolMessage":
            edited = part.type == part.MESSAGE_EDIT
            said |= {"kind": "edit" if edited else "deletion", "of": part.key.ID, "text": _said(part.editedMessage)}
        elif kind == "reactionMessage":
            said |= {"of": part.key.ID, "text": part.text}
        elif kind == "pollUpdateMessage":
            said |= {"of": part.pollCreationMessageKey.ID, "votes": await self._votes(event)}
        elif kind.startswith("pollCreationMessage"):
            said |= {"text": part.name, "options": [option.optionName for option in part.options]}
        elif kind in _MEDIA:
            said |= {"media_type": part.mimetype, "size": part.fileLength}
        if part is not None and hasattr(part, "contextInfo"):
            quoted = part.contextInfo
            said |= {
                "quotes": quoted.stanzaID,
                "quoted": _said(quoted.quotedMessage),
                "mentions": [*quoted.mentionedJID],
            }
        return said

    async def _votes(self, event: Any) -> list[str]:
        """The library's own function for it takes the pointer that it gets for bytes."""
        from neonize._binder import gocode
        from neonize.proto.Neonize_pb2 import ReturnFunctionWithError

        data = event.SerializeToString()
        pointer = await asyncio.to_thread(gocode.DecryptPollVote, self._client.uuid, data, len(data))
        answer = ReturnFunctionWithError.FromString(pointer.contents.get_bytes())
        assert not answer.Error, answer.Error
        return [option.hex() for option in answer.PollVoteMessage.selectedOptions]

    # What it does -----------------------------------------------------------------------------------------------------

    async def do_say(self, chat: str, text: str) -> str:
        from neonize.proto.waE2E.WAWebProtobufsE2E_pb2 import Message

        return await self._send(chat, Message(conversation=text))

    async def do_quote(self, of: str, text: str) -> str:
        return str((await self._client.reply_message(text, self._seen[of])).ID)

    async def do_quote_myself(self, chat: str, of: str, said: str, text: str) -> str:
        """``said`` is what the own message ``of`` says."""
        from neonize.proto.waE2E.WAWebProtobufsE2E_pb2 import ContextInfo, ExtendedTextMessage, Message

        me = _jid(self._client.me.LID)
        context = ContextInfo(stanzaID=of, participant=me, quotedMessage=Message(conversation=said))
        return await self._send(chat, Message(extendedTextMessage=ExtendedTextMessage(text=text, contextInfo=context)))

    async def do_mention(self, chat: str, text: str, whom: list[str]) -> str:
        from neonize.proto.waE2E.WAWebProtobufsE2E_pb2 import ContextInfo, ExtendedTextMessage, Message

        beside = ContextInfo(mentionedJID=whom)
        return await self._send(chat, Message(extendedTextMessage=ExtendedTextMessage(text=text, contextInfo=beside)))

    async def do_edit(self, chat: str, of: str, text: str) -> str:
        from neonize.proto.waE2E.WAWebProtobufsE2E_pb2 import Message

        return str((await self._client.edit_message(_to(chat), of, Message(conversation=text))).ID)

    async def do_delete(self, chat: str, of: str) -> str:
        return str((await self._client.revoke_message(_to(chat), self._me(), of)).ID)

    async def do_react(self, of: str, emoji: str) -> str:
        source = self._seen[of].Info.MessageSource
        reaction = await self._client.build_reaction(source.Chat, source.Sender, of, emoji)
        return str((await self._client.send_message(source.Chat, reaction)).ID)

    async def do_send_file(self, chat: str, kind: str, data: str, name: str, caption: str = "") -> str:
        """A picture or a document; ``data`` in base64."""
        content = base64.b64decode(data)
        if kind == "image":
            sent = await self._client.send_image(_to(chat), content, caption=caption)
        else:
            sent = await self._client.send_document(_to(chat), content, caption=caption, filename=name)
        return str(sent.ID)

    async def do_send_voice(self, chat: str, data: str, seconds: int) -> str:
        """Opus in Ogg. The library measures it with ffmpeg, which need not be here: so the message is made by hand."""
        from neonize.proto.waE2E.WAWebProtobufsE2E_pb2 import AudioMessage, Message
        from neonize.utils.enum import MediaType

        up = await self._client.upload(base64.b64decode(data), MediaType.MediaAudio)
        audio = AudioMessage(
            URL=up.url,
            directPath=up.DirectPath,
            mediaKey=up.MediaKey,
            fileSHA256=up.FileSHA256,
            fileEncSHA256=up.FileEncSHA256,
            fileLength=up.FileLength,
            mimetype="audio/ogg; codecs=opus",
            seconds=seconds,
            PTT=True,
        )
        return await self._send(chat, Message(audioMessage=audio))

    async def do_fetch(self, of: str) -> str:
        """The file that came with a message, in base64."""
        return base64.b64encode(await self._client.download_any(self._seen[of].Message)).decode()

    async def do_ask(self, chat: str, question: str, options: list[str]) -> str:
        """A poll with one answer."""
        from neonize.utils.enum import VoteType

        poll = await self._client.build_poll_vote_creation(question, options, VoteType.SINGLE)
        return await self._send(chat, poll)

    async def do_vote(self, of: str, options: list[str]) -> str:
        asked = self._seen[of]
        vote = await self._client.build_poll_vote(asked.Info, options)
        return str((await self._client.send_message(asked.Info.MessageSource.Chat, vote)).ID)

    async def do_read(self, of: str) -> None:
        from neonize.utils import ReceiptType

        source = self._seen[of].Info.MessageSource
        await self._client.mark_read(of, chat=source.Chat, sender=source.Sender, receipt=ReceiptType.READ)

    async def do_type(self, chat: str) -> None:
        from neonize.utils import ChatPresence, ChatPresenceMedia

        state, media = ChatPresence.CHAT_PRESENCE_COMPOSING, ChatPresenceMedia.CHAT_PRESENCE_MEDIA_TEXT
        await self._client.send_chat_presence(_to(chat), state, media)

    async def do_is_there(self, phone: str) -> bool:
        """Whether WhatsApp knows the number."""
        return any(one.IsIn for one in await self._client.is_on_whatsapp(phone))

    async def do_pairing_code(self, phone: str) -> str:
        return str(await self._client.PairPhone(phone, False))

    async def do_log_out(self) -> None:
        await self._client.logout()

    async def do_stop(self) -> None:
        await self._client.stop()
        await self._client.idle()

    async def _send(self, chat: str, message: Any) -> str:
        return str((await self._client.send_message(_to(chat), message)).ID)

    def _me(self) -> Any:
        return self._client.me.JID


_KINDS = {
    "conversation": "text",
    "extendedTextMessage": "text",
    "imageMessage": "image",
    "videoMessage": "video",
    "audioMessage": "audio",
    "documentMessage": "document",
    "stickerMessage": "sticker",
    "locationMessage": "location",
    "contactMessage": "contact",
    "protocolMessage": "protocol",
    "reactionMessage": "reaction",
    "pollCreationMessage": "poll",
    "pollCreationMessageV3": "poll",
    "pollUpdateMessage": "vote",
}


def hash_of(option: str) -> str:
    """What a vote for ``option`` says."""
    return hashlib.sha256(option.encode()).hexdigest()


def _said(body: Any) -> str:
    captions = (getattr(body, name).caption for name in ("imageMessage", "videoMessage", "documentMessage"))
    return str(body.conversation or body.extendedTextMessage.text or next((text for text in captions if text), ""))


def _jid(jid: Any) -> str:
    device = f":{jid.Device}" if jid.Device else ""
    return f"{jid.User}{device}@{jid.Server}" if jid.User else ""


def _to(jid: str) -> Any:
    from neonize.utils.jid import build_jid

    user, _, server = jid.partition("@")
    return build_jid(user, server)


def main() -> None:
    lines = Lines()
    library.load()
    library.replace_root_key(bytes.fromhex(lines.settings["root"]))
    asyncio.run(Program(lines).run())
    sys.stderr.flush()
    os._exit(0)  # the library's threads stay


if __name__ == "__main__":
    main()
