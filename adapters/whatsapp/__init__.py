"""The door to WhatsApp, on neonize, which is no official client.

``identity`` says who is who and ``acquaintances`` keeps it; ``content`` and ``inbound`` read events, ``markup`` and
``outbound`` write messages; ``choices`` stands in for buttons, ``echoes`` knows our own words again, ``pacing`` keeps
the speed of a person; ``library`` loads neonize, and ``bridge`` brings what it says into the event loop.
"""
