"""What Slack reports as a neutral event.

A payload and who we are go in, an event or nothing comes out; asked of Slack is only what people and channels are
called, and how a thread began. Who may talk to us, and whether we answer in a channel, is decided elsewhere; here it is
only said what Slack said.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from adapters.errors import AdapterError, Rejected
from adapters.message import (
    Address,
    Deleted,
    Edited,
    Inbound,
    Kind,
    Membership,
    Message,
    Moved,
    Pressed,
    Quote,
    Reacted,
    Spoken,
)
from adapters.slack import content, markdown
from adapters.slack.commands import Commands, command_id
from adapters.slack.emoji import character_of
from adapters.text import sanitize

if TYPE_CHECKING:
    from adapters.slack.client import Client
    from adapters.slack.content import Said
    from adapters.slack.directory import Directory
    from adapters.slack.settings import BotIdentity, SlackSettings
    from adapters.slack.threads import Threads

log = logging.getLogger(__name__)

_NOT_THERE = "I am not in this conversation. Write to me directly."

_TS = re.compile(r"\d{1,12}\.\d{1,6}")


def is_message_id(text: str) -> bool:
    """Whether Slack can have called a message so: by its time, to the microsecond."""
    return _TS.fullmatch(text) is not None


def time_of(ts: str) -> datetime:
    return datetime.fromtimestamp(float(ts), UTC)


@dataclass(frozen=True, slots=True)
class Reader:
    """For one bot in one workspace. ``account`` is what the configuration calls it."""

    account: str
    me: BotIdentity
    settings: SlackSettings
    client: Client
    directory: Directory
    threads: Threads
    commands: Commands

    async def event_of(self, kind: str, payload: Mapping[str, Any], now: datetime) -> Inbound | None:
        """What an envelope of ``kind`` says; None for one that says nothing to us.

        ``now`` is for what Slack doesn't date. Raises ``adapters.errors`` where something that decides where it belongs
        can't be found out now.
        """
        match kind:
            case "slash_commands":
                return await self._commanded(payload, now)
            case "interactive":
                return await self._pressed(payload, now)
        event = payload.get("event")
        return await self._event(event, payload) if isinstance(event, Mapping) else None

    async def _event(self, event: Said, payload: Mapping[str, Any]) -> Inbound | None:
        match event.get("type"):
            case "message":
                return await self._said(event)
            case "app_mention":
                return await self.message(event) if "edited" not in event else None  # a mention that was edited in
            case "reaction_added" | "reaction_removed":
                return await self._reacted(event)
            case "member_joined_channel" | "member_left_channel":
                return await self._member(event)
            case "channel_left" | "group_left":
                return await self._left(event, payload)
            case "channel_id_changed":
                return await self._moved(event)
        return None

    async def _said(self, event: Said) -> Inbound | None:
        match event.get("subtype"):
            case "message_changed":
                return await self._changed(event)
            case "message_deleted":
                return await self._deleted(event, str(event.get("deleted_ts") or ""))
            case None | str() as subtype if (subtype or "") in content.SAYING:
                return await self.message(event)
        return None

    # What is said -----------------------------------------------------------------------------------------------------

    async def message(self, said: Said) -> Message | None:
        """A message as a channel's event or its history has it; None for our own, and for one that says nothing."""
        said = await self._placed(said)
        chat, ts = str(said.get("channel") or ""), str(said.get("ts") or "")
        if not chat or not is_message_id(ts) or self.is_ours(said):
            return None
        kind = await self.directory.kind(chat, said.get("channel_type"))
        names = await self.directory.names(content.mentioned(said))
        text, attachments = content.text(said, names), content.attachments(said)
        shared = [f"{author}: {words}" for author, words in content.shared(said, names)]
        if not (text.strip() or attachments or shared):
            return None
        called = self.me.id in content.addressed(said)
        address = self._address(said, kind, called=called)
        called, before = await self._standing(said, address, called=called)
        quoted = markdown.named_me("\n".join(shared), self.me.username)
        return Message(
            ts,
            address,
            await self.directory.sender(said),
            markdown.without_me(text),
            time_of(ts),
            attachments=attachments,
            quote=Quote(quoted, "a message that was shared") if quoted else None,
            reply_to=address.thread if address.thread != ts else None,
            mentions_me=called or kind == "direct",
            context=before,
        )

    async def _placed(self, said: Said) -> Said:
        """With its thread, where Slack says that there is one and not which; without where it won't ever say."""
        if said.get("thread_ts") or not said.get("parent_user_id"):
            return said
        try:
            found = await self.client.replies(str(said.get("channel")), str(said.get("ts")))
        except Rejected as error:
            log.warning("slack/%s: a message is taken without its thread: %s", self.account, error)
            return said
        thread = next((one["thread_ts"] for one in found if one.get("ts") == said.get("ts") and "thread_ts" in one), "")
        return {**said, "thread_ts": thread}

    async def _standing(self, said: Said, address: Address, *, called: bool) -> tuple[bool, tuple[Spoken, ...]]:
        """Whether it is said to us, and what was said before that we don't know."""
        ts, thread = str(said["ts"]), address.thread
        if address.kind == "direct":
            return True, ()
        if thread is None or thread == ts:
            return called, await self.threads.channel(address.chat, ts) if called else ()
        if not called and not self.settings.follow_threads:
            return False, ()
        standing = await self.threads.of(address.chat, thread, ts)
        if not called and standing.takes_part:
            called = not content.addressed(said)  # whoever calls somebody else by name doesn't speak to us
        return called, standing.before if called else ()

    async def _changed(self, event: Said) -> Inbound | None:
        """None where nobody changed what it says: Slack adds previews of links, and counts of replies, as changes."""
        said, before = event.get("message"), event.get("previous_message")
        if not isinstance(said, Mapping):
            return None
        if said.get("subtype") == "tombstone":
            return await self._deleted(event, str(said.get("ts") or ""))
        edited = said.get("edited")
        was = before.get("text") if isinstance(before, Mapping) else None
        ts = str(said.get("ts") or "")
        if not isinstance(edited, Mapping) or was == said.get("text") or not is_message_id(ts) or self.is_ours(said):
            return None
        said = {**said, "channel": event.get("channel"), "channel_type": event.get("channel_type")}
        kind = await self.directory.kind(str(event.get("channel")), event.get("channel_type"))
        text = content.text(said, await self.directory.names(content.mentioned(said)))
        address = self._address(said, kind, called=self.me.id in content.addressed(said))
        at = str(edited.get("ts") or "")
        sent_at = time_of(at if is_message_id(at) else ts)
        return Edited(ts, address, await self.directory.sender(said), markdown.without_me(text), sent_at)

    async def _deleted(self, event: Said, ts: str) -> Deleted | None:
        was = event.get("previous_message")
        if not is_message_id(ts) or (isinstance(was, Mapping) and self.is_ours(was)):
            return None
        said = {**(was if isinstance(was, Mapping) else {}), "ts": ts, "channel": event.get("channel")}
        kind = await self.directory.kind(str(event.get("channel")), event.get("channel_type"))
        at = str(event.get("event_ts") or event.get("ts") or "")
        return Deleted(ts, self._address(said, kind), time_of(at if is_message_id(at) else ts))

    def is_ours(self, said: Said) -> bool:
        return said.get("user") == self.me.id or (bool(self.me.bot) and said.get("bot_id") == self.me.bot)

    # What is done -----------------------------------------------------------------------------------------------------

    async def _reacted(self, event: Said) -> Reacted | None:
        """None for a reaction to somebody else's message: we are told of it, and it says nothing to us."""
        item = event.get("item")
        user, at = str(event.get("user") or ""), str(event.get("event_ts") or "")
        if not isinstance(item, Mapping) or event.get("item_user") != self.me.id or user == self.me.id or not user:
            return None
        ts = str(item.get("ts") or "")
        if item.get("type") != "message" or not is_message_id(ts):
            return None
        chat = str(item.get("channel"))
        address = Address("slack", self.account, chat, await self.directory.kind(chat), space=self.me.team)
        emoji = character_of(str(event.get("reaction") or "")) if event["type"] == "reaction_added" else ""
        return Reacted(
            ts, address, await self.directory.somebody(user), emoji, time_of(at if is_message_id(at) else ts)
        )

    async def _pressed(self, payload: Mapping[str, Any], now: datetime) -> Pressed | None:
        """None for what is no button of a message of ours."""
        actions, container = payload.get("actions"), payload.get("container")
        if (
            payload.get("type") != "block_actions"
            or not isinstance(actions, list)
            or not isinstance(container, Mapping)
        ):
            return None
        action = next((one for one in actions if isinstance(one, Mapping) and one.get("type") == "button"), {})
        message, user = payload.get("message"), payload.get("user")
        ts, at = str(container.get("message_ts") or ""), str(action.get("action_ts") or "")
        if not isinstance(user, Mapping) or not isinstance(action.get("value"), str) or not is_message_id(ts):
            return None
        said = {**(message if isinstance(message, Mapping) else {}), **container, "ts": ts}
        said["channel"] = chat = str(container.get("channel_id") or "")
        kind = await self.directory.kind(chat)
        address = self._address(said, kind)
        person = str(user.get("id"))
        sent_at = time_of(at) if is_message_id(at) else now
        data = sanitize(action["value"])
        return Pressed(f"{ts}/{at}/{person}", address, await self.directory.somebody(person), ts, data, sent_at)

    async def _commanded(self, payload: Mapping[str, Any], now: datetime) -> Message | None:
        """The slash command: its subcommand is a command of ours, and anything else a question.

        None where it is given in a direct chat between two others: the bot could not answer there.
        """
        user, chat = str(payload.get("user_id") or ""), str(payload.get("channel_id") or "")
        trigger = str(payload.get("trigger_id") or "")
        if not (user and chat and trigger):
            return None
        kind = await self.directory.kind(chat, "im" if payload.get("channel_name") == "directmessage" else None)
        if kind == "direct" and not await self.directory.knows(chat):
            await self._decline(str(payload.get("response_url") or ""))
            return None
        address = Address("slack", self.account, chat, kind, space=self.me.team)
        text = self.commands.text(sanitize(str(payload.get("text") or "")))
        sender = await self.directory.somebody(user)
        return Message(command_id(user, trigger), address, sender, text, now, mentions_me=True)

    async def _decline(self, url: str) -> None:
        """Tell whoever gave a command, and nobody else, where it is taken; best effort."""
        try:
            await self.client.respond(url, _NOT_THERE)
        except AdapterError as error:
            log.debug("slack/%s: a command was not declined: %s", self.account, error)

    async def _member(self, event: Said) -> Membership | None:
        """None where it is somebody else who came or went."""
        if event.get("user") != self.me.id:
            return None
        present = event["type"] == "member_joined_channel"
        chat, at = str(event.get("channel")), str(event.get("event_ts") or "0.0")
        kind: Kind = await self.directory.kind(chat, event.get("channel_type"))
        inviter = str(event.get("inviter") or "")
        address = Address("slack", self.account, chat, kind, space=self.me.team)
        return Membership(address, await self.directory.somebody(inviter or self.me.id), present, time_of(at))

    async def _left(self, event: Said, payload: Mapping[str, Any]) -> Membership:
        address = Address("slack", self.account, str(event.get("channel")), "channel", space=self.me.team)
        at = payload.get("event_time")
        when = datetime.fromtimestamp(at if isinstance(at, int) else 0, UTC)
        return Membership(address, await self.directory.somebody(str(event.get("actor_id") or self.me.id)), False, when)

    async def _moved(self, event: Said) -> Moved:
        old, new = str(event.get("old_channel_id")), str(event.get("new_channel_id"))
        address = Address("slack", self.account, old, await self.directory.kind(new), space=self.me.team)
        return Moved(address, new, time_of(str(event.get("event_ts") or "0.0")))

    # Where and who ----------------------------------------------------------------------------------------------------

    def _address(self, said: Said, kind: Kind, *, called: bool = False) -> Address:
        """A question that is asked in a channel opens the thread in which it is answered, and so belongs to it."""
        thread = str(said.get("thread_ts") or "") or None
        if thread is None and called and kind != "direct" and self.settings.reply_in_thread:
            thread = str(said["ts"])
        return Address("slack", self.account, str(said["channel"]), kind, space=self.me.team, thread=thread)
