"""Discord: one bot, which hears over the gateway and answers with messages, files, buttons and slash commands.

``adapter`` satisfies the contract. In: ``gateway`` stays connected, ``intake`` hands on in order what ``inbound`` and
``content`` read, at the ``places`` it was said, and ``backfill`` reads up what was missed; ``interactions`` answers
Discord while that is going on. Out: ``markup`` and ``uploads`` give a part its form. ``client`` asks Discord, over
``transport``, and ``refusals`` says what an answer means. The library is imported on first use.
"""

from importlib.util import find_spec

from adapters.errors import MissingExtra

if find_spec("discord") is None:
    raise MissingExtra("discord", "discord")

from adapters.discord.adapter import DiscordAdapter, check_token
from adapters.discord.settings import BotIdentity, DiscordSettings

__all__ = ["BotIdentity", "DiscordAdapter", "DiscordSettings", "check_token"]
