"""``limpet status``: is all well? A verdict first, then only what is configured, each problem with its mend."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bot.cli import output
from bot.cli.options import JsonOption
from bot.health import Finding

if TYPE_CHECKING:
    from bot.home import Home
    from bot.settings import Settings
    from bot.start_record import StartRecord
    from bot.state import State


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel of the settings. Times are ISO 8601, None for never.

    ``state`` is the adapter's word while a hub runs, else "not running"; "can't start" where the settings lack
    something, and "off" for one that is not enabled. ``heard_at`` is when the platform last answered, to the minute;
    ``reconnects`` is how often it was lost and found again since the hub was started.
    """

    account: str
    kind: str
    state: str
    detail: str
    last_in: str | None
    last_out: str | None
    heard_at: str | None = None
    reconnects: int = 0

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Recovered:
    """What was mended without a person in the last day.

    ``resumed`` turns were begun again, ``resent`` parts were sent once more since they may not have arrived;
    ``rebuilt`` are the files that were put aside and made anew, however long ago.
    """

    resumed: int = 0
    resent: int = 0
    rebuilt: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Status:
    """All that the command shows."""

    hub: int | None
    channels: tuple[Channel, ...]
    models: dict[str, str | None]
    notes: dict[str, int]
    waiting: int
    unsent: int
    pairing: int
    recovered: Recovered
    findings: tuple[Finding, ...]


def command(ctx: typer.Context, json: JsonOption = False) -> int:
    """Say whether all is well: the hub, the channels, the models, what waits. Exit code 1 when something is not."""
    status = asyncio.run(gather(ctx.obj))
    data = {"ok": not status.findings, **asdict(status)}
    output.result("\n".join(_lines(status)), data, as_json=json)
    return 1 if status.findings else 0


async def gather(home: Home) -> Status:
    """Read the state of ``home``, beside a running hub or without one. Nothing is created."""
    from bot.config import load
    from bot.lock import Lock
    from bot.start_record import running

    settings = load(home)
    hub = Lock(home.lock).holder()
    stored = await _stored(home)
    channels = tuple(_channels(settings, home, stored, is_running=hub is not None))
    rebuilt = tuple(_put_aside(settings, home))
    return Status(
        hub=hub,
        channels=channels,
        models=_models(settings, home),
        notes={agent: _count_notes(settings.workspace(agent, home)) for agent in settings.agents},
        waiting=stored.waiting,
        unsent=stored.unsent,
        pairing=stored.pairing,
        recovered=Recovered(stored.resumed, stored.resent, rebuilt),
        findings=tuple(_findings(settings, home, channels, stored, hub, running(home))),
    )


@dataclass(frozen=True, slots=True)
class _Stored:
    """What the state database says. ``flaw`` is why it could not be read; None when it could, or when there is none."""

    health: tuple[Any, ...] = ()
    models: tuple[tuple[str, str, str], ...] = ()
    waiting: int = 0
    unsent: int = 0
    failed: int = 0
    pairing: int = 0
    resumed: int = 0
    resent: int = 0
    flaw: Finding | None = None


async def _stored(home: Home) -> _Stored:
    from bot.refusals import refusal
    from bot.state import State
    from workspaces.database import DatabaseError, sqlite

    if not home.database.exists():
        return _Stored()
    try:
        async with State.open(home.database) as state:
            return await _read(state)
    except (DatabaseError, sqlite().Error, OSError) as error:
        told = refusal(error, home)
        what, mend = (told.message, told.mend) if told else (str(error), None)
        return _Stored(flaw=Finding(f"the state can't be read: {what}", mend or "see: limpet where"))


async def _read(state: State) -> _Stored:
    from bot.clock import now
    from bot.health import failing_models, read_health

    moment = now()
    yesterday = (moment - timedelta(days=1)).isoformat()

    async def count(sql: str, *values: Any) -> int:
        row = await state.row(sql, *values)
        return int(row[0]) if row else 0

    return _Stored(
        health=tuple(await read_health(state)),
        models=tuple(await failing_models(state)),
        waiting=await count("SELECT count(*) FROM inbox WHERE NOT done"),
        unsent=await count("SELECT count(*) FROM outbox WHERE state IN ('pending', 'attempting')"),
        failed=await count(
            "SELECT count(*) FROM outbox WHERE state IN ('failed', 'uncertain') AND created_at > ?", yesterday
        ),
        pairing=await count("SELECT count(*) FROM pairing WHERE expires_at > ?", moment.isoformat()),
        resumed=await count("SELECT count(*) FROM inbox WHERE tries > 1 AND received_at > ?", yesterday),
        resent=await count("SELECT count(*) FROM outbox WHERE repeat AND state = 'sent' AND created_at > ?", yesterday),
    )


def _channels(settings: Settings, home: Home, stored: _Stored, *, is_running: bool) -> Iterator[Channel]:
    from bot.config_file import read

    health = {h.account: h for h in stored.health}
    sections = read(home.config).data.get("channels", {})
    for name in {**settings.channels, **settings.degraded, **sections}:
        own = settings.channels.get(name)
        last = health.get(name)
        kind = own.kind if own is not None else str(sections.get(name, {}).get("kind", name))
        state, detail = "not running", ""
        if not (own.enabled if own is not None else name in settings.degraded):
            state = "off"
        elif last is not None and (last.state == "failed" or (is_running and last.state != "stopped")):
            state, detail = last.state, last.detail
        elif name in settings.degraded:
            state, detail = "can't start", settings.degraded[name].message
        elif is_running:
            detail = "added since the hub was started"
        if last is None:
            yield Channel(name, kind, state, detail, None, None)
        else:
            yield Channel(name, kind, state, detail, last.last_in, last.last_out, last.heard_at, last.reconnects)


