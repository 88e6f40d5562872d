"""WhatsApp on loopback: a server that real clients log in to, pair with, and write to each other through.

``library`` is what has to be known of the client's binary. ``trust``, ``curve``, ``noise``, ``protobuf`` and ``stanza``
are how the two sides speak; ``directory``, ``pairing``, ``queries``, ``messages`` and ``media`` what the server does;
``relay`` is the server, ``proxy`` the way to it, and ``person`` a real client in a process of its own, as a person has
it, told what to do by ``lines``. Messages are encrypted from client to client: the server holds no plain text. It
shares no code with the adapter.
"""
