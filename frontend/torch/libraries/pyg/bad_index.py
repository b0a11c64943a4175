"""An index out of range in code of PyG's, which eagerly makes an exception of its own of torch's.

A graph that runs in torch has PyG's calls without the `try` around them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from torch import fx

from ...importer.calls.canonical import canonical

_READING = ("index", "gather", "scatter")
_BAD_INDEX = re.compile(r"\bindex\b.* out of (bounds|range)|indexing axis dim should be positive")
"""What torch says of one in its RuntimeErrors."""


class IndexOutOfRange(IndexError, RuntimeError, ValueError):
    """An index out of range where torch raises a RuntimeError in code of PyG's. That makes an
    IndexError of it in messages and a ValueError in aggregations: it is whatever callers expect."""


def reads_in_pyg(node: fx.Node) -> bool:
    """Whether a node reads or writes rows by an index, in code of PyG's."""
    if "torch_geometric" not in node.meta.get("stack_trace", ""):
        return False
    call = canonical(node)
    return call is not None and call.op.startswith(_READING)


def as_in_pyg(graph: fx.GraphModule, run: Callable[..., Any]) -> Callable[..., Any]:
    """`run`, which runs nodes of `graph` in torch; what they raise at an index is what PyG would
    raise."""
    if not any(map(reads_in_pyg, graph.graph.nodes)):
        return run

    def raising(*args: Any) -> Any:
        try:
            return run(*args)
        except RuntimeError as error:
            if type(error) is not RuntimeError or not _BAD_INDEX.search(str(error)):
                raise
            raise IndexOutOfRange(str(error)) from error

    return raising
