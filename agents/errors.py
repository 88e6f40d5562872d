"""What can go wrong before a model is asked. A call that fails is no exception: it ends in the event ``Failed``.

ModelError
├── UnknownModel     the name means nothing, or the weights it names are not here
├── MissingExtra     the package that this model needs is not installed
└── WeightsError     weights could not be had, kept or removed

Every message names what failed and the mend; no message holds a key.
"""

from __future__ import annotations


class ModelError(Exception):
    """The root of the tree; never raised itself."""


class UnknownModel(ModelError):
    """A model's name that can't be understood."""


class MissingExtra(ModelError):
    """An optional package is not installed; the message holds the exact command that installs it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra {extra!r}. Install it: pip install 'limpet[{extra}]'")
        self.extra = extra


class WeightsError(ModelError):
    """A file of weights: no network, no space, the wrong hash, not a GGUF, no such name."""
