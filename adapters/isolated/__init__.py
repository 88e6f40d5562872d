"""Runs an adapter in a process of its own: whatever its library does there, the hub lives on.

``host`` has ``isolated``, which makes of an adapter one that satisfies the same contract. ``process`` is one life of
its process as the hub sees it, ``child`` what runs in there, and ``frames`` what the two say to each other.
docs/adr/0019 says why and when.
"""
