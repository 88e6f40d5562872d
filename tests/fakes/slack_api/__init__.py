"""Slack on loopback: its Web API, Socket Mode and signed requests, over real HTTP and web sockets, and no Slack.

``workspace`` holds what people and the bot say, ``methods`` what the bot may call, ``checks`` what the real server
refuses, and ``server`` is the network around them. It shares no code with the adapter that it tests.
"""

from tests.fakes.slack_api.server import APP_TOKEN, SIGNING_SECRET, TOKEN, Fault, SlackApi
from tests.fakes.slack_api.workspace import ANN, BOB, OTHER_BOT, Chat, Sent, User

__all__ = [
    "ANN",
    "APP_TOKEN",
    "BOB",
    "OTHER_BOT",
    "SIGNING_SECRET",
    "TOKEN",
    "Chat",
    "Fault",
    "Sent",
    "SlackApi",
    "User",
]
