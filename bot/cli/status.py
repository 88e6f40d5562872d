"""``limpet status``: is all well? A verdict first, then only what is configured, each problem with its mend."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import typer

from bot.cli import output
from bot.cli.options import JsonOption

if TYPE_CHECKING:
    from bot.home import Home
    from bot.settings import Settings
    from bot.state import State


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not well. ``mend`` is one command or one clause."""

    what: str
    mend: str


@dataclass(frozen=True, slots=True)
class Channel:
    """A configured channel. ``state`` is the adapter's word, or "not running"; times are ISO 8601, None for never."""

    account: str
    kind: str
    state: str
    detail: str
    last_in: str | None
    last_out: str | None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


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

    settings = load(home)
    hub = Lock(home.lock).holder()
    stored: _Stored = _Stored()
    if home.database.exists():
        from bot.state import State

        async with State.open(home.database) as state:
            stored = await _read(state)
    channels = tuple(_channels(settings, stored, running=hub is not None))
    models, findings = _models(settings, home)
    findings += _findings(settings, channels, stored, hub)
    notes = {agent: _count_notes(settings.workspace(agent, home)) for agent in settings.agents}
    return Status(hub, channels, models, notes, stored.waiting, stored.unsent, stored.pairing, tuple(findings))


@dataclass(frozen=True, slots=True)
class _Stored:
    """What the state database says."""

    health: tuple[Any, ...] = ()
    waiting: int = 0
    unsent: int = 0
    failed: int = 0
    pairing: int = 0


async def _read(state: State) -> _Stored:
    from bot.app import now
    from bot.health import read_health

    async def count(sql: str, *values: Any) -> int:
        row = await state.row(sql, *values)
        return int(row[0]) if row else 0

    return _Stored(
        health=tuple(await read_health(state)),
        waiting=await count("SELECT count(*) FROM inbox WHERE NOT done"),
        unsent=await count("SELECT count(*) FROM outbox WHERE state IN ('pending', 'attempting')"),
        failed=await count(
            "SELECT count(*) FROM outbox WHERE state IN ('failed', 'uncertain') AND created_at > ?",
            (now() - timedelta(days=1)).isoformat(),
        ),
        pairing=await count("SELECT count(*) FROM pairing WHERE expires_at > ?", now().isoformat()),
    )


def _channels(settings: Settings, stored: _Stored, *, running: bool) -> list[Channel]:
    health = {(h.channel, h.account): h for h in stored.health}
    found = []
    for name, section in settings.channels.items():
        if not section.enabled:
            continue
        last = health.get((section.kind, name))
        state, detail = ("not running", "")
        if last is not None and (running or last.state == "failed"):
            state, detail = last.state, last.detail
        elif running:
            state, detail = "not running", "added since the hub was started"
        found.append(
            Channel(name, section.kind, state, detail, last.last_in if last else None, last.last_out if last else None)
        )
    return found


def _models(settings: Settings, home: Home) -> tuple[dict[str, str | None], list[Finding]]:
    from agents.errors import ModelError
    from bot.models import choice_of

    models: dict[str, str | None] = {}
    findings: list[Finding] = []
    for agent in settings.agents:
        try:
            choice = choice_of(agent, settings, home)
            models[agent] = choice.name if choice else None
        except ModelError as error:
            models[agent] = None
            findings.append(Finding(f"agent {agent}: {error}", "see: limpet models list"))
    return models, findings


def _findings(settings: Settings, channels: tuple[Channel, ...], stored: _Stored, hub: int | None) -> list[Finding]:
    findings = [
        Finding(f"{name} can't start: {problem.message}", problem.mend or "limpet config check")
        for name, problem in settings.degraded.items()
    ]
    if channels and hub is None:
        findings.append(Finding("no hub is running, so no channel is answered", "limpet run"))
    if hub is not None:
        for channel in channels:
            if channel.state == "not running":
                findings.append(
                    Finding(f"{channel.account}: {channel.detail}", f"stop the hub (kill {hub}), then: limpet run")
                )
            elif channel.state in ("failed", "retrying"):
                findings.append(Finding(f"{channel.account}: {channel.detail}", "see the log: limpet where"))
    if stored.failed:
        findings.append(
            Finding(f"{stored.failed} messages of the last day were not delivered", "see the log: limpet where")
        )
    return findings


def _count_notes(workspace: Any) -> int:
    return sum(1 for _ in (workspace / "memory").rglob("*.md")) if (workspace / "memory").is_dir() else 0


def channel_rows(status: Status) -> list[tuple[str, ...]]:
    """The table of the channels: name, state, last message in, last out, detail."""
    return [(c.account, c.state, f"in {_ago(c.last_in)}", f"out {_ago(c.last_out)}", c.detail) for c in status.channels]


def _lines(status: Status) -> list[str]:
    lines = [_verdict(status)]
    lines += [f"  ✗ {finding.what} — {finding.mend}" for finding in status.findings[:5]]
    if len(status.findings) > 5:
        lines.append(f"  … and {len(status.findings) - 5} more: limpet status --json")
    lines.append("hub       " + (f"running, pid {status.hub}" if status.hub is not None else "not running"))
    if status.channels:
        lines += ["channel   " + row for row in output.table(channel_rows(status)).splitlines()[:3]]
    for agent, model in list(status.models.items())[:2]:
        lines.append(f"agent     {agent}: {model or 'no model, notes only'}, {status.notes[agent]} note files")
    if status.waiting or status.unsent:
        lines.append(f"waiting   {status.waiting} to answer, {status.unsent} to send")
    if status.pairing:
        lines.append(f"pairing   {status.pairing} waiting: limpet pairing list")
    return lines


def _verdict(status: Status) -> str:
    if status.findings:
        count = len(status.findings)
        return output.bold(f"{count} problem{'s' if count > 1 else ''}.")
    return output.bold("All well." if status.hub is not None else "All well. Talk: limpet")


def _ago(moment: str | None) -> str:
    """How long ago, in one unit; "never" for None."""
    if moment is None:
        return "never"
    from datetime import datetime

    from bot.app import now

    seconds = max(0, int((now() - datetime.fromisoformat(moment)).total_seconds()))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return f"{seconds} s ago"
