"""The doors and hubs of ``tests.bot``, for what must never get from one chat to another."""

from __future__ import annotations

from tests.bot.conftest import door, home, serve

__all__ = ["door", "home", "serve"]