def _models(settings: Settings, home: Home) -> dict[str, str | None]:
    from agents.errors import ModelError
    from bot.models import choices_of

    models: dict[str, str | None] = {}
    for agent in settings.agents:
        try:
            choices = choices_of(agent, settings, home)
        except ModelError:  # one of the findings
            choices = ()
        models[agent] = choices[0].name if choices else None
    return models


def _put_aside(settings: Settings, home: Home) -> Iterator[Path]:
    for agent in settings.agents:
        path = home.index(agent)
        aside = path.with_name(f"{path.name}.aside")
        if aside.exists():
            yield aside


def _findings(
    settings: Settings,
    home: Home,
    channels: tuple[Channel, ...],
    stored: _Stored,
    hub: int | None,
    record: StartRecord | None,
) -> Iterator[Finding]:
    """The worst first. What a running hub knows of itself counts for more than what this process would find."""
    from bot.health import amiss, cramped
    from bot.salvage import put_aside

    if stored.flaw is not None:
        yield stored.flaw
    else:
        yield from cramped(home)
    for path in put_aside(home.database):
        what = (
            f"the state was damaged and made anew {_ago(_renamed(path))} of what could be read; the old one is {path}"
        )
        yield Finding(what, f"see the log (limpet where); if nothing is missed: rm {path}*")
    restart = f"restart it: kill {hub}, then limpet run"
    yield from (Finding(*problem) for problem in record.problems) if record is not None else amiss(settings, home)
    for path in record.changed(home) if record is not None else ():
        yield Finding(f"{path.name} was changed after the hub was started", restart)
    if hub is None and any(channel.state == "not running" for channel in channels):
        yield Finding("no hub is running, so no channel is answered", "limpet run")
    for channel in channels if hub is not None else ():
        if channel.state == "not running":
            yield Finding(f"{channel.account}: {channel.detail}", restart)
        elif channel.state in ("failed", "retrying"):
            yield Finding(f"{channel.account}: {channel.detail}", "see the log: limpet where")
    for model, why, since in stored.models if hub is not None else ():
        what = f"{model} failed {_ago(since)}: {why.rstrip('.')}"
        yield Finding(what, "it is asked again with the next message; who asked was told")
    if stored.failed:
        yield Finding(
            f"{_counted(stored.failed, 'message')} of the last day not delivered", "see the log: limpet where"
        )
    for warning in settings.warnings:
        yield Finding(warning.what, warning.mend or "see: limpet config check")


def _count_notes(workspace: Path) -> int:
    return sum(1 for _ in (workspace / "memory").rglob("*.md")) if (workspace / "memory").is_dir() else 0


def channel_rows(channels: Iterable[Channel]) -> list[tuple[str, ...]]:
    """The table of the channels: name, state, last message in, last out, detail."""
    return [(c.account, c.state, f"in {_ago(c.last_in)}", f"out {_ago(c.last_out)}", c.detail) for c in channels]


def _lines(status: Status) -> Iterator[str]:
    yield _verdict(status)
    yield from (f"  ✗ {finding.what} — {finding.mend}" for finding in status.findings[:5])
    if len(status.findings) > 5:
        yield f"  … and {len(status.findings) - 5} more: limpet status --json"
    yield "hub       " + (f"running, pid {status.hub}" if status.hub is not None else "not running")
    on = [channel for channel in status.channels if channel.state != "off"]
    rows = [row[:-1] for row in channel_rows(on)]  # what is not well with one is among the findings
    yield from ("channel   " + row for row in output.table(rows).splitlines()[:3])
    for agent, model in list(status.models.items())[:2]:
        yield f"agent     {agent}: {model or 'no model, notes only'}, {_counted(status.notes[agent], 'note file')}"
    if status.waiting or status.unsent:
        yield f"waiting   {status.waiting} to answer, {status.unsent} to send"
    if status.pairing:
        yield f"pairing   {status.pairing} waiting: limpet pairing list"
    if words := ", ".join(_recovered(status.recovered)):
        yield f"recovered {words}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _recovered(recovered: Recovered) -> Iterator[str]:
    """What was mended by itself, for a person who wonders at it; nothing is to be done."""
    if recovered.resumed:
        yield f"{_counted(recovered.resumed, 'turn')} begun again in the last day"
    if recovered.resent:
        yield f"{_counted(recovered.resent, 'message')} sent once more in the last day"
    for path in recovered.rebuilt:
        yield f"{path.stem} made anew {_ago(_renamed(path))}, the old one is {path}"


def _renamed(path: Path) -> str:
    """When the file got its name, in ISO 8601."""
    return datetime.fromtimestamp(path.stat().st_ctime, UTC).isoformat()


def _verdict(status: Status) -> str:
    if count := len(status.findings):
        return output.bold(f"{_counted(count, 'problem')}.")
    return output.bold("All well." if status.hub is not None else "All well. Talk: limpet")


def _ago(moment: str | None) -> str:
    """How long ago, in one unit; "never" for None."""
    if moment is None:
        return "never"
    from bot.clock import now

    seconds = max(0, int((now() - datetime.fromisoformat(moment)).total_seconds()))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return f"{seconds} s ago"
