"""Telegram's Bot API on loopback: real HTTP, long polling and webhooks, no Telegram.

``chats`` holds what people and the bot say, ``methods`` what the bot may call, ``checks`` and ``uploads`` what the real
server refuses, and ``server`` is the HTTP around them. It shares no code with the adapter that it tests.
"""

from tests.fakes.telegram_api.chats import ANN, BOB, Chat, Sent, User
from tests.fakes.telegram_api.server import TOKEN, Fault, TelegramApi
from tests.fakes.telegram_api.uploads import Upload

__all__ = ["ANN", "BOB", "TOKEN", "Chat", "Fault", "Sent", "TelegramApi", "Upload", "User"]
