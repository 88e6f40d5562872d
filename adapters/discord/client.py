"""What we ask of Discord: one method for each thing, which raises nothing but ``adapters.errors``.

Every message that goes out, and every change of one, mentions nobody and shows no previews. Knows no outbox and no
retry: each method makes one call.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from adapters.discord.content import Json
from adapters.discord.markup import rendered
from adapters.discord.refusals import THREAD_EXISTS, Refused
from adapters.discord.settings import BotIdentity, DiscordSettings
from adapters.discord.transport import Connection
from adapters.errors import Ambiguous, Rejected, Unreachable

if TYPE_CHECKING:
    import discord

    from adapters.discord.interactions import Waiting
    from adapters.discord.transport import Session
    from adapters.message import Button, Part

TEXT_LIMIT = 2000
"""Code points, of the text with its markup."""

_NOBODY = {"parse": [], "replied_user": False}
"""Who is notified by a mention."""

_EPHEMERAL = 1 << 6
_NO_PREVIEWS = 1 << 2

_READS_MESSAGES = (1 << 18) | (1 << 19)
"""The application may ask for what messages say, by approval or because it is on few servers."""

_DEFERRED, _DEFERRED_UPDATE = 5, 6
_ROW, _BUTTON, _GREY = 1, 2, 2
_ROWS = _COLUMNS = 5
_LABEL = 80
_TITLE = 100

_CDN = "https://cdn.discordapp.com"
_GIFS = "https://media.discordapp.net"


class Client:
    """One bot at one server. Raises AuthFailed for a token that can't be one, before any call."""

    def __init__(
        self, settings: DiscordSettings, sleep: Callable[[float], Awaitable[None]], monotonic: Callable[[], float]
    ) -> None:
        self._connection = Connection(settings, sleep, monotonic)
        self._call = self._connection.call
        self._cdn = settings.base_url

    @property
    def session(self) -> Session:
        return self._connection.session

    async def open(self) -> None:
        await self._connection.open()

    async def close(self) -> None:
        await self._connection.close()

    # Looking ----------------------------------------------------------------------------------------------------------

    async def identity(self) -> BotIdentity:
        application = await self._call("GET", "/applications/@me")
        _id(application)
        me = application.get("bot") or await self._call("GET", "/users/@me")
        _id(me)
        return BotIdentity(
            str(me["id"]),
            me.get("username") or "",
            me.get("global_name") or me.get("username") or "",
            str(application["id"]),
            reads_messages=bool(int(application.get("flags") or 0) & _READS_MESSAGES),
            servers=int(application.get("approximate_guild_count") or 0),
        )

    async def gateway(self) -> str:
        """Where the gateway is."""
        answer = await self._call("GET", "/gateway/bot")
        if not isinstance(answer, dict) or "url" not in answer:
            raise Unreachable("the answer to GET /gateway/bot names no gateway: is the server a Discord API server?")
        return str(answer["url"])

    async def channel(self, channel: str) -> Json:
        found: Json = await self._call("GET", "/channels/{channel_id}", channel_id=channel)
        return found

    async def guild(self, guild: str) -> Json:
        found: Json = await self._call("GET", "/guilds/{guild_id}", guild_id=guild)
        return found

    async def member(self, guild: str, user: str) -> Json:
        path = "/guilds/{guild_id}/members/{user_id}"
        found: Json = await self._call("GET", path, guild_id=guild, user_id=user)
        return found

    async def message(self, channel: str, message: str) -> Json:
        path = "/channels/{channel_id}/messages/{message_id}"
        found: Json = await self._call("GET", path, channel_id=channel, message_id=message)
        return found

    async def history(self, channel: str, most: int, after: int | None = None) -> list[Json]:
        """``most`` messages or fewer, newest first: the newest there, or those that follow the id ``after``."""
        path = "/channels/{channel_id}/messages"
        query = {"limit": most} | ({} if after is None else {"after": max(0, after)})
        found: list[Json] = await self._call("GET", path, query=query, channel_id=channel)
        return found if isinstance(found, list) else []

    async def download(self, ref: str, limit: int) -> AsyncIterator[bytes]:
        """The bytes of an attachment. Discord's address of it is asked for anew: an older one has run out."""
        async for chunk in self._connection.download(await self._address(ref), limit):
            yield chunk

    async def _address(self, ref: str) -> str:
        place, _, name = ref.rpartition("/")
        if place == "sticker":
            root = self._cdn or (_GIFS if name.endswith(".gif") else _CDN)
            return f"{root}/stickers/{name}"
        channel, _, message = place.partition("/")
        said = await self.message(channel, message)
        snapshots = [one.get("message") or {} for one in said.get("message_snapshots") or ()]
        for held in (said, *snapshots):
            for file in held.get("attachments") or ():
                if str(file["id"]) == name:
                    return str(file["url"])
        raise Rejected("the file is no longer in its message")

    # Sending ----------------------------------------------------------------------------------------------------------

    async def send(self, channel: str, part: Part, key: str, files: Sequence[discord.File] = ()) -> str:
        """The id of the message that ``part`` became; the same under a ``key`` that was sent in the last minutes.

        Where that showed something else, the beginning of an answer, it is changed to what ``part`` says.
        """
        body = _written(part, files) | {"nonce": nonce_of(key), "enforce_nonce": True}
        if part.reply_to is not None and part.reply_to.isdecimal():
            body["message_reference"] = {"message_id": part.reply_to, "fail_if_not_exists": False}
        sent = await self._call("POST", "/channels/{channel_id}/messages", **_packed(body, files), channel_id=channel)
        message = _id(sent)
        if str(sent.get("content", "")).strip() != body["content"].strip():
            await self.edit(channel, part, message)
        return message

    async def edit(self, channel: str, part: Part, message: str) -> None:
        """Replace the text and the buttons of a message; its files stay."""
        path = "/channels/{channel_id}/messages/{message_id}"
        await self._call("PATCH", path, json=_written(part, ()), channel_id=channel, message_id=message)

    async def erase(self, channel: str, message: str) -> None:
        path = "/channels/{channel_id}/messages/{message_id}"
        await self._call("DELETE", path, channel_id=channel, message_id=message)

    async def leave(self, guild: str) -> None:
        await self._call("DELETE", "/users/@me/guilds/{guild_id}", guild_id=guild)

    async def react(self, channel: str, message: str, emoji: str, *, put: bool) -> None:
        """Put ``emoji`` on a message, or take ours away."""
        path = "/channels/{channel_id}/messages/{message_id}/reactions/{emoji}/@me"
        method = "PUT" if put else "DELETE"
        await self._call(method, path, channel_id=channel, message_id=message, emoji=emoji)

    async def show_typing(self, channel: str) -> None:
        await self._call("POST", "/channels/{channel_id}/typing", channel_id=channel)

    async def open_thread(self, channel: str, message: str, title: str) -> None:
        """A thread below ``message``, which has its id. One that is there is as good."""
        path = "/channels/{channel_id}/messages/{message_id}/threads"
        try:
            body = {"name": title[:_TITLE]}
            await self._call("POST", path, json=body, channel_id=channel, message_id=message)
        except Refused as error:
            if error.code != THREAD_EXISTS:
                raise

    # Interactions -----------------------------------------------------------------------------------------------------

    async def register(self, application: str, commands: Sequence[Json]) -> None:
        """Put ``commands`` in the place of those that the bot offered everywhere."""
        path = "/applications/{application_id}/commands"
        await self._call("PUT", path, json=list(commands), application_id=application)

    async def defer(self, interaction: str, token: str, *, is_press: bool, private: bool) -> None:
        """Tell Discord that it is known; a press changes nothing, a command is shown as being worked on."""
        body: Json = {"type": _DEFERRED_UPDATE if is_press else _DEFERRED}
        if private:
            body["data"] = {"flags": _EPHEMERAL}
        path = "/interactions/{webhook_id}/{webhook_token}/callback"
        await self._call("POST", path, json=body, webhook_id=interaction, webhook_token=token)

    async def answer(self, waiting: Waiting, part: Part, files: Sequence[discord.File] = (), *, more: bool) -> str:
        """The id of the message that answers a command: the first in the place of what was deferred, then ``more``."""
        body = _written(part, files)
        ids: dict[str, Any] = {"webhook_id": waiting.application, "webhook_token": waiting.token}
        path = "/webhooks/{webhook_id}/{webhook_token}"
        if more:
            body["flags"] |= _EPHEMERAL if waiting.private else 0
            sent = await self._call("POST", path, query={"wait": "true"}, **_packed(body, files), **ids)
        else:
            sent = await self._call("PATCH", f"{path}/messages/@original", **_packed(body, files), **ids)
        return _id(sent)


