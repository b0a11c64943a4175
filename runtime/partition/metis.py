"""Assignments by METIS, where pymetis is installed.

G. Karypis, V. Kumar, *A Fast and High Quality Multilevel Scheme for Partitioning Irregular Graphs*,
SIAM J. Sci. Comput. 1998, and *Multilevel k-way Partitioning Scheme for Irregular Graphs*, J.
Parallel Distrib. Comput. 1998. Its vertices weigh what a node costs, so that work is balanced and
not the number of nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from .edges import Int32
from .graph import Graph


class MetisFailed(RuntimeError):
    """METIS gave up: it had no memory, or did not like its input. It prints what it knows."""


_MOST = 2**31 - 1
_FEWEST = 10
"""Nodes a part. Of fewer METIS leaves parts empty, and says so on standard output."""
_HEAVIEST = 1000
"""The greatest weight of an edge, which METIS has as integers."""


def why_not(graph: Graph, parts: int) -> str | None:
    """Why METIS cannot cut the graph; None where it can."""
    if find_spec("pymetis") is None:
        return "pymetis is not installed (pip install gnnc[mpi])"
    if graph.nodes < _FEWEST * parts:
        return f"METIS is for parts of {_FEWEST} nodes and more"
    if graph.neighbours.nnz > _MOST:
        return "METIS counts in int32, and the graph is larger"
    return None


def recursive(graph: Graph, parts: int, limit: float, seed: int) -> Int32:
    """Recursive bisection that minimizes cut edges. As for all here, `why_not` must be None."""
    return _cut(
        graph, parts, None, recursive=True, ncuts=3, ufactor=_tolerance(limit, 0.2), seed=seed
    )


def weighted(graph: Graph, parts: int, limit: float, seed: int) -> Int32:
    """The same, where the edges to a node's readers weigh 1 together: a row that is read by many in
    one part is received once, so to cut one edge of many is cheap.
    """
    readers = np.maximum(np.diff(graph.readers.indptr), 1)
    share = graph.readers.astype(np.float64)
    share.data /= np.repeat(readers, np.diff(share.indptr))
    share = (share + share.T).tocsr()
    share.sort_indices()
    most = float(share.data.max(initial=1.0))
    weights = np.maximum(share.data * (_HEAVIEST / most), 1).astype(np.int32)
    return _cut(
        graph, parts, weights, recursive=True, ncuts=3, ufactor=_tolerance(limit, 0.2), seed=seed
    )


def k_way(graph: Graph, parts: int, limit: float, seed: int) -> Int32:
    """All parts at once, minimizing the communication volume of the undirected graph."""
    volume = 1  # METIS_OBJTYPE_VOL, which pymetis does not name in every release
    return _cut(
        graph,
        parts,
        None,
        recursive=False,
        objtype=volume,
        ufactor=_tolerance(limit, 0.7),
        seed=seed,
    )


def default(graph: Graph, parts: int, limit: float, seed: int) -> Int32:
    """What METIS does without being told anything: nodes are balanced, whatever their work."""
    import pymetis

    return _owners(lambda: pymetis.part_graph(parts, _adjacency(graph)))


def balanced(graph: Graph, parts: int, limit: float, seed: int) -> Int32:
    """The same with the work of nodes as their weights."""
    import pymetis

    work = _weights(graph)
    return _owners(lambda: pymetis.part_graph(parts, _adjacency(graph), vweights=work))


def _tolerance(limit: float, share: float) -> int:
    """METIS's ufactor for a share of a limit, for recursive bisection that of one cut of several;
    the moves that follow need some room."""
    return max(1, int(share * (limit - 1) * 1000))


def _adjacency(graph: Graph) -> Any:
    import pymetis

    dtype = pymetis.zero_copy_dtype()
    matrix = graph.neighbours
    return pymetis.CSRAdjacency(matrix.indptr.astype(dtype), matrix.indices.astype(dtype))


def _weights(graph: Graph) -> Any:
    """The work of nodes in units so large that METIS can add it up."""
    import pymetis

    unit = int(graph.work.sum()) // (_MOST // 2) + 1
    return np.maximum(graph.work // unit, 1).astype(pymetis.zero_copy_dtype())


def _cut(graph: Graph, parts: int, weights: Any, *, recursive: bool, **options: int) -> Int32:
    import pymetis

    return _owners(
        lambda: pymetis.part_graph(
            parts,
            _adjacency(graph),
            vweights=_weights(graph),
            eweights=weights,
            recursive=recursive,
            options=pymetis.Options(**options),
        )
    )


def _owners(cut: Callable[[], Any]) -> Int32:
    try:
        return np.array(cut().vertex_part, np.int32)
    except RuntimeError as error:  # whatever METIS has come upon
        raise MetisFailed(f"METIS failed: {error}") from error
