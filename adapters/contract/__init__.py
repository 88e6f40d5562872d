"""The contract of ``adapters.adapter`` as tests, for adapters inside of this project and outside of it.

``harness`` says what the tests need of a platform, and ``suite`` is the tests: a class to derive from in a test file.
Needs pytest and pytest-asyncio; nothing else imports this package. docs/adapters.md shows how to use it.
"""

import pytest

pytest.register_assert_rewrite("adapters.contract.suite")

from adapters.contract.harness import (  # noqa: E402  # after the line that makes failed assertions readable
    ButtonHarness,
    DeletionHarness,
    EditHarness,
    FileHarness,
    Harness,
    OutageHarness,
    SeenFile,
    StallHarness,
    Trouble,
    UploadHarness,
)
from adapters.contract.suite import AdapterContract  # noqa: E402

__all__ = [
    "AdapterContract",
    "ButtonHarness",
    "DeletionHarness",
    "EditHarness",
    "FileHarness",
    "Harness",
    "OutageHarness",
    "SeenFile",
    "StallHarness",
    "Trouble",
    "UploadHarness",
]
