"""`dgl.ops`: functions of a graph and tensors, without features of the graph.

`u_mul_e(g, x, y)` and its kin give a row an edge, `u_mul_e_sum(g, x, y)` and its kin a row a
target. In a graph of several edge types, operands are dicts: of nodes by node type, of edges by
canonical type; so are results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .base import ALL, DGLError, is_all
from .function import OPERATIONS, REDUCERS
from .messages import combine
from .one_node import one_node
from .reduce import reduce_messages, softmax_by, without_messages
from .segments import gather_mm, segment_mm, segment_reduce, segment_softmax
from .topology import EType

if TYPE_CHECKING:
    from .graph import DGLGraph

__all__ = [
    "copy_e",
    "copy_u",
    "copy_v",
    "edge_softmax",
    "gather_mm",
    "gsddmm",
    "gspmm",
    "segment_mm",
    "segment_reduce",
    "segment_softmax",
]


def gsddmm(
    g: DGLGraph,
    op: str,
    lhs_data: Any,
    rhs_data: Any,
    lhs_target: str = "u",
    rhs_target: str = "v",
) -> Any:
    """A row an edge: `op` of the operands at its ends, or of the edge itself.

    `op` is add, sub, mul, div, dot, copy_lhs or copy_rhs; targets are `u`, `v` or `e`.
    """
    results = _edge_values(g, op, (lhs_data, lhs_target), (rhs_data, rhs_target))
    return results if len(results) > 1 else next(iter(results.values()))


def gspmm(g: DGLGraph, op: str, reduce_op: str, lhs_data: Any, rhs_data: Any) -> Any:
    """A row a target: messages `op` of sources (`lhs_data`) and edges, reduced by `reduce_op`.

    Targets that no edge leads to have zeros, but infinities of max and min. With several edge
    types, messages of all types that lead to a node are reduced together.
    """
    topology = g._topology
    sent: dict[str, list[Tensor]] = {}
    index: dict[str, list[Tensor]] = {}
    for etype, value in _edge_values(g, op, (lhs_data, "u"), (rhs_data, "e")).items():
        sent.setdefault(etype[2], []).append(value)
        index.setdefault(etype[2], []).append(topology.relations[etype].dst)
    results: dict[str, Tensor] = {}
    for ntype, values in sent.items():
        to = _joined(index[ntype])
        reduced = reduce_messages(_joined(values), to, topology.targets[ntype], reduce_op)
        results[ntype] = without_messages(reduced, to, reduce_op)
    return results if len(topology.relations) > 1 else next(iter(results.values()))


def _joined(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _edge_values(
    g: DGLGraph, op: str, lhs: tuple[Any, str], rhs: tuple[Any, str]
) -> dict[EType, Tensor]:
    """`op` of the operands, data with a target each, a row an edge of each type."""
    sides = {"copy_lhs": (lhs,), "copy_rhs": (rhs,)}.get(op, (lhs, rhs))
    etypes = g.canonical_etypes
    given = [_operand(g, etype, *side) for etype in etypes for side in sides]
    if len(etypes) > 1:
        given = one_node(given)
    results: dict[EType, Tensor] = {}
    for i, etype in enumerate(etypes):
        mine = given[i * len(sides) : (i + 1) * len(sides)]
        ends = g._topology.relations[etype]
        read = [
            value if side == "e" else value.index_select(0, ends.src if side == "u" else ends.dst)
            for value, (_, side) in zip(mine, sides, strict=True)
        ]
        results[etype] = read[0] if len(read) == 1 else combine(op, read[0], read[1])
    return results


def _operand(g: DGLGraph, etype: EType, data: Any, target: str) -> Tensor:
    """The rows of sources, targets or edges of a type."""
    if target not in ("u", "v", "e"):
        raise DGLError(f"the target of an operand is 'u', 'v' or 'e', got {target!r}")
    if target == "e":
        return data[etype] if isinstance(data, dict) else data
    at_source = target == "u"
    if isinstance(data, dict):
        return data[etype[0] if at_source else etype[2]]
    if isinstance(data, tuple):  # features of sources and of targets, as layers pass them
        return data[0 if at_source else 1]
    return data


def copy_u(g: DGLGraph, x: Any) -> Any:
    """Rows of the sources `x`, one an edge."""
    return gsddmm(g, "copy_lhs", x, None)


def copy_v(g: DGLGraph, x: Any) -> Any:
    """Rows of the targets `x`, one an edge."""
    return gsddmm(g, "copy_rhs", None, x)


def copy_e(g: DGLGraph, x: Any) -> Any:
    """Rows of the edges, `x` itself."""
    return x


def edge_softmax(graph: DGLGraph, logits: Any, eids: Any = ALL, norm_by: str = "dst") -> Any:
    """Softmax over the edges that lead to the same target, or leave the same source (`src`).

    `logits` is `(edges, ..)`, or of the edges `eids`, and so is the result; with several edge
    types both are dicts by type, and edges of all types to a node are normalised together.
    """
    if norm_by not in ("src", "dst"):
        raise DGLError(f"norm_by must be 'src' or 'dst', got {norm_by!r}")
    etypes = graph.canonical_etypes
    if len(etypes) == 1:
        relation = graph._topology.relations[etypes[0]]
        index = relation.dst if norm_by == "dst" else relation.src
        if not is_all(eids):
            # Here DGL itself takes ids of either dtype.
            index = index.index_select(0, torch.as_tensor(eids, device=index.device).long())
        return softmax_by(logits, index, _ends(graph, etypes[0], norm_by)[1])
    if not is_all(eids):
        raise NotImplementedError(
            "edge_softmax(eids=..) of a graph of several edge types. Call it for the edges of one "
            "type, edge_softmax(graph[etype], logits, eids), or take an edge_subgraph first."
        )
    given = {graph.to_canonical_etype(etype): value for etype, value in logits.items()}
    logits = dict(zip(given, one_node(list(given.values())), strict=True))
    results: dict[EType, Tensor] = {}
    for ntype in dict.fromkeys(_ends(graph, e, norm_by)[0] for e in etypes):
        these = [e for e in etypes if _ends(graph, e, norm_by)[0] == ntype and e in logits]
        relations = [graph._topology.relations[e] for e in these]
        index = torch.cat([r.dst if norm_by == "dst" else r.src for r in relations])
        joined = torch.cat([logits[e] for e in these])
        scores = softmax_by(joined, index, _ends(graph, these[0], norm_by)[1])
        results.update(zip(these, scores.split([r.src.shape[0] for r in relations]), strict=True))
    return results


def _ends(graph: DGLGraph, etype: EType, norm_by: str) -> tuple[str, int]:
    """The node type over which edges are normalised, and its number of nodes."""
    topology = graph._topology
    if norm_by == "dst":
        return etype[2], topology.targets[etype[2]]
    return etype[0], topology.sources[etype[0]]


def _per_edge(lhs: str, operation: str, rhs: str) -> Callable[[DGLGraph, Any, Any], Any]:
    def function(g: DGLGraph, x: Any, y: Any) -> Any:
        return gsddmm(g, operation, x, y, lhs, rhs)

    function.__doc__ = f"`{lhs} {operation} {rhs}`, one row an edge."
    return _named(function, f"{lhs}_{operation}_{rhs}")


def _per_target(operation: str, reducer: str) -> Callable[[DGLGraph, Any, Any], Any]:
    def function(g: DGLGraph, x: Any, y: Any) -> Any:
        return gspmm(g, operation, reducer, x, y)

    function.__doc__ = f"The {reducer} of messages `u {operation} e`, one row a target."
    return _named(function, f"u_{operation}_e_{reducer}")


def _copied(target: str, reducer: str) -> Callable[[DGLGraph, Any], Any]:
    def function(g: DGLGraph, x: Any) -> Any:
        if target == "u":
            return gspmm(g, "copy_lhs", reducer, x, None)
        return gspmm(g, "copy_rhs", reducer, None, x)

    function.__doc__ = f"The {reducer} of messages `{target}`, one row a target."
    return _named(function, f"copy_{target}_{reducer}")


def _named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    __all__.append(name)
    return function


for _operation in OPERATIONS:
    for _lhs in "uve":
        for _rhs in "uve":
            if _lhs != _rhs:
                _made = _per_edge(_lhs, _operation, _rhs)
                globals()[_made.__name__] = _made
for _reducer in REDUCERS:
    for _operation in OPERATIONS[:-1]:
        _made = _per_target(_operation, _reducer)
        globals()[_made.__name__] = _made
    for _target in "ue":
        _made = _copied(_target, _reducer)
        globals()[_made.__name__] = _made
