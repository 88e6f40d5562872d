"""Telegram: one bot, read by long polling, answered with text and entities.

``adapter`` satisfies the contract, ``polling`` receives, ``inbound`` and ``entities`` translate, ``client`` is the only
way to the network, and ``refusals`` says what an answer of the server means. The library is imported on first use.
"""

from adapters.telegram.adapter import TelegramAdapter, check_token
from adapters.telegram.settings import BotIdentity, TelegramSettings

__all__ = ["BotIdentity", "TelegramAdapter", "TelegramSettings", "check_token"]
