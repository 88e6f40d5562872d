"""What can go wrong before a model is asked. A call that fails is no exception: it ends in the event ``Failed``.

ModelError
├── UnknownModel     the name means nothing, or the weights it names are not here
├── MissingExtra     the package that this model needs is not installed
├── MissingKey       the provider of this model wants a key, and there is none
└── WeightsError     weights could not be had, kept or removed, or are damaged

No message holds a key.
"""

from __future__ import annotations

from workspaces.installation import install_extra


class ModelError(Exception):
    """The root of the tree; never raised itself.

    ``what`` failed and its ``mend`` are clauses without a full stop, the mend "" where nothing is known to help; the
    text of the error is both as sentences. A command in them is in backticks: its end is seen, whatever follows.
    """

    def __init__(self, what: str, mend: str = "") -> None:
        super().__init__(f"{what}. {mend[:1].upper()}{mend[1:]}." if mend else f"{what}.")
        self.what = what
        self.mend = mend


class UnknownModel(ModelError):
    """A model's name that can't be understood."""


class MissingExtra(ModelError):
    """An optional package is not installed; the mend is the exact command that installs it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra {extra!r}", f"install it: `{install_extra(extra)}`")
        self.extra = extra


class MissingKey(ModelError):
    """``variable`` is where the key of ``model`` would be looked for."""

    def __init__(self, model: str, variable: str) -> None:
        super().__init__(f"{model} needs a key, and {variable} is not set", f"set {variable}, or choose another model")
        self.variable = variable


class WeightsError(ModelError):
    """A file of weights: no network, no space, the wrong hash, damaged, not a GGUF, no such name."""
