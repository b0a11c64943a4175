"""Message passing: the methods of a graph that compute along its edges."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .base import ALL, EID, NID, DGLError, is_all
from .frames import Rows, checked, write_rows
from .function import is_message, is_reduce
from .messages import (
    Passage,
    applied,
    as_before_without_edges,
    cross_reduce,
    message_passing,
    messages,
    read_together,
)
from .reduce import INFINITY, counts, reduce_messages
from .topology import EType
from .udf import NodeBatch
from .views import Column

if TYPE_CHECKING:
    from .graph import DGLGraph


class Passing:
    """Methods of a graph that run message, reduce and apply functions."""

    def update_all(
        self: DGLGraph,
        message_func: Any,
        reduce_func: Any,
        apply_node_func: Any = None,
        etype: Any = None,
    ) -> None:
        """Sends a message along every edge of a type and sets features of its targets.

        With several edge types and no `etype` both functions must be of `gnnc.dgl.function`, and
        messages of all types are reduced together.
        """
        if etype is None and len(self._topology.relations) > 1:
            self._update_all_types(message_func, reduce_func, apply_node_func)
            return
        found = self._find_etype(etype)
        passage = self._passage(found)
        # DGL's apply functions see infinities, of which the first of their results has none left.
        infinite = apply_node_func is not None and getattr(reduce_func, "name", None) in INFINITY
        results = message_passing(passage, message_func, reduce_func, apply_node_func, infinite)
        for key in list(results)[: int(infinite)]:
            results[key] = results[key].masked_fill(results[key].isinf(), 0)
        self._write_targets(found, None, results)

    def multi_update_all(
        self: DGLGraph,
        etype_dict: dict[Any, tuple[Any, ...]],
        cross_reducer: str | Callable[[list[Tensor]], Tensor],
        apply_node_func: Any = None,
    ) -> None:
        """`update_all` for several edge types, whose results are joined at each node type.

        `etype_dict` has a pair of message and reduce functions for each edge type, or these and an
        apply function. Results of `stack` are in the order of the graph's types.
        """
        functions: dict[EType, tuple[Any, Any, Any]] = {}
        for etype, given in etype_dict.items():
            if not isinstance(given, tuple) or len(given) not in (2, 3):
                raise DGLError(
                    f'Invalid arguments for edge type "{etype}". Should be '
                    "(msg_func, reduce_func, [apply_node_func])"
                )
            functions[self._find_etype(etype)] = (*given, None)[:3]
        order = [e for e in self._topology.relations if e in functions]
        if cross_reducer != "stack":
            order = list(functions)
        # DGL leaves infinities out where the last reduce function has made some.
        last = list(functions.values())[-1:]
        finite = any(getattr(reduce, "name", None) in INFINITY for _, reduce, _ in last)
        results: dict[str, list[dict[str, Tensor]]] = {}
        for etype in order:
            # A type without an edge to a node must not win against another with a negative maximum.
            made = message_passing(self._passage(etype), *functions[etype], infinite=True)
            results.setdefault(etype[2], []).append(made)
        for ntype, parts in results.items():
            etype = next(e for e in functions if e[2] == ntype)
            joined = cross_reduce(parts, cross_reducer)
            if finite:
                joined = {key: v.masked_fill(v.isinf(), 0) for key, v in joined.items()}
            self._write_targets(etype, None, joined)
            if apply_node_func is not None:
                self._apply_to_nodes(apply_node_func, ntype, "dst", None)

    def apply_edges(self: DGLGraph, func: Any, edges: Any = ALL, etype: Any = None) -> None:
        """Sets features of edges, of all or of `edges` (ids, or a pair of ends)."""
        if etype is None and len(self._topology.relations) > 1:
            if not is_message(func):
                raise DGLError(
                    "User defined functions are not yet supported in apply_edges for "
                    "heterogeneous graphs. Please use (apply_edges(func), etype = rel) instead."
                )
            if not is_all(edges):
                raise DGLError("apply_edges(edges=..) needs etype= in a graph of several types")
            passages = [self._passage(found) for found in self.canonical_etypes]
            if func.name != "copy_e":  # whose results are the features themselves
                passages = read_together(passages, func)
            for passage in passages:
                view = self._edge_view(passage.etype)
                for key, value in messages(passage, func).items():
                    view[key] = value
            return
        found = self._find_etype(etype)
        ids = None if is_all(edges) else self._edge_ids(edges, found)
        self._apply_to_edges(func, found, ids)

    def apply_nodes(self: DGLGraph, func: Any, v: Any = ALL, ntype: str | None = None) -> None:
        """Sets features of the nodes `v` to what a function makes of their features."""
        self._apply_to_nodes(func, ntype, "any", None if is_all(v) else self._ids(v, "v"))

    def send_and_recv(
        self: DGLGraph,
        edges: Any,
        message_func: Any,
        reduce_func: Any,
        apply_node_func: Any = None,
        etype: Any = None,
    ) -> None:
        """`update_all` along some edges (ids, or a pair of ends) only, and for their targets."""
        found = self._find_etype(etype)
        ids = self._edge_ids(edges, found)
        if ids.shape[0] == 0:
            return
        self._send(self._part(found, ids), (message_func, reduce_func, apply_node_func))

    def pull(
        self: DGLGraph,
        v: Any,
        message_func: Any,
        reduce_func: Any,
        apply_node_func: Any = None,
        etype: Any = None,
    ) -> None:
        """`update_all` for the targets `v` only.

        Those without an edge get zeros, but infinities of max and min.
        """
        found = self._find_etype(etype)
        nodes = self._ids(v, "v", self._topology.targets[found[2]])
        if nodes.shape[0] == 0:
            return
        wanted = counts(nodes, self._topology.targets[found[2]]) > 0
        part = self._part(found, _edges_at(self._topology.relations[found].dst, wanted))
        part.counted = False
        self._receive(part, wanted, (message_func, reduce_func, apply_node_func))

    def push(
        self: DGLGraph,
        u: Any,
        message_func: Any,
        reduce_func: Any,
        apply_node_func: Any = None,
        etype: Any = None,
    ) -> None:
        """`send_and_recv` along the edges that leave the nodes `u`."""
        found = self._find_etype(etype)
        nodes = self._ids(u, "u", self._topology.sources[found[0]])
        if nodes.shape[0] == 0:
            return
        sending = counts(nodes, self._topology.sources[found[0]]) > 0
        ids = _edges_at(self._topology.relations[found].src, sending)
        if not torch.compiler.is_dynamo_compiling() and ids.shape[0] == 0:
            return
        part = self._part(found, ids)
        part.counted = False
        self._send(part, (message_func, reduce_func, apply_node_func))

    def prop_nodes(
        self: DGLGraph,
        nodes_generator: Iterable[Any],
        message_func: Any,
        reduce_func: Any,
        apply_node_func: Any = None,
        etype: Any = None,
    ) -> None:
        """`pull` for one group of nodes after the other."""
        for nodes in nodes_generator:
            self.pull(nodes, message_func, reduce_func, apply_node_func, etype)

    def prop_edges(
        self: DGLGraph,
        edges_generator: Iterable[Any],
        message_func: Any,
        reduce_func: Any,
        apply_node_func: Any = None,
        etype: Any = None,
    ) -> None:
        """`send_and_recv` along one group of edges after the other."""
        for edges in edges_generator:
            self.send_and_recv(edges, message_func, reduce_func, apply_node_func, etype)

    # how

    def _passage(self: DGLGraph, etype: EType) -> Passage:
        """All edges of a type. Ids that a subgraph keeps of its parent are what functions see."""
        relation = self._topology.relations[etype]
        targets, rows, _ = self._column(etype)
        edges = self._edge_frames[etype]

        def nodes() -> Tensor:
            return targets[NID] if NID in targets else self._typed_ids(rows)

        def ids() -> tuple[Tensor, Tensor, Tensor]:
            count = relation.src.shape[0]
            eids = edges[EID] if EID in edges else self._typed_ids(count)
            return (*self._typed(relation.src, relation.dst), eids)

        sources = self._source_frames[etype[0]]
        src, dst = relation.src, relation.dst
        return Passage(etype, src, dst, rows, sources, targets, edges, nodes, ids)

    def _part(self: DGLGraph, etype: EType, eids: Tensor) -> Passage:
        """Some edges of a type, with all targets as rows."""
        relation = self._topology.relations[etype]
        targets, rows, _ = self._column(etype)
        src, dst = relation.src.index_select(0, eids), relation.dst.index_select(0, eids)
        edges = Rows(self._edge_frames[etype], eids)
        return Passage(
            etype,
            src,
            dst,
            rows,
            self._source_frames[etype[0]],
            targets,
            edges,
            lambda: self._typed_ids(rows),
            lambda: self._typed(src, dst, eids),
        )

    def _send(self: DGLGraph, part: Passage, functions: tuple[Any, ...]) -> None:
        """Message passing along some edges, for all of their targets."""
        self._receive(part, counts(part.dst, part.num_dst) > 0, functions)

    def _receive(self: DGLGraph, part: Passage, wanted: Tensor, functions: tuple[Any, ...]) -> None:
        """Message passing along some edges, whose targets are all among those that `wanted`, a
        bool a node, says; only these are given to the apply function and written."""
        message, reduce, apply = functions
        reduced = message_passing(part, message, reduce, infinite=True)
        if not part.counted and not is_reduce(reduce) and torch.compiler.is_dynamo_compiling():
            reduced = as_before_without_edges(part, reduced)
        nodes = wanted.nonzero().flatten()
        results = {key: value.index_select(0, nodes) for key, value in reduced.items()}
        part.targets, part.nodes = Rows(part.targets, nodes), lambda: self._typed(nodes)[0]
        self._write_targets(part.etype, nodes, applied(part, apply, results))

    def _apply_to_edges(self: DGLGraph, func: Any, etype: EType, eids: Tensor | None) -> None:
        if eids is None:
            part = self._passage(etype)
            src, dst = self._topology.relations[etype].src, self._topology.relations[etype].dst
            part.ids = lambda: (*self._typed(src, dst), self._typed_ids(src.shape[0]))
        else:
            part = self._part(etype, eids)
        view = self._edge_view(etype, eids)
        for key, value in messages(part, func).items():
            view[key] = value

    def _apply_to_nodes(
        self: DGLGraph, func: Any, ntype: str | None, side: str, ids: Tensor | None
    ) -> None:
        column, name = self._nodes_of(ntype, side), self._find_ntype(ntype, side)[0]
        told = self._typed_ids(column.rows) if ids is None else self._typed(ids)[0]
        results = func(NodeBatch(told, name, Rows(column.frame, ids)))
        self._write(column, ids, results)

    def _update_all_types(self: DGLGraph, message: Any, reduce: Any, apply: Any) -> None:
        if not is_message(message) or not is_reduce(reduce):
            raise DGLError(
                "User defined functions are not yet supported in update_all for heterogeneous "
                "graphs. Please use multi_update_all instead."
            )
        if reduce.name == "mean" or apply is not None:
            raise NotImplementedError(
                f"update_all({message}, {reduce}, apply_node_func={apply}) of all edge types has "
                "neither mean nor apply_node_func. Please use multi_update_all instead."
            )
        sent: dict[str, list[Tensor]] = {}
        index: dict[str, list[Tensor]] = {}
        passages = [self._passage(etype) for etype in self.canonical_etypes]
        for passage in read_together(passages, message):
            ntype = passage.etype[2]
            sent.setdefault(ntype, []).append(messages(passage, message)[reduce.msg_field])
            index.setdefault(ntype, []).append(passage.dst)
        for ntype, parts in sent.items():
            column = self._nodes_of(ntype, "dst")
            joined = torch.cat(parts), torch.cat(index[ntype])
            result = reduce_messages(*joined, column.rows, reduce.name)
            self._write(column, None, {reduce.out_field: result})

    def _column(self: DGLGraph, etype: EType) -> Column:
        return self._column_at(etype[2], at_target=True)

    def _write_targets(
        self: DGLGraph, etype: EType, nodes: Tensor | None, results: dict[str, Tensor]
    ) -> None:
        self._write(self._column(etype), nodes, results)

    def _write(
        self: DGLGraph, column: Column, ids: Tensor | None, results: dict[str, Tensor]
    ) -> None:
        frame, rows, initializers = column
        given = rows if ids is None else ids.shape[0]
        for key, value in results.items():
            value = checked(key, value, given, self.device, "node")
            if ids is None:
                frame[key] = value
            else:
                write_rows(frame, key, ids, value, rows, initializers)


def _edges_at(ends: Tensor, nodes: Tensor) -> Tensor:
    """Ids of the edges whose end is one that `nodes`, a bool a node, says, in ascending order."""
    return nodes.index_select(0, ends).nonzero().flatten()
