"""Pairs of what a platform reports and what the hub sees, and of Markdown and what a platform is sent, as JSON files.

Each file is one case: ``about`` says which. In ``<channel>/in`` it has an ``update`` and the ``event`` that it is (null
for one that says nothing to us), in ``<channel>/out`` a ``markdown``, what else a part has, and the ``calls`` it
becomes. After a change that is meant, record the second halves again and read the diff:

    python -m tests.adapters.golden --write
"""
