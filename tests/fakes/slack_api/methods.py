"""What a bot may call: each method does to the workspace what the real one does, or refuses."""

from __future__ import annotations

import copy
import json
import mimetypes
from collections.abc import Callable
from typing import Any

from tests.fakes.slack_api.checks import Json, RefusalError, check_content, check_metadata, controls, plain
from tests.fakes.slack_api.workspace import TEAM, Chat, Workspace

SCOPES = {
    "app_mentions:read": (),
    "channels:history": ("conversations.history", "conversations.replies"),
    "channels:read": ("conversations.info", "users.conversations"),
    "chat:write": (
        "chat.postMessage",
        "chat.update",
        "chat.delete",
        "chat.postEphemeral",
        "assistant.threads.setStatus",
    ),
    "commands": (),
    "files:read": ("files.info",),
    "files:write": ("files.getUploadURLExternal", "files.completeUploadExternal"),
    "groups:history": (),
    "groups:read": (),
    "im:history": (),
    "im:read": (),
    "mpim:history": (),
    "mpim:read": (),
    "reactions:read": (),
    "reactions:write": ("reactions.add", "reactions.remove"),
    "users:read": ("users.info",),
}
"""All that the app can have, and the methods that need it."""

_EMOJI = {"eyes", "+1", "thinking_face", "tada", "white_check_mark", "heart"}


