"""The contract of ``adapters.adapter``, over every adapter there is."""

from __future__ import annotations

from adapters.contract import AdapterContract


class TestEveryAdapter(AdapterContract):
    """``harness`` is in conftest.py."""
