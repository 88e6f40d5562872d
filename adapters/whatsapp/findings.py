"""What keeps an account from hearing or answering, or puts it at risk, and what to do about it.

WhatsApp is not asked: that would take the connection away from a running hub. Pure, but for a look at the folder.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from adapters.errors import AuthFailed
from adapters.whatsapp import session
from adapters.whatsapp.identity import GROUP, Jid
from adapters.whatsapp.settings import WhatsAppSettings


@dataclass(frozen=True, slots=True)
class Finding:
    """``what`` is the case, one sentence; ``mend`` is what to do if that is not wanted."""

    what: str
    mend: str


def of_settings(settings: WhatsAppSettings, groups: Sequence[str]) -> list[Finding]:
    """For what is set; ``groups`` are those it is to answer in."""
    found = [
        Finding(
            f"{group!r} is no group of WhatsApp",
            "write its id, which ends in @g.us: the hub's log names it when something is said there",
        )
        for group in groups
        if (jid := Jid.parse(group)) is None or jid.server != GROUP
    ]
    if settings.write_first:
        what = "the bot may write to people who never wrote to it, and accounts are banned for that"
        found.append(Finding(what, "take write_first away"))
    return found


async def inspect(settings: WhatsAppSettings, groups: Sequence[str], folder: Path) -> list[Finding]:
    """All that can be found out without a connection. Raises AuthFailed where no account is linked."""
    try:
        await asyncio.to_thread(session.identity, folder)
    except AuthFailed as error:
        raise session.named(error, folder.name) from error
    found = of_settings(settings, groups)
    path = session.session_of(folder)
    if (await asyncio.to_thread(path.stat)).st_mode & 0o077:
        found.append(Finding(f"others on this machine can read {path}, and be the account", f"chmod 600 {path}"))
    if shutil.which("ffmpeg") is None:
        what = "ffmpeg is missing, so that voice notes are sent as audio files"
        found.append(Finding(what, "install ffmpeg"))
    return found
