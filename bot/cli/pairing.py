"""``limpet pairing``: who may talk to the bot, and at which level. A running hub notices each change at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from bot.cli import output
from bot.cli.options import JsonOption
from bot.errors import UsageError

if TYPE_CHECKING:
    from bot.home import Home
    from bot.pairing import Pairing, PairingRequest
    from bot.people import People
    from bot.toml_positions import Key
    from workspaces.scope import Level

app = typer.Typer(help="Who may talk to the bot: let people in, change their level, send them away.")

CodeArgument = Annotated[str, typer.Argument(help="The code, as the person saw it.")]
WhoArgument = Annotated[
    str, typer.Argument(metavar="WHO", help="The code that the person saw, or an account: telegram:123456789.")
]
AccountArgument = Annotated[
    str, typer.Argument(metavar="WHO", help="An account as `limpet pairing list` shows it: telegram:123456789.")
]
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class _Known:
    """Somebody who may talk, or who is blocked (``level`` None), since ``since`` (ISO 8601) or by a line of the
    settings, ``place``.
    """

    channel: str
    sender: str
    level: Level | None
    name: str = ""
    since: str = ""
    place: str = ""

    @property
    def account(self) -> str:
        return f"{self.channel}:{self.sender}"

    def as_dict(self) -> dict[str, str | None]:
        return {
            "channel": self.channel,
            "sender": self.sender,
            "name": self.name,
            "level": _word(self.level),
            "since": self.since or None,
            "place": self.place or None,
        }


@app.command("list")
def list_people(ctx: typer.Context, json: JsonOption = False) -> None:
    """Who waits with a code, who may talk or is blocked, and which groups were allowed: since when, or by which line.

    Groups of the settings are not among them.
    """
    from bot.cli.admitting import groups

    home: Home = ctx.obj
    waiting, known = _everyone(home)
    allowed = groups(home, lambda table: table.all())
    now = datetime.now(UTC)
    rows = [
        ("waiting", r.code, _named(r.name, r.channel, r.sender), f"{_minutes(r.expires_at - now)} min left")
        for r in waiting
    ]
    rows += [
        (_word(p.level), p.account, _one_line(p.name), f"since {p.since[:10]}" if p.since else p.place) for p in known
    ]
    rows += [("group", f"{group.account}:{group.chat}", "", f"since {group.since[:10]}") for group in allowed]
    if not rows and not json:
        output.note("Nobody waits and nobody is known. Whoever writes to the bot first gets a code to show you.")
    data = {"waiting": [_shown(request) for request in waiting], "people": [person.as_dict() for person in known]}
    data["groups"] = [asdict(group) for group in allowed]
    output.result(output.table(rows), data, as_json=json)


@app.command()
def approve(
    ctx: typer.Context,
    who: WhoArgument,
    owner: Annotated[
        bool, typer.Option("--owner", help="It is you: this account shares the home memory and every right.")
    ] = False,
    member: Annotated[bool, typer.Option("--member", help="Someone you trust more than a guest.")] = False,
    guest: Annotated[bool, typer.Option("--guest", help="Someone else; nothing is asked.")] = False,
    json: JsonOption = False,
) -> None:
    """Let a person in: as a guest with a memory of their own, or as you (--owner).

    Or change the level of one who is in already; a new conversation begins then.
    """
    home: Home = ctx.obj
    wanted = _level(owner=owner, member=member, guest=guest)
    request, person = _meant(who, *_everyone(home))
    if request is not None:
        person, level = _of(request), wanted if wanted is not None else _asked(request, json)
        if _with(home, lambda pairing, _: pairing.approve(request.code, level)) is None:
            output.fail(f"the code {request.code} waits no longer", "see who does, and who is in: limpet pairing list")
    else:
        assert person is not None, "one of the two is meant"
        level = _changed(person, wanted)
        if level is not person.level:
            _with(home, lambda _, people: people.give(person.channel, person.sender, level, person.name))
    text = f"{_named(person.name, person.channel, person.sender)} is {_called(level)} now."
    was = _word(person.level) if request is None else None
    data = {**person.as_dict(), "level": level.name.lower(), "was": was}
    output.result(text, data if request is None else {**_shown(request), **data}, as_json=json)
    if request is not None and wanted is None and level.name == "GUEST" and not json:
        output.note(f"If it is you: limpet pairing approve {person.account} --owner")


@app.command()
def revoke(ctx: typer.Context, who: AccountArgument, json: JsonOption = False) -> None:
    """Send a person away: the next message is a stranger's. What was noted with them stays where it is."""
    home: Home = ctx.obj
    request, person = _meant(who, *_everyone(home))
    if person is None:
        assert request is not None, "one of the two is meant"
        raise UsageError(f"{who} only waits with a code", f"end it: limpet pairing deny {request.code}")
    if person.place:
        output.fail(f"{person.account} is {_called(person.level)} by {person.place}", "take it out there")
    _with(home, lambda _, people: people.take_away(person.channel, person.sender))
    text = f"{_named(person.name, person.channel, person.sender)} is a stranger again."
    output.result(text, {**person.as_dict(), "level": None, "was": _word(person.level)}, as_json=json)
    if left := next((p for p in _everyone(home)[1] if p.account == person.account), None):
        output.note(f"By {left.place} it may still talk, as {_called(left.level)}: take it out there too.")


@app.command()
def deny(ctx: typer.Context, code: CodeArgument, json: JsonOption = False) -> None:
    """End a code. Its asker may ask again."""
    request = _with(ctx.obj, lambda pairing, _: pairing.deny(code))
    if request is None:
        output.fail(f"no code {code!r} waits", "see those that do: limpet pairing list")
    text = f"The code of {_named(request.name, request.channel, request.sender)} is void."
    output.result(text, _shown(request), as_json=json)