class Methods(Workspace):
    """``scopes`` are those that the bot was given."""

    def __init__(self) -> None:
        super().__init__()
        self.scopes = set(SCOPES)
        self.pinged: list[str] = []
        """What the bot sent that is, or looks like, a mention or a command."""
        self.share_delay = 0
        """How many times ``files.info`` is asked before it says where a file was shared."""
        self.methods: dict[str, Callable[[Json], Json]] = {
            "auth.test": self._auth_test,
            "users.info": self._user,
            "users.conversations": self._conversations,
            "conversations.info": lambda given: {"channel": self._chat(given).json(self.me.id)},
            "conversations.history": self._history,
            "conversations.replies": self._replies,
            "chat.postMessage": self._post,
            "chat.postEphemeral": self._whisper,
            "chat.update": self._update,
            "chat.delete": self._delete,
            "reactions.add": self._react,
            "reactions.remove": self._unreact,
            "assistant.threads.setStatus": self._status,
            "files.getUploadURLExternal": self._upload_url,
            "files.completeUploadExternal": self._share,
            "files.info": self._file,
        }

    def check_scope(self, method: str) -> None:
        needed = next((scope for scope, methods in SCOPES.items() if method in methods), None)
        if needed and needed not in self.scopes:
            raise RefusalError("missing_scope", needed=needed, provided=",".join(sorted(self.scopes)))

    # Who and where ----------------------------------------------------------------------------------------------------

    def _auth_test(self, given: Json) -> Json:
        return {
            "url": "https://garden.slack.test/",
            "team": "Garden",
            "user": self.me.name,
            "team_id": TEAM,
            "user_id": self.me.id,
            "bot_id": self.me.bot,
        }

    def _user(self, given: Json) -> Json:
        if given.get("user") not in self.users:
            raise RefusalError("user_not_found")
        return {"user": self.users[given["user"]].json()}

    def _conversations(self, given: Json) -> Json:
        kinds = {"public_channel": "channel", "private_channel": "group", "mpim": "mpim", "im": "im"}
        wanted = {kinds[kind] for kind in str(given.get("types", "public_channel")).split(",")}
        mine = [chat for chat in self.chats.values() if self.me.id in chat.members and chat.kind in wanted]
        return {"channels": [chat.json(self.me.id) for chat in mine if not chat.is_archived]}

    def _chat(self, given: Json, *, name: str = "channel", member: bool = False) -> Chat:
        chat = self.chats.get(str(given.get(name)))
        if chat is None or (chat.kind != "channel" and self.me.id not in chat.members):
            raise RefusalError("channel_not_found")
        if member and self.me.id not in chat.members:
            raise RefusalError("not_in_channel")
        if member and chat.is_archived:
            raise RefusalError("is_archived")
        return chat

    # What was said ----------------------------------------------------------------------------------------------------

    def _history(self, given: Json) -> Json:
        chat = self._chat(given, member=True)
        roots = [one for one in chat.messages if one.get("thread_ts", one["ts"]) == one["ts"]]
        found = [one for one in roots if _is_between(one["ts"], given)][::-1]
        limit = int(given.get("limit", 100))
        return {"messages": [_seen(one, given) for one in found[:limit]], "has_more": len(found) > limit}

    def _replies(self, given: Json) -> Json:
        chat = self._chat(given, member=True)
        asked = chat.find(str(given.get("ts")))
        if asked is None:
            raise RefusalError("thread_not_found")
        thread = asked.get("thread_ts", asked["ts"])
        parent = chat.find(str(thread))
        later = [one for one in chat.messages if one.get("thread_ts") == thread and one["ts"] != thread]
        found = ([parent] if parent else []) + [one for one in later if _is_between(one["ts"], given)]
        start, limit = int(given.get("cursor") or 0), int(given.get("limit", 100))
        more = len(found) > start + limit
        metadata = {"next_cursor": str(start + limit) if more else ""}
        page = [_seen(one, given) for one in found[start : start + limit]]
        return {"messages": page, "has_more": more, "response_metadata": metadata}

    # Messages ---------------------------------------------------------------------------------------------------------

    def _content(self, given: Json) -> tuple[str, list[Json]]:
        text, blocks = str(given.get("text") or ""), given.get("blocks") or []
        check_content(text, blocks)
        self.pinged += controls(text, blocks)
        return text, blocks

    def _post(self, given: Json) -> Json:
        chat = self._chat(given, member=True)
        text, blocks = self._content(given)
        check_metadata(given.get("metadata"))
        thread = self._thread(chat, given)
        sent = self.post(chat, text, blocks, thread_ts=thread, metadata=given.get("metadata"))
        return {"channel": chat.id, "ts": sent.id, "message": chat.find(sent.id)}

    def _thread(self, chat: Chat, given: Json) -> str | None:
        thread = given.get("thread_ts")
        if thread is not None and chat.find(str(thread)) is None:
            raise RefusalError("thread_not_found")
        return thread

    def _whisper(self, given: Json) -> Json:
        chat = self._chat(given, member=True)
        if given.get("user") not in chat.members:
            raise RefusalError("user_not_in_channel")
        text, blocks = self._content(given)
        sent = self.post(chat, text, blocks, thread_ts=self._thread(chat, given))
        chat.messages.pop()  # no history has it
        sent.only = str(given["user"])
        return {"message_ts": sent.id}

    def _update(self, given: Json) -> Json:
        chat = self._chat(given)
        message = chat.find(str(given.get("ts")))
        if message is None:
            raise RefusalError("message_not_found")
        if message["user"] != self.me.id:
            raise RefusalError("cant_update_message")
        text, blocks = self._content(given)
        message |= {"text": text, "blocks": blocks}
        sent = next(sent for sent in self.sent if (sent.chat, sent.id) == (chat.id, message["ts"]))
        sent.notice, sent.blocks = text, blocks
        sent.texts.append(plain(text, blocks))
        self.change()
        return {"channel": chat.id, "ts": message["ts"], "text": text}

    def _delete(self, given: Json) -> Json:
        chat = self._chat(given)
        message = chat.find(str(given.get("ts")))
        if message is None:
            raise RefusalError("message_not_found")
        if message["user"] != self.me.id:
            raise RefusalError("cant_delete_message")
        chat.messages.remove(message)
        self.sent = [sent for sent in self.sent if (sent.chat, sent.id) != (chat.id, message["ts"])]
        self.change()
        return {}

    def _react(self, given: Json) -> Json:
        reaction = self._reaction(given)
        if reaction in self.reactions:
            raise RefusalError("already_reacted")
        self.reactions.add(reaction)
        return {}

    def _unreact(self, given: Json) -> Json:
        reaction = self._reaction(given)
        if reaction not in self.reactions:
            raise RefusalError("no_reaction")
        self.reactions.remove(reaction)
        return {}

    def _reaction(self, given: Json) -> tuple[str, str, str]:
        chat = self._chat(given, member=True)
        if chat.find(str(given.get("timestamp"))) is None:
            raise RefusalError("message_not_found")
        if given.get("name") not in _EMOJI:
            raise RefusalError("invalid_name")
        return chat.id, str(given["timestamp"]), str(given["name"])

    def _status(self, given: Json) -> Json:
        chat = self._chat(given, name="channel_id", member=True)
        thread = str(given.get("thread_ts"))
        if chat.find(thread) is None:
            raise RefusalError("invalid_thread_ts")
        self.statuses[chat.id, thread] = str(given.get("status"))
        return {}

    # Files ------------------------------------------------------------------------------------------------------------

    def _upload_url(self, given: Json) -> Json:
        size = int(given.get("length", 0))
        if size <= 0 or not given.get("filename"):
            raise RefusalError("invalid_arguments")
        name = str(given["filename"])
        file = self.add_file(b"", name, mimetypes.guess_type(name)[0] or "application/octet-stream")
        file |= {"size": size, "user": self.me.id, "asked": 0}
        return {"upload_url": f"{self.url}/upload/{file['id']}", "file_id": file["id"]}

    def _share(self, given: Json) -> Json:
        chat = self._chat(given, name="channel_id", member=True)
        blocks = json.loads(given["blocks"]) if "blocks" in given else []
        if "initial_comment" in given:
            blocks = []
        text = str(given.get("initial_comment") or "")
        check_content(text, blocks, has_files=True)
        self.pinged += controls(text, blocks)
        files = []
        for one in json.loads(given["files"]):
            file = self.files.get(one["id"])
            if file is None or len(self.contents[one["id"]]) != file["size"]:
                raise RefusalError("file_not_found")
            files.append(file | {"title": one.get("title", file["name"])})
        thread = self._thread(chat, given)
        sent = self.post(chat, text, blocks, thread_ts=thread, files=files, subtype="file_share")
        for one in files:
            kind = "public" if chat.kind == "channel" else "private"
            self.files[one["id"]] |= {"title": one["title"], "shares": {kind: {chat.id: [{"ts": sent.id}]}}}
        return {"files": [{"id": one["id"], "title": one["title"]} for one in files]}

    def _file(self, given: Json) -> Json:
        file = self.files.get(str(given.get("file")))
        if file is None:
            raise RefusalError("file_not_found")
        file["asked"] = file.get("asked", 0) + 1
        return {"file": file if file["asked"] > self.share_delay else file | {"shares": {}}}


def _is_between(ts: str, given: Json) -> bool:
    oldest, latest = float(given.get("oldest") or 0), float(given.get("latest") or 1e12)
    return oldest < float(ts) < latest


def _seen(message: Json, given: Json) -> Json:
    """As the history shows it: metadata only to those who ask for it."""
    seen: Any = copy.deepcopy(message)
    if str(given.get("include_all_metadata")) not in ("1", "true", "True"):
        seen.pop("metadata", None)
    return dict(seen)
