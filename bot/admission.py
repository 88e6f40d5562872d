"""Letting people and groups in: what strangers are told, what owners are asked, and what they decide from a chat.

Owners are told, with buttons that write the command for them. Nobody becomes an owner
from a chat. What is decided here is kept by ``people``, ``pairing`` and ``groups``; access itself is ``access``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import structlog

from adapters.adapter import Adapter, Leaver
from adapters.message import Address, Button, Membership, Message, Part, Sender
from adapters.registry import canonical_id
from adapters.text import FormattedText
from agents.quoting import one_line
from bot.access import closed_to
from workspaces.scope import Level

if TYPE_CHECKING:
    from bot.gate import Gate
    from bot.outbox import SqliteOutbox
    from bot.owners import Owners
    from bot.pairing import Pairing, PairingRequest

log = structlog.get_logger(__name__)

NOT_HEARD_AGAIN = timedelta(hours=24)
"""After this owners are told of more groups."""

MOST_GROUPS_TOLD = 5
"""Of so many groups are owners told in a day: whoever adds us to a thousand is no nuisance."""

IN = "You are let in: write to me."
WAITS_NOT = "No such code waits. /pair shows those that do."
NOBODY_WAITS = "Nobody waits to be let in."
USAGE = (
    "Say /{name} here in a group, or /{name} with an account (telegram:123456789), or with a channel and a group "
    "(telegram -1001234567890)."
)
BY_SETTINGS = "That is so by the settings: change it there."
NO_CHANNEL = "No channel here is called {name}: there are {names}."
ALLOWED_HERE = "I answer here now, when I am addressed. /deny ends it."
NOT_ALLOWED = (
    "Hello! I may not answer in this group yet, and read nothing here. My owner can allow it: /allow, said to me here."
)
ENDED_HERE = "I answer here no more."
NOT_ADDRESSED = "I answer whoever addresses me, and know then what was said here since my last answer."
EVERYTHING = "I answer what is said here, all of it."


class Admission:
    """Over one hub's doors."""

    def __init__(
        self,
        adapters: Mapping[tuple[str, str], Adapter],
        *,
        gate: Gate,
        pairing: Pairing,
        outbox: SqliteOutbox,
        owners: Owners,
    ) -> None:
        self._owners = owners
        self._adapters = adapters
        self._gate = gate
        self._people = gate.people
        self._pairing = pairing
        self._groups = gate.groups
        self._outbox = outbox
        self._groups_told = 0
        self._told_since: datetime | None = None

    # What happens -----------------------------------------------------------------------------------------------------

    async def ask_to_pair(self, message: Message) -> None:
        """A stranger wrote: they get a code, and the owners are asked about a new one."""
        words = await self._pairing.ask(message)
        if words is None:
            return
        await self._outbox.put(_pairing_turn(message), [Part(message.address, FormattedText(words))])
        request = await self._pairing.of(message)
        if request is not None and request.told == 1:
            await self._owners.tell(f"asks/{request.code}", f"{_who(request)} asks to talk to me.", _choices(request))

    async def joined(self, event: Membership) -> None:
        """We were added to a chat, or are no longer in it."""
        address = event.address
        place = {"channel": address.channel, "account": address.account, "chat": address.chat}
        if not event.present:
            log.info("chat.left", **place)
            return
        policy = self._gate.policy(address)
        turn = "/".join(("joined", address.channel, address.account, address.chat, event.sent_at.isoformat()))
        if await self._gate.answers_in(address):
            log.info("chat.joined", **place)
            own = policy.of(address.chat, address.parent).mention
            sees = NOT_ADDRESSED if (policy.mention if own is None else own) else EVERYTHING
            if policy.joining != "quiet":
                await self._outbox.put(turn, [Part(address, FormattedText(f"Hello! {sees}"))])
            return
        mend = f"to be answered there: limpet allow --group {address.account}:{address.chat}"
        log.warning("chat.not_allowed", **place, mend=mend)
        has_left = policy.joining == "leave" and await self._leave(address)
        if policy.joining == "say":
            words = (
                "Hello! I may not answer in this group yet, and read nothing here. My owner can allow it: /allow here."
            )
            await self._outbox.put(turn, [Part(address, FormattedText(words))])
        if self._told_since is None or event.sent_at - self._told_since > NOT_HEARD_AGAIN:
            self._told_since, self._groups_told = event.sent_at, 0
        if self._groups_told < MOST_GROUPS_TOLD:
            self._groups_told += 1
            await self._tell_of_group(event, turn, has_left=has_left)

    # What an owner decides --------------------------------------------------------------------------------------------

    async def waiting(self) -> str:
        """Who waits with a code, for an owner."""
        requests = await self._pairing.waiting()
        lines = [f"- {_who(request)}: /approve {request.code}" for request in requests]
        return "\n".join(lines) or NOBODY_WAITS

    async def approve(self, words: str) -> tuple[str, bool]:
        """Let the asker of a code in, as a guest or, with the word "member", as that; what to say, and whether done."""
        code, _, level = words.partition(" ")
        chosen = {"": Level.GUEST, "guest": Level.GUEST, "member": Level.MEMBER}.get(level.strip().casefold())
        if chosen is None:
            return "Say /approve CODE, or /approve CODE member. An owner is made in the terminal only.", False
        request = await self._pairing.approve(code, chosen)
        if request is None:
            return WAITS_NOT, False
        if request.address is not None and (request.channel, request.account) in self._adapters:
            await self._outbox.put(f"let-in/{request.code}", [Part(request.address, FormattedText(IN))])
        return f"{_who(request)} is a {chosen.name.lower()} now.", True

    async def allow(self, words: str, at: Address) -> tuple[str, bool]:
        """Let a group or an account in; ``at`` is where it was said, the group itself where there are no ``words``."""
        group, account, trouble = await self._meant(words, at, "allow")
        if group is not None:
            is_new = await self._groups.allow(*group)
            if not words:
                return ALLOWED_HERE, True
            return f"I answer in {group[2]} {'now' if is_new else 'already'}.", True
        if account is not None:
            channel, sender = account
            policies = {
                account: self._gate.policy(Address(kind, account, sender, "direct"))
                for kind, account in self._adapters
                if kind == channel
            }
            if closed := closed_to(channel, sender, policies):
                return closed, False
            standing = await self._people.standing(Address(channel, channel, sender, "direct"), Sender(sender))
            level = standing.level or Level.GUEST
            if standing.level is None:
                await self._people.give(channel, sender, level, "")
            return (
                f"{channel}:{sender} is a {level.name.lower()}{' now' if standing.level is None else ' already'}.",
                True,
            )
        return trouble, False

    async def deny(self, words: str, at: Address) -> tuple[str, bool]:
        """End a code, keep a group out and leave it where that is possible, or block an account."""
        if words and (request := await self._pairing.deny(words, for_good=True)) is not None:
            return f"The code of {_who(request)} is void.", True
        group, account, trouble = await self._meant(words, at, "deny")
        if group is not None:
            was = await self._groups.forget(*group)
            place = Address(group[0], group[1], group[2], "group")
            if await self._gate.answers_in(place):
                return BY_SETTINGS, False
            if words:
                await self._leave(await self._people.newest(place))
            return (ENDED_HERE if was and not words else f"I don't answer in {group[2]}."), True
        if account is not None:
            channel, sender = account
            standing = await self._people.standing(Address(channel, channel, sender, "direct"), Sender(sender))
            if standing.level is Level.OWNER:
                return f"{channel}:{sender} is an owner. {BY_SETTINGS}", False
            await self._people.block(channel, sender, "")
            return f"{channel}:{sender} is not heard any more. /allow {channel}:{sender} ends that.", True
        return trouble, False

    # ------------------------------------------------------------------------------------------------------------------

    async def _meant(
        self, words: str, at: Address, name: str
    ) -> tuple[tuple[str, str, str] | None, tuple[str, str] | None, str]:
        """The group, or the account, that ``words`` name; else what is wrong with them."""
        if not words:
            if at.kind == "direct":
                return None, None, USAGE.format(name=name)
            first = await self._people.canonical(at)
            return (at.channel, at.account, at.parent or first.chat), None, ""
        first_word, _, rest = words.partition(" ")
        if rest.strip():
            kinds = {account: channel for channel, account in self._adapters if channel != "terminal"}
            if first_word not in kinds:
                return None, None, NO_CHANNEL.format(name=one_line(first_word, 40), names=", ".join(kinds) or "none")
            place = Address(kinds[first_word], first_word, rest.strip(), "group")
            return (place.channel, place.account, (await self._people.canonical(place)).chat), None, ""
        channel, colon, sender = first_word.partition(":")
        if not (colon and channel and sender) or channel not in {kind for kind, _ in self._adapters}:
            return None, None, USAGE.format(name=name)
        try:
            return None, (channel, canonical_id(channel, sender)), ""
        except ValueError as error:
            return None, None, f"{one_line(str(error), 200)}."

    async def _tell_of_group(self, event: Membership, turn: str, *, has_left: bool) -> None:
        address = event.address
        by = one_line(event.sender.name or event.sender.id, 60)
        words = f"{by} ({address.channel}:{event.sender.id}) added me to the {address.kind} {address.chat}"
        if has_left:
            await self._owners.tell(f"{turn}/owners", f"{words}, which I may not answer in: I left it.")
            return
        answers = [Button("Answer there", f"/allow {address.account} {address.chat}")]
        if isinstance(self._adapters[address.channel, address.account], Leaver):
            answers.append(Button("Leave it", f"/deny {address.account} {address.chat}"))
        await self._owners.tell(f"{turn}/owners", f"{words}, where I may not answer.", tuple(answers))

    async def _leave(self, address: Address) -> bool:
        """Whether the platform lets us."""
        adapter = self._adapters[address.channel, address.account]
        if isinstance(adapter, Leaver):
            await adapter.leave(address)
            return True
        return False


def _who(request: PairingRequest) -> str:
    """The account, and the name in one harmless line: names are chosen by whoever asks, ids are not."""
    account, name = f"{request.channel}:{request.sender}", one_line(request.name, 40)
    return f"{name} ({account})" if name else account


def _choices(request: PairingRequest) -> tuple[Button, ...]:
    return (
        Button("Let in as a guest", f"/approve {request.code}"),
        Button("Let in as a member", f"/approve {request.code} member"),
        Button("No", f"/deny {request.code}"),
    )


def _pairing_turn(message: Message) -> str:
    """The outbox's turn of a pairing code: the same for a replay of ``message``."""
    address = message.address
    return "/".join(("pairing", address.channel, address.account, address.chat, message.id))
