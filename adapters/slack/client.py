"""What we ask of Slack: one method for each thing, which raises nothing but ``adapters.errors``.

Knows no outbox and no retry: each method makes one call, but for those that read page after page. Tokens go to no other
host than the Web API's and Slack's own for files, and no error of the library, which holds them, is let through.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientSession,
    ClientTimeout,
    ConnectionTimeoutError,
    DummyCookieJar,
)
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from yarl import URL

from adapters.errors import AdapterError, AuthFailed, Rejected, Unreachable
from adapters.slack.refusals import Lost, refusal
from adapters.slack.sent import EVENT_TYPE
from adapters.slack.settings import BotIdentity, SlackSettings

if TYPE_CHECKING:
    from pydantic import SecretStr

Json: TypeAlias = dict[str, Any]

_CONNECT_SECONDS = 10.0
_UPLOAD_SECONDS = 300.0
"""How long a file may take on its way to Slack."""

_PAGE = 200
_MOST_PAGES = 5
_CHUNK = 1 << 16
_FILE_HOSTS = ("slack.com", "slack-files.com", "slack-edge.com")
_CONVERSATIONS = "public_channel,private_channel,mpim,im"

_SILENT = logging.getLogger("adapters.slack.library")
"""For the libraries: what they would log is told by us, without the addresses and bodies that are secret."""
_SILENT.setLevel(logging.CRITICAL)


class Client:
    """One bot in one workspace. Made inside a running loop."""

    def __init__(self, settings: SlackSettings) -> None:
        self._root = URL(settings.base_url)
        self._app_token = _shown(settings.app_token)
        self._token = _shown(settings.token)
        self._answer_seconds = settings.answer_seconds
        timeout = ClientTimeout(total=settings.answer_seconds, sock_connect=_CONNECT_SECONDS)
        self._session = ClientSession(timeout=timeout, cookie_jar=DummyCookieJar())
        self.web = AsyncWebClient(
            token=self._token,
            base_url=settings.base_url,
            session=self._session,
            retry_handlers=[],
            logger=_SILENT,
        )

    async def close(self) -> None:
        await self._session.close()

    # Who and where ----------------------------------------------------------------------------------------------------

    async def identity(self) -> BotIdentity:
        """Whose the bot's token is. Raises AuthFailed for a person's."""
        if not self._token.startswith("xoxb-"):
            raise AuthFailed(
                f"the Slack token {_tail(self._token)} is no bot's, which begins with xoxb-: "
                "copy the Bot User OAuth Token (api.slack.com/apps, the app, OAuth & Permissions)"
            )
        said = await self._call("auth.test", self.web.auth_test())
        granted = said.headers.get("x-oauth-scopes", "")
        return BotIdentity(
            id=str(said.get("user_id", "")),
            username=str(said.get("user", "")),
            team=str(said.get("team_id", "")),
            workspace=str(said.get("team", "")),
            bot=str(said.get("bot_id", "")),
            url=str(said.get("url", "")),
            scopes=tuple(sorted(scope.strip() for scope in granted.split(",") if scope.strip())),
        )

    async def link(self) -> str:
        """An address for one Socket Mode connection, which is secret. Raises AuthFailed for a wrong app token."""
        if not self._app_token.startswith("xapp-"):
            what = f"{_tail(self._app_token)} is none, which begins with xapp-" if self._app_token else "is not set"
            raise AuthFailed(
                f"the Slack app_token {what}: make one with connections:write "
                "(api.slack.com/apps, the app, Basic Information, App-Level Tokens), or set transport to http"
            )
        opened = self.web.apps_connections_open(app_token=self._app_token)
        url = (await self._call("apps.connections.open", opened)).get("url")
        if not isinstance(url, str):
            raise Unreachable("the answer to apps.connections.open holds no address: is base_url right?")
        return url

    async def user(self, user: str) -> Json:
        return _table(await self._call("users.info", self.web.users_info(user=user)), "user")

    async def conversation(self, chat: str) -> Json:
        return _table(await self._call("conversations.info", self.web.conversations_info(channel=chat)), "channel")

    async def conversations(self) -> list[Json]:
        """The channels that the bot is in, and its direct messages; at most a thousand."""
        found: list[Json] = []
        cursor = ""
        for _ in range(_MOST_PAGES):
            call = self.web.users_conversations(
                types=_CONVERSATIONS, exclude_archived=True, limit=_PAGE, cursor=cursor or None
            )
            said = await self._call("users.conversations", call)
            found += _tables(said.get("channels"))
            cursor = _cursor(said)
            if not cursor:
                break
        return found

    # What was said ----------------------------------------------------------------------------------------------------

    async def history(self, chat: str, *, oldest: str = "", latest: str = "", limit: int = _PAGE) -> list[Json]:
        """The newest messages of a chat between two times, without them, oldest first; no thread's but its first."""
        call = self.web.conversations_history(
            channel=chat, oldest=oldest or None, latest=latest or None, limit=limit, include_all_metadata=True
        )
        said = await self._call("conversations.history", call)
        return _tables(said.get("messages"))[::-1]

    async def replies(self, chat: str, thread: str, *, oldest: str = "", latest: str = "") -> list[Json]:
        """The first message of a thread, and its later ones between two times; oldest first, at most a thousand."""
        found: dict[str, Json] = {}
        cursor = ""
        for _ in range(_MOST_PAGES):
            call = self.web.conversations_replies(
                channel=chat,
                ts=thread,
                oldest=oldest or None,
                latest=latest or None,
                limit=_PAGE,
                cursor=cursor or None,
                include_all_metadata=True,
            )
            said = await self._call("conversations.replies", call)
            found |= {str(message.get("ts")): message for message in _tables(said.get("messages"))}
            cursor = _cursor(said)
            if not cursor:
                break
        return list(found.values())

    # Messages ---------------------------------------------------------------------------------------------------------

    async def post(self, chat: str, text: str, blocks: Sequence[Json], *, thread: str | None, key: str) -> str:
        """The id of the new message; ``text`` is what notifications show of ``blocks``."""
        call = self.web.chat_postMessage(
            channel=chat,
            text=text,
            blocks=blocks,
            thread_ts=thread,
            unfurl_links=False,
            unfurl_media=False,
            metadata={"event_type": EVENT_TYPE, "event_payload": {"key": key}},
        )
        return _ts(await self._call("chat.postMessage", call))

    async def whisper(self, chat: str, user: str, text: str, blocks: Sequence[Json], *, thread: str | None) -> None:
        """Show something to one person in a chat, for as long as they look at it."""
        call = self.web.chat_postEphemeral(channel=chat, user=user, text=text, blocks=blocks, thread_ts=thread)
        await self._call("chat.postEphemeral", call)

    async def respond(self, url: str, text: str) -> None:
        """Show something to whoever gave a command, by the address that came with it, wherever they are."""
        if not self._is_slack(url):
            raise Rejected("the address to answer a command at is not Slack's")
        failure: AdapterError
        try:
            said = {"response_type": "ephemeral", "text": text}
            async with self._session.post(url, json=said, allow_redirects=False) as answer:
                if answer.status == 200:
                    return
                failure = refusal("the answer to a command", answer.status, None, answer.headers)
        except (ClientError, OSError) as error:
            failure = Unreachable(f"the answer to a command broke off ({type(error).__name__})")
        raise failure

    async def edit(self, chat: str, message: str, text: str, blocks: Sequence[Json]) -> None:
        call = self.web.chat_update(channel=chat, ts=message, text=text, blocks=blocks)
        await self._call("chat.update", call)

    async def delete(self, chat: str, message: str) -> None:
        await self._call("chat.delete", self.web.chat_delete(channel=chat, ts=message))

    async def react(self, chat: str, message: str, name: str, *, on: bool = True) -> None:
        method = self.web.reactions_add if on else self.web.reactions_remove
        await self._call("reactions.add", method(channel=chat, timestamp=message, name=name))

    async def show_status(self, chat: str, thread: str, status: str) -> None:
        """Below a thread, until something is said there; "" takes it away."""
        call = self.web.assistant_threads_setStatus(channel_id=chat, thread_ts=thread, status=status)
        await self._call("assistant.threads.setStatus", call)

    # Files ------------------------------------------------------------------------------------------------------------

    async def upload(self, name: str, size: int, content: IO[bytes]) -> str:
        """The id of a file that is seen nowhere yet."""
        call = self.web.files_getUploadURLExternal(filename=name, length=size)
        said = await self._call("files.getUploadURLExternal", call)
        url, file = str(said.get("upload_url", "")), str(said.get("file_id", ""))
        if not self._is_slack(url) or not file:
            raise Unreachable("the answer to files.getUploadURLExternal holds no address of Slack's")
        patience = ClientTimeout(total=_UPLOAD_SECONDS, sock_connect=_CONNECT_SECONDS)
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        failure: AdapterError
        try:
            async with self._session.post(url, data=content, headers=headers, timeout=patience) as answer:
                if answer.status == 200:
                    return file
                failure = refusal("the upload", answer.status, None, answer.headers)
                if isinstance(failure, Lost):  # nobody has seen it: it may be sent anew
                    failure = Unreachable(str(failure))
        except (ClientError, OSError) as error:
            failure = Unreachable(f"the upload broke off ({type(error).__name__})")
        raise failure

    async def share(
        self, chat: str, files: Sequence[tuple[str, str]], blocks: Sequence[Json], *, thread: str | None
    ) -> None:
        """Show uploaded files, each an id and a name, as one message below ``blocks``."""
        given = {
            "channel_id": chat,
            "files": json.dumps([{"id": file, "title": name} for file, name in files]),
            **({"blocks": json.dumps(blocks)} if blocks else {}),
            **({"thread_ts": thread} if thread else {}),
        }
        # In the body: the library's own method would put a long text into the address.
        call = self.web.api_call("files.completeUploadExternal", data=given)
        await self._call("files.completeUploadExternal", call)

    async def file(self, file: str) -> Json:
        """What is known of a file."""
        return _table(await self._call("files.info", self.web.files_info(file=file)), "file")

    async def download(self, file: str, limit: int) -> AsyncIterator[bytes]:
        """The bytes of a file as they arrive; raises Rejected as soon as they are known to be more than ``limit``."""
        known = await self.file(file)
        too_big = Rejected(f"the file is larger than {limit} bytes")
        size = known.get("size")
        if isinstance(size, int) and size > limit:
            raise too_big
        url = str(known.get("url_private_download") or known.get("url_private") or "")
        if not self._is_slack(url):
            raise Rejected("the file is not kept by Slack")
        patience = ClientTimeout(sock_connect=_CONNECT_SECONDS, sock_read=self._answer_seconds)
        headers = {"Authorization": f"Bearer {self._token}"}
        failure: AdapterError
        try:
            async with self._session.get(url, headers=headers, allow_redirects=False, timeout=patience) as answer:
                if answer.status == 200 and not _is_login(answer.content_type, known):
                    arrived = 0
                    async for chunk in answer.content.iter_chunked(_CHUNK):
                        arrived += len(chunk)
                        if arrived > limit:
                            raise too_big
                        yield chunk
                    return
                if answer.status in (401, 403, 200) or 300 <= answer.status < 400:
                    failure = Rejected("Slack doesn't hand out the file: does the bot have the scope files:read?")
                elif answer.status < 500:
                    failure = Rejected(f"Slack has no such file ({answer.status})")
                else:
                    failure = Unreachable(f"Slack says {answer.status} to a download")
        except (ClientError, OSError) as error:
            failure = Unreachable(f"the download broke off ({type(error).__name__})")
        raise failure

    def _is_slack(self, url: str) -> bool:
        """Whether the token, or a file, may go there."""
        try:
            place = URL(url)
            if place.origin() == self._root.origin():
                return True
        except ValueError:
            return False
        host = place.host or ""
        return place.scheme == "https" and any(host == own or host.endswith(f".{own}") for own in _FILE_HOSTS)

    # The call itself --------------------------------------------------------------------------------------------------

    async def _call(self, method: str, request: Awaitable[Any]) -> Any:
        """The answer to a request of the library. Raises ``adapters.errors`` and nothing else."""
        failure: AdapterError
        try:
            return await request
        except SlackApiError as error:
            said: Any = error.response
            status = int(getattr(said, "status_code", 0) or getattr(said, "status", 0))
            failure = refusal(method, status, getattr(said, "data", None), getattr(said, "headers", {}))
        except (ClientConnectorError, ConnectionTimeoutError) as error:
            failure = Unreachable(f"{method}: no connection to {self._root.host} ({type(error).__name__})")
        except (ClientError, OSError) as error:  # TimeoutError is one
            failure = Lost(f"{method}: no answer from {self._root.host} ({type(error).__name__})")
        except Exception as error:  # an answer that says ok and holds something the library can't take
            failure = Lost(f"the answer to {method} is odd ({type(error).__name__}): is base_url right?")
        # Raised here and not inside "except": no error of the library, whose request holds the token, hangs on to it.
        raise failure


def _table(said: Any, name: str) -> Json:
    found = said.get(name)
    return found if isinstance(found, dict) else {}


def _tables(found: object) -> list[Json]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _cursor(said: Any) -> str:
    metadata = said.get("response_metadata")
    return str(metadata.get("next_cursor") or "") if isinstance(metadata, dict) else ""


def _ts(said: Any) -> str:
    ts = said.get("ts")
    if not isinstance(ts, str):
        raise Lost("the answer to chat.postMessage names no message")
    return ts


def _is_login(content_type: str, known: Mapping[str, Any]) -> bool:
    """Whether it is the page that a browser would be shown to log in: Slack sends that with 200."""
    return content_type == "text/html" and "html" not in str(known.get("mimetype", ""))


def _shown(secret: SecretStr | None) -> str:
    return secret.get_secret_value().strip() if secret is not None else ""


def _tail(token: str) -> str:
    """Enough of a token to tell it from another, and no more."""
    return f"ending in …{token[-3:]}" if len(token) >= 12 else "(too short to show)"
