"""Slack: one app in one workspace, that hears over Socket Mode or signed HTTP and answers with blocks and files.

``adapter`` satisfies the contract. In: ``socket_mode`` or ``signed_http`` receive in ``rounds``, through Bolt in
``dispatch``; ``intake`` hands on what ``inbound``, ``content`` and ``markdown`` read, with the names of a ``directory``
and what was said before in ``threads``; ``backfill`` looks up what was missed. Out: ``blocks`` and ``uploads`` give a
part its form, and ``sent`` finds out what was sent.
``client`` asks Slack, and ``refusals`` says what an answer means. The libraries are imported on first use.
"""

from importlib.util import find_spec

from adapters.errors import MissingExtra

if find_spec("slack_bolt") is None:
    raise MissingExtra("slack", "slack")

from adapters.slack.adapter import SlackAdapter, check_tokens  # only where it can work
from adapters.slack.settings import BotIdentity, SlackSettings

__all__ = ["BotIdentity", "SlackAdapter", "SlackSettings", "check_tokens"]
