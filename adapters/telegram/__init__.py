"""Telegram: one bot, whose messages are asked for or brought, answered with text, entities and files.

``adapter`` satisfies the contract. In: ``polling`` or ``webhook`` receive in ``rounds``, ``intake`` hands on what
``inbound``, ``content`` and ``mentions`` read. Out: ``entities`` and ``uploads`` give a part its form, and ``limits``
keeps edits from standing in the way. ``client`` asks Telegram, over ``transport``, and ``refusals`` says what an answer
means. The library is imported on first use.
"""

from adapters.telegram.adapter import TelegramAdapter, check_token
from adapters.telegram.settings import BotIdentity, TelegramSettings

__all__ = ["BotIdentity", "TelegramAdapter", "TelegramSettings", "check_token"]