def _level(*, owner: bool, member: bool, guest: bool) -> Level | None:
    """The level that the options say; None where they say none."""
    from workspaces.scope import Level

    said = [level for level, is_said in ((Level.OWNER, owner), (Level.MEMBER, member), (Level.GUEST, guest)) if is_said]
    if len(said) > 1:
        names = " and ".join(f"--{level.name.lower()}" for level in said)
        raise UsageError(f"{names} exclude each other", "say one of them")
    return said[0] if said else None


def _asked(request: PairingRequest, as_json: bool) -> Level:
    """The level of a newcomer where no option says it: a guest, unless the person at the terminal says it is them."""
    from workspaces.scope import Level

    if as_json or not output.is_interactive():
        return Level.GUEST
    who = _named(request.name, request.channel, request.sender)
    return Level.OWNER if output.confirm(f"Is {who} you, the owner?") else Level.GUEST


def _changed(person: _Known, wanted: Level | None) -> Level:
    """The level that somebody known gets."""
    from workspaces.scope import Level

    if wanted is None:
        raise UsageError(f"{person.account} is {_called(person.level)} already", "say --owner, --member or --guest")
    if person.place and person.level is Level.OWNER and wanted is not Level.OWNER:
        output.fail(f"{person.account} is an owner by {person.place}", "change it there")
    return wanted


def _meant(
    who: str, waiting: Sequence[PairingRequest], known: Sequence[_Known]
) -> tuple[PairingRequest | None, _Known | None]:
    """The one account of that code or id: its request where it waits, itself where it is known; never None twice.

    Ends the command where there is none, or several.
    """
    from bot.pairing import spelled

    said = who.strip()
    asking = {
        _of(request).account: request
        for request in waiting
        if request.code == spelled(who) or said in (_of(request).account, request.sender)
    }
    found = {person.account: person for person in known if said in (person.account, person.sender)}
    accounts = sorted({*asking, *found})
    if len(accounts) > 1:
        raise UsageError(f"{who!r} fits several accounts", f"say which: {' or '.join(accounts)}")
    if not accounts:
        called = [p.account for p in known if p.name and p.name.casefold() == said.casefold()]
        if called:
            output.fail(f"{who!r} is a name, and names change hands", f"say the account: {' or '.join(called)}")
        output.fail(f"nobody is known as {who!r}, and no such code waits", "see who is: limpet pairing list")
    return asking.get(accounts[0]), found.get(accounts[0])


def _of(request: PairingRequest) -> _Known:
    from workspaces.scope import Level

    return _Known(request.channel, request.sender, Level.GUEST, request.name)


def _everyone(home: Home) -> tuple[list[PairingRequest], list[_Known]]:
    """Who waits, and who may talk: of each account the highest level, by pairing or by the settings."""

    async def read(pairing: Pairing, people: People) -> tuple[list[PairingRequest], list[_Known]]:
        paired = [_Known(p.channel, p.sender, p.level, p.name, p.since) for p in await people.all()]
        known: dict[str, _Known] = {}
        for person in (*paired, *_in_settings(home)):
            other = known.get(person.account)
            if other is None or (other.level is not None and (person.level or 0) > other.level):
                known[person.account] = person
        return await pairing.waiting(), [known[account] for account in sorted(known)]

    return _with(home, read)


def _in_settings(home: Home) -> Iterator[_Known]:
    """The owners and the allowed senders that the settings name."""
    from bot.config import load, set_by
    from bot.config_file import read
    from bot.environment import Environment
    from workspaces.scope import Level

    settings = load(home)
    file = read(home.config)
    environment = Environment.of(home)

    def place(key: Key, index: int) -> str:
        if setter := set_by(key, file, environment):
            return f"{setter} of {environment.place(setter)}"
        found = file.position((*key, index))
        return f"{file.path}:{found.line}" if found else str(file.path)

    for index, owner in enumerate(settings.owners):
        channel, _, sender = owner.partition(":")
        yield _Known(channel, sender, Level.OWNER, place=place(("owners",), index))
    for name, section in settings.channels.items():
        for index, sender in enumerate(section.allow):
            if sender != "*":
                yield _Known(section.kind, sender, Level.GUEST, place=place(("channels", name, "allow"), index))


def _with(home: Home, use: Callable[[Pairing, People], Awaitable[Result]]) -> Result:
    """Use the tables of ``home``, a running hub or none."""
    from bot.clock import now
    from bot.pairing import Pairing
    from bot.people import People
    from bot.state import State

    async def run() -> Result:
        async with State.open(home.database) as state:
            people = People(state, owners=(), identities={}, clock=now)
            return await use(Pairing(state, people, clock=now), people)

    return asyncio.run(run())


def _word(level: Level | None) -> str:
    return level.name.lower() if level else "blocked"


def _called(level: Level | None) -> str:
    if level is None:
        return "blocked"
    return {"OWNER": "you: the owner", "MEMBER": "a member", "GUEST": "a guest"}[level.name]


def _named(name: str, channel: str, sender: str) -> str:
    """The account, and the name in one harmless line: names are chosen by whoever asks, ids are not."""
    account = _one_line(f"{channel}:{sender}")
    return f"{_one_line(name)} ({account})" if _one_line(name) else account


def _one_line(text: str) -> str:
    from agents.quoting import one_line

    return one_line(text, 40)


def _minutes(left: Any) -> int:
    return max(0, int(left.total_seconds() // 60))


def _shown(request: PairingRequest) -> dict[str, str]:
    return {
        "code": request.code,
        "channel": request.channel,
        "account": request.account,
        "sender": request.sender,
        "name": request.name,
        "expires_at": request.expires_at.isoformat(),
    }
