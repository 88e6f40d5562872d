"""What a bot may call: each route does to the world what the real one does, or refuses."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.discord_api.checks import (
    Json,
    RefusalError,
    check_commands,
    check_files,
    check_message,
    invalid,
    unknown,
)
from tests.fakes.discord_api.world import BOT, PUBLIC_THREAD, Channel, Guild, Sent, World, now

NONCE_SECONDS = 300.0
"""How long a nonce is known."""

INTERACTION_SECONDS = 3.0
_EPHEMERAL = 1 << 6


@dataclass(frozen=True, slots=True)
class Call:
    """One call: the path without its root, the body, and the files of a form by name."""

    method: str
    path: str
    query: dict[str, str]
    body: Any
    files: dict[str, tuple[str, bytes]] = field(default_factory=dict)


class Rest(World):
    """Answers are JSON, or None for 204."""

    def __init__(self) -> None:
        super().__init__()
        self.application_flags = (1 << 19) | (1 << 23)
        self.nonces: dict[str, tuple[int, float]] = {}
        self.nonce_seconds = NONCE_SECONDS
        self.tells_nonce = False
        """Whether history shows the nonce of a message."""

    def answer(self, call: Call) -> Any:
        for method, pattern, handler in _ROUTES:
            if method == call.method and (match := re.fullmatch(pattern, call.path)):
                return handler(self, call, *match.groups())
        raise RefusalError(404, 0, "404: Not Found")

    # Looking ----------------------------------------------------------------------------------------------------------

    def me(self, call: Call) -> Json:
        return BOT.json() | {"verified": True, "mfa_enabled": False, "flags": 0, "email": None}

    def application(self, call: Call) -> Json:
        known: Json = {
            "id": str(BOT.id),
            "name": "Limpet",
            "icon": None,
            "description": "",
            "bot_public": True,
            "summary": "",
        }
        known |= {
            "bot_require_code_grant": False,
            "verify_key": "00",
            "flags": self.application_flags,
            "bot": self.me(call),
        }
        return known | {"approximate_guild_count": len(self.guilds), "owner": self.user(1).json(), "rpc_origins": []}

    def gateway(self, call: Call) -> Json:
        limit = {"total": 1000, "remaining": 999, "reset_after": 1000, "max_concurrency": 1}
        return {"url": self.url.replace("http", "ws") + "/gw", "shards": 1, "session_start_limit": limit}

    def get_channel(self, call: Call, channel: str) -> Json:
        return self._channel(channel).json()

    def get_guild(self, call: Call, guild: str) -> Json:
        found = self._guild(guild)
        return {"id": guild, "name": found.name, "owner_id": "1", "roles": roles_of(found)}

    def get_member(self, call: Call, guild: str, user: str) -> Json:
        found = self._guild(guild)
        if int(user) not in found.members:
            raise unknown("Member", 10007)
        return self.member(found, self.user(int(user)), whole=True)

    def get_message(self, call: Call, channel: str, message: str) -> Json:
        self._channel(channel)
        found = self.messages.get(int(message))
        if found is None or found["channel_id"] != channel:
            raise unknown("Message", 10008)
        return self._stored(found)

    def history(self, call: Call, channel: str) -> list[Json]:
        self._channel(channel)
        limit = int(call.query.get("limit", 50))
        if not 1 <= limit <= 100:
            raise invalid("limit", "NUMBER_TYPE_MAX", "int value should be between 1 and 100.")
        said = [one for one in self.messages.values() if one["channel_id"] == channel and not one.get("private")]
        said.sort(key=lambda one: -int(one["id"]))
        if "after" in call.query:
            said = [one for one in said if int(one["id"]) > int(call.query["after"])][-limit:]
        return [self._stored(one) for one in said[:limit]]

    def _stored(self, message: Json) -> Json:
        """As it is told later: with addresses of its files that are good for now, and without what the gateway says."""
        shown = {name: value for name, value in message.items() if name != "nonce" or self.tells_nonce}
        files = [one | {"url": f"{self.url}/files/{one['id']}?ex={int(time.time())}"} for one in message["attachments"]]
        return shown | {"attachments": files}

    # Messages ---------------------------------------------------------------------------------------------------------

    def create(self, call: Call, channel: str) -> Json:
        place = self._channel(channel)
        if place.refusal:
            raise RefusalError(*place.refusal)
        body = call.body or {}
        check_message(body, len(call.files))
        check_files([len(data) for _, data in call.files.values()])
        nonce = str(body["nonce"]) if body.get("nonce") is not None else None
        if nonce and body.get("enforce_nonce") and (known := self.nonces.get(nonce)):
            first, at = known
            if time.monotonic() - at < self.nonce_seconds and first in self.messages:
                return self.messages[first]
        answered = self._reference(body, channel)
        sent = self._sent(place, body, call, reply_to=answered)
        message = self.messages[sent.id]
        if nonce is not None:
            message["nonce"] = nonce
            self.nonces[nonce] = (sent.id, time.monotonic())
        if answered is not None:
            message |= {"type": 19, "message_reference": {"message_id": str(answered), "channel_id": channel}}
        self.dispatch("MESSAGE_CREATE", self.live(message, BOT, place))
        return message

    def _reference(self, body: Json, channel: str) -> int | None:
        reference = body.get("message_reference")
        if not reference:
            return None
        found = self.messages.get(int(reference["message_id"]))
        if found is not None and found["channel_id"] == channel:
            return int(reference["message_id"])
        if reference.get("fail_if_not_exists", True):
            raise invalid("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
        return None

    def _sent(
        self, place: Channel, body: Json, call: Call, *, reply_to: int | None = None, private: bool = False
    ) -> Sent:
        files = [
            self.attachment(name, data, "image/png" if name.endswith(".png") else None) for name, data in _named(call)
        ]
        for one in files:
            one |= {"url": f"{self.url}/files/{one['id']}"}
        text = (body.get("content") or "").strip()
        message = self.message(text, BOT, place, attachments=files, components=body.get("components") or [])
        if private:
            message["private"] = True
        sent = Sent(int(message["id"]), place.id, [text], reply_to, _named(call), _buttons(body), private)
        sent.flags = int(body.get("flags") or 0)
        sent.pings = _pings(body)
        self.sent.append(sent)
        return sent

    def edit(self, call: Call, channel: str, message: str) -> Json:
        held = self.messages.get(int(message))
        if held is None:
            raise unknown("Message", 10008)
        if held["author"]["id"] != str(BOT.id):
            raise RefusalError(403, 50005, "Cannot edit a message authored by another user")
        check_message(call.body, len(call.files), is_edit=True)
        sent = next(one for one in self.sent if one.id == int(message))
        self._change(sent, held, call)
        self.dispatch("MESSAGE_UPDATE", self.live(held, BOT, self.channels[int(channel)]))
        return held

    def erase(self, call: Call, channel: str, message: str) -> None:
        held = self.messages.get(int(message))
        if held is None or held["channel_id"] != channel:
            raise unknown("Message", 10008)
        if held["author"]["id"] != str(BOT.id):
            raise RefusalError(403, 50013, "Missing Permissions")
        self.deletes(next(one for one in self.sent if one.id == int(message)))

    def leave(self, call: Call, guild: str) -> None:
        found = self._guild(guild)
        self.channels = {number: one for number, one in self.channels.items() if one.guild is not found}
        del self.guilds[found.id]
        self.dispatch("GUILD_DELETE", {"id": guild})

    def _change(self, sent: Sent, held: Json, call: Call) -> None:
        body = call.body
        if "content" in body:
            sent.texts.append((body["content"] or "").strip())
            held |= {"content": sent.text, "edited_timestamp": now()}
        if "components" in body:
            sent.buttons = _buttons(body)
        sent.pings = sent.pings or _pings(body)

    def react(self, call: Call, channel: str, message: str, emoji: str) -> None:
        if int(message) not in self.messages:
            raise unknown("Message", 10008)
        if emoji.isascii():
            raise unknown("Emoji", 10014)
        self.reactions[int(message)] = emoji

    def unreact(self, call: Call, channel: str, message: str, emoji: str) -> None:
        if int(message) not in self.messages:
            raise unknown("Message", 10008)
        if self.reactions.get(int(message)) == emoji:
            del self.reactions[int(message)]

    def typing(self, call: Call, channel: str) -> None:
        self._channel(channel)
        self.typed.append(int(channel))

    def open_thread(self, call: Call, channel: str, message: str) -> Json:
        parent = self._channel(channel)
        if int(message) not in self.messages:
            raise unknown("Message", 10008)
        if int(message) in self.channels:
            raise RefusalError(400, 160004, "A thread has already been created for this message")
        if not 1 <= len(call.body["name"]) <= 100:
            raise invalid("name", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
        thread = Channel(int(message), PUBLIC_THREAD, call.body["name"], parent.guild, parent.id, joined=True)
        self.add(thread)
        self.dispatch("THREAD_CREATE", thread.json() | {"newly_created": True})
        return thread.json()

    # Interactions -----------------------------------------------------------------------------------------------------

    def register(self, call: Call, application: str) -> list[Json]:
        check_commands(call.body)
        self.commands = call.body
        return [one | {"id": str(self.new_id()), "application_id": application, "version": "1"} for one in call.body]

    def callback(self, call: Call, interaction: str, token: str) -> None:
        held = self.interactions.get(token)
        if held is None or held["id"] != interaction or time.monotonic() - held["at"] > INTERACTION_SECONDS:
            raise unknown("interaction", 10062)
        if "acked" in held:
            raise RefusalError(400, 40060, "Interaction has already been acknowledged.")
        if call.body["type"] not in ({5} if held["kind"] == 2 else {6}):
            raise invalid("type", "BASE_TYPE_CHOICES", "Value must be one of the choices.")
        held["acked"] = call.body["type"]
        held["private"] = bool(int((call.body.get("data") or {}).get("flags", 0)) & _EPHEMERAL)

    def original(self, call: Call, application: str, token: str) -> Json:
        held = self._webhook(token)
        check_message(call.body, len(call.files), is_interaction=True)
        check_files([len(data) for _, data in call.files.values()])
        if "original" in held:
            sent = next(one for one in self.sent if one.id == held["original"])
            self._change(sent, self.messages[sent.id], call)
            return self.messages[sent.id]
        sent = self._sent(self.channels[held["channel"]], call.body, call, private=held["private"])
        held["original"] = sent.id
        return self.messages[sent.id]

    def follow_up(self, call: Call, application: str, token: str) -> Json:
        held = self._webhook(token)
        check_message(call.body, len(call.files), is_interaction=True)
        private = bool(int(call.body.get("flags") or 0) & _EPHEMERAL)
        sent = self._sent(self.channels[held["channel"]], call.body, call, private=private)
        return self.messages[sent.id]

    def _webhook(self, token: str) -> Json:
        held = self.interactions.get(token)
        if held is None or "acked" not in held or held.get("expired"):
            raise unknown("Webhook", 10015)
        return held

    def _channel(self, channel: str) -> Channel:
        found = self.channels.get(int(channel))
        if found is None:
            raise unknown("Channel", 10003)
        return found

    def _guild(self, guild: str) -> Guild:
        found = self.guilds.get(int(guild))
        if found is None:
            raise unknown("Guild", 10004)
        return found


def roles_of(guild: Guild) -> list[Json]:
    everyone = {"id": str(guild.id), "name": "@everyone", "permissions": str(guild.permissions)}
    roles = [everyone, *({"id": str(one), "name": name, "permissions": "0"} for one, name in guild.roles.items())]
    colors = {"primary_color": 0, "secondary_color": None, "tertiary_color": None}
    more = {"color": 0, "colors": colors, "hoist": False, "position": 0, "managed": False, "mentionable": False}
    return [one | more | {"flags": 0, "icon": None, "unicode_emoji": None} for one in roles]


def _named(call: Call) -> list[tuple[str, bytes]]:
    """The files of a form; each has to be named in the message as well."""
    listed = {int(one["id"]): one["filename"] for one in (call.body or {}).get("attachments", ())}
    found = []
    for place, (name, data) in call.files.items():
        number = int(place.removeprefix("files[").removesuffix("]"))
        if listed.get(number, name) != name:
            raise invalid("attachments", "ATTACHMENT_NAME", f"{name} is not {listed.get(number)}")
        found.append((name, data))
    return found


def _buttons(body: Json) -> list[list[tuple[str, str]]]:
    rows = body.get("components") or []
    return [[(button["label"], button["custom_id"]) for button in row["components"]] for row in rows]


def _pings(body: Json) -> bool:
    """Whether somebody would be notified: by a mention that was not forbidden, or by being answered."""
    allowed = body.get("allowed_mentions")
    if allowed is None:
        named = re.search(r"(?<!\\)<@[!&]?\d+>|@everyone|@here", body.get("content") or "")
        return bool(named or body.get("message_reference"))
    return bool(allowed.get("parse") or allowed.get("users") or allowed.get("roles") or allowed.get("replied_user"))


_C, _M, _T = r"/channels/(\d+)", r"/messages/(\d+)", r"/webhooks/(\d+)/([^/]+)"
_ROUTES: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("GET", "/users/@me", Rest.me),
    ("GET", "/applications/@me", Rest.application),
    ("GET", "/gateway/bot", Rest.gateway),
    ("GET", _C, Rest.get_channel),
    ("GET", r"/guilds/(\d+)", Rest.get_guild),
    ("GET", r"/guilds/(\d+)/members/(\d+)", Rest.get_member),
    ("GET", f"{_C}/messages", Rest.history),
    ("GET", f"{_C}{_M}", Rest.get_message),
    ("POST", f"{_C}/messages", Rest.create),
    ("PATCH", f"{_C}{_M}", Rest.edit),
    ("DELETE", f"{_C}{_M}", Rest.erase),
    ("DELETE", r"/users/@me/guilds/(\d+)", Rest.leave),
    ("PUT", f"{_C}{_M}/reactions/([^/]+)/@me", Rest.react),
    ("DELETE", f"{_C}{_M}/reactions/([^/]+)/@me", Rest.unreact),
    ("POST", f"{_C}/typing", Rest.typing),
    ("POST", f"{_C}{_M}/threads", Rest.open_thread),
    ("PUT", r"/applications/(\d+)/commands", Rest.register),
    ("POST", r"/interactions/(\d+)/([^/]+)/callback", Rest.callback),
    ("PATCH", f"{_T}/messages/@original", Rest.original),
    ("POST", _T, Rest.follow_up),
)
