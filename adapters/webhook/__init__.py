"""A webhook: any program talks with the bot by signed JSON over HTTP. The worked example of docs/adapters.md.

``adapter`` satisfies the contract and listens, ``inbound`` and ``outbound`` translate, ``signing`` says who may write,
and ``client`` is the only way out. aiohttp is imported on first use.
"""

from adapters.webhook.adapter import WebhookAdapter, check_receiver
from adapters.webhook.settings import WebhookIdentity, WebhookSettings
from adapters.webhook.signing import signature

__all__ = ["WebhookAdapter", "WebhookIdentity", "WebhookSettings", "check_receiver", "signature"]
