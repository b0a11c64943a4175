"""The importer's third stage: what each call means, a function under the name of its op.

In goes a call with evaluated arguments (`Call`), out come values, and those of tensors that it
edits. `RULES` is the one table of rules: those of torch's ops stand here, a file for each family,
those of a library's leaves beside the leaves (`libraries/`), which enter them.
"""

from . import (  # noqa: F401
    activations,
    arithmetic,
    assignments,
    attention,
    constants,
    copies,
    indexing,
    joins,
    layers,
    logic,
    losses,
    margins,
    normalisations,
    norms,
    recurrent,
    reductions,
    running,
    scatters,
    shapes,
)
from .registry import RULES, Call

__all__ = ["RULES", "Call"]