def _id(answer: Any) -> str:
    if not isinstance(answer, dict) or "id" not in answer:
        raise Ambiguous("the answer names no message: is the server a Discord API server?")
    return str(answer["id"])


def nonce_of(key: str) -> str:
    """Discord takes 25 characters."""
    return hashlib.sha256(key.encode()).hexdigest()[:25]


def is_same(message: Json, part: Part, key: str) -> bool:
    """Whether ``message``, one of ours, is what ``part`` became under ``key``. Discord may not tell the nonce later."""
    if message.get("nonce") is not None:
        return str(message["nonce"]) == nonce_of(key)
    answered = (message.get("message_reference") or {}).get("message_id")
    is_reply = part.reply_to is None or answered is None or str(answered) == part.reply_to
    says = str(message.get("content") or "").strip() == rendered(part.text).strip()
    return says and is_reply and len(message.get("attachments") or ()) == len(part.files)


def _written(part: Part, files: Sequence[discord.File]) -> Json:
    text = rendered(part.text)
    if len(text) > TEXT_LIMIT:
        raise Rejected(f"a text of {len(text)} characters: Discord takes {TEXT_LIMIT}")
    body: Json = {
        "content": text,
        "allowed_mentions": _NOBODY,
        "flags": _NO_PREVIEWS,
        "components": _components(part.buttons),
    }
    if files:
        body["attachments"] = [{"id": number, "filename": file.filename} for number, file in enumerate(files)]
    return body


def _packed(body: Json, files: Sequence[discord.File]) -> dict[str, Any]:
    """As JSON, or as a form with files."""
    if not files:
        return {"json": body}
    form: list[Json] = [{"name": "payload_json", "value": json.dumps(body), "content_type": "application/json"}]
    for number, file in enumerate(files):
        form.append(
            {
                "name": f"files[{number}]",
                "value": file.fp,
                "filename": file.filename,
                "content_type": "application/octet-stream",
            }
        )
    return {"form": form, "files": files}


def _components(rows: Sequence[Sequence[Button]]) -> list[Json]:
    """No rows take away the buttons that a message had. Raises Rejected for what Discord doesn't take."""
    filled = [row for row in rows if row]
    if len(filled) > _ROWS or any(len(row) > _COLUMNS for row in filled):
        raise Rejected(f"Discord takes {_ROWS} rows of {_COLUMNS} buttons")
    return [{"type": _ROW, "components": [_button(button) for button in row]} for row in filled]


def _button(button: Button) -> Json:
    if not button.label.strip() or not button.data:
        raise Rejected(f"the button {button.label!r} needs a label and something that it says")
    return {"type": _BUTTON, "style": _GREY, "label": button.label[:_LABEL], "custom_id": button.data}
