"""The door to WhatsApp, on neonize, which is no official client.

``adapter`` satisfies the contract. In: a ``line`` holds the connection that ``client`` makes, and ``bridge`` brings
what the library says into the event loop; ``states`` says what its end means. ``intake`` hands on what ``inbound`` and
``content`` read, with ``identity`` and ``acquaintances`` for who is who. Out: ``outbound``, ``markup``, ``uploads`` and
``voice`` write messages, at the ``pacing`` of a person; ``choices`` stands in for buttons, and ``echoes`` knows our own
words again. ``session`` is kept by the library and ``notebook`` by us; ``heard`` and ``ours`` are in memory.
``linking`` links an account. ``library`` loads neonize on first use, ``calls`` keeps its calls from holding us up.
"""

from importlib.util import find_spec

from adapters.errors import MissingExtra

if find_spec("neonize") is None:
    raise MissingExtra("whatsapp", "whatsapp")

from adapters.whatsapp.adapter import WhatsAppAdapter, check_link  # only where it can work
from adapters.whatsapp.settings import BotIdentity, WhatsAppSettings

__all__ = ["BotIdentity", "WhatsAppAdapter", "WhatsAppSettings", "check_link"]
