"""Names and small helpers that every other file of the package uses."""

from __future__ import annotations

import warnings

ALL = "__ALL__"
"""Stands for all nodes, or all edges, where an argument may name some of them."""

NTYPE = ETYPE = "_TYPE"
"""The feature that holds the number of the type in a graph whose types were merged."""

NID = EID = "_ID"
"""The feature that holds the row which a node or edge had in the graph that this one is from."""

ONE_NTYPE, ONE_ETYPE = "_N", "_E"
"""The types of graphs that have one of each."""


class _Error(Exception):
    """The base of `DGLError` that can be exchanged for the real package's class: Python refuses to
    exchange `Exception` itself."""


class DGLError(_Error):
    """What a caller did wrong: the class that DGL raises."""


class DGLWarning(UserWarning):
    """The class of DGL's warnings."""


def dgl_warning(message: str, category: type[Warning] = DGLWarning, stacklevel: int = 2) -> None:
    """Warns, by default with DGL's class."""
    warnings.warn(message, category=category, stacklevel=stacklevel + 1)


def is_all(arg: object) -> bool:
    """Whether an argument is `ALL`; a tensor never is, and is not compared."""
    return isinstance(arg, str) and arg == ALL


def is_internal_column(name: str) -> bool:
    """Whether a feature is one that the package itself writes."""
    return name in {NTYPE, NID}
