"""Edges that a model draws of those of a graph that is cut, or beside them: each rank keeps of its
own those that one process would keep, and they are known as the edges of a part are.

All ranks draw a number for each edge of the whole graph, from random numbers that are the same on
all of them (`gnnc.distribute` has made them so), and look at those of their own. That is done
before a program runs, which gets the edges as arguments.
"""

from __future__ import annotations

import copy
import operator
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx

from ....runtime.ranks.world import world
from ..importer.errors import Unsupported
from ..importer.memory.effects import EDGE_DROPOUT, NEGATIVE_SAMPLING, call_of
from . import cut_tensors
from .cut_tensors import CutTensor, EdgePart, NodePart
from .drawn_pairs import negative_sampling
from .graph_sizes import Size, Sizes, of_all

BLOCK = 1 << 20
"""Numbers that are in memory at once."""


@dataclass(frozen=True)
class Draw:
    """A `dropout_edge` of the edges in a placeholder. Arguments are what it keeps of the `rows` in
    other placeholders, and behind these which of its `results`, the edges (0) and their mask (1),
    the graph takes."""

    placeholder: int
    p: float
    rows: tuple[int, ...]
    results: tuple[int, ...]

    def given(self, args: Sequence[Any], known: list[NodePart]) -> list[Tensor]:
        """The arguments that it makes of those of a call, whose earlier draws have made parts."""
        edges = args[self.placeholder]
        made = dropout_edge(edges, self.p)
        rows = [kept_rows(args[i], edges, *made) for i in self.rows]
        return [*rows, *(made[k] for k in self.results)]


@dataclass(frozen=True)
class PairsDraw:
    """A `negative_sampling` of the edges in a placeholder, of so many nodes, and for so many pairs;
    its result is an argument."""

    placeholder: int
    nodes: tuple[Size, ...]
    number: Size
    both: bool

    def given(self, args: Sequence[Any], known: list[NodePart]) -> list[Tensor]:
        """See `Draw`."""
        nodes = [of_all(n, args) for n in self.nodes]
        number = of_all(self.number, args)
        made = negative_sampling(args[self.placeholder], nodes, number, known, self.both)
        known.append(cut_tensors.edges_of(made, "made").source)
        return [made]


AnyDraw = Draw | PairsDraw


def apart(graph: fx.GraphModule) -> tuple[fx.GraphModule, list[AnyDraw]]:
    """A graph without what draws edges, or pairs that are none, and without what chooses rows of
    these, which has the results as placeholders behind its others.

    Raises:
        Unsupported: edges, or rows of them, are drawn of some that the graph has made.
    """
    if not any(call_of(node).op in DRAWN for node in graph.graph.nodes):
        return graph, []
    meta = graph.meta
    graph = fx.GraphModule(graph, copy.deepcopy(graph.graph))  # Dynamo reads its own again
    graph.meta = meta
    taken = _Taken(graph.graph)
    drawing = [(n, call_of(n).op) for n in graph.graph.nodes if call_of(n).op in DRAWN]
    draws = [taken.draw(n) if op == EDGE_DROPOUT else taken.pairs(n) for n, op in drawing]
    graph.recompile()
    return graph, draws


DRAWN = (EDGE_DROPOUT, NEGATIVE_SAMPLING)


class _Taken:
    """What is taken out of a graph."""

    def __init__(self, graph: fx.Graph) -> None:
        self.graph = graph
        self.placeholders = graph.find_nodes(op="placeholder")
        self.last = self.placeholders[-1]
        self.sizes = Sizes(self.placeholders)

    def pairs(self, node: fx.Node) -> PairsDraw:
        """Takes out what draws pairs that are no edges."""
        arguments = call_of(node).arguments
        edges = arguments["edge_index"]
        if edges not in self.placeholders:
            raise Unsupported(node, f"over several ranks pairs are drawn beside {_RETURNED}")
        nodes = tuple(self.sizes.of(node, n) for n in arguments["nodes"])
        number = self.sizes.of(node, arguments["number"])
        self._given([node])
        return PairsDraw(self.placeholders.index(edges), nodes, number, bool(arguments["both"]))

    def draw(self, node: fx.Node) -> Draw:
        call = call_of(node)
        edges = call.arguments["edge_index"]
        if edges not in self.placeholders:
            raise Unsupported(node, f"over several ranks edges are dropped of {_RETURNED}")
        results = {
            k: [n for n in node.users if n.target is operator.getitem and n.args[1] == k]
            for k in (0, 1)
        }
        rows: dict[fx.Node, list[fx.Node]] = {}
        for mask in results[1]:
            for user in [u for u in mask.users if u.op != "output"]:
                x = user.args[0] if user.target is operator.getitem else None
                if not isinstance(x, fx.Node) or x not in self.placeholders:
                    raise Unsupported(user, f"over several ranks a mask of edges is of {_RETURNED}")
                rows.setdefault(x, []).append(user)
        for users in rows.values():
            self._given(users)
        kept = tuple(k for k, users in results.items() if any(u.users for u in users))
        for k, users in results.items():
            if k in kept:
                self._given(users)
            else:
                for user in users:
                    self.graph.erase_node(user)
        self.graph.erase_node(node)
        places = tuple(map(self.placeholders.index, rows))
        return Draw(self.placeholders.index(edges), float(call.arguments["p"]), places, kept)

    def _given(self, nodes: Sequence[fx.Node]) -> None:
        """Nodes of one value as one more placeholder."""
        with self.graph.inserting_after(self.last):
            self.last = self.graph.placeholder(f"{nodes[0].name}_drawn")
        self.last.meta = dict(nodes[0].meta)
        for node in nodes:
            node.replace_all_uses_with(self.last)
            self.graph.erase_node(node)


_RETURNED = "those that gnnc.distribute returned, as they are: which are whose is known of these"


def before(run: Callable[..., Any], draws: Sequence[AnyDraw]) -> Callable[..., Any]:
    """`run` with the results of draws as its last arguments, or as it is where there are none."""
    if not draws:
        return run

    def drawn(*args: Any) -> Any:
        known: list[NodePart] = []
        return run(*args, *(x for draw in draws for x in draw.given(args, known)))

    return drawn


def kept_rows(x: Tensor, edge_index: Tensor, made: Tensor, mask: Tensor) -> Tensor:
    """The rows `x[mask]` of edges, of which `dropout_edge` has made others.

    Raises:
        ValueError: they are not the rows of these edges.
    """
    known, edges = cut_tensors.of(x), cut_tensors.edges_of(edge_index, "edge_index")
    if known is None or known.kind != "edges" or known.part is not edges:
        raise ValueError(
            "the mask of dropout_edge chooses rows of a tensor that are not those that "
            "gnnc.distribute returned for these edges"
        )
    part, rows = cut_tensors.edges_of(made, "made"), x[mask]
    cut_tensors.note(rows, CutTensor("edges", part, (part.total, *known.shape[1:])))
    return rows


def dropout_edge(edge_index: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """What `torch_geometric.utils.dropout_edge` gives, of the edges of one rank: those that are
    kept with probability 1 - p, int [2, kept] in their order, and the mask of them, bool [edges].
    Each is kept on its rank where one process with these random numbers keeps it.

    Raises:
        ValueError: the tensor has not the edges of a part.
        Disagreement: ranks have drawn other numbers before, and so do now.
    """
    edges = cut_tensors.edges_of(edge_index, "edge_index")
    of_all = kept_of(edges.total, p)
    mask = of_all[edges.numbers]
    stops = tuple(accumulate(int(np.count_nonzero(mask[run])) for run in edges.runs))
    places = np.cumsum(of_all) - 1  # the numbers among those that are kept
    total = int(np.count_nonzero(of_all))
    world().agree("the edges that are drawn", f"{total} of {edges.total}, {_digest(of_all)}")
    part = EdgePart(edges.source, edges.target, stops, places[edges.numbers[mask]], total)
    chosen = torch.from_numpy(mask)
    made = edge_index[:, chosen].contiguous()
    cut_tensors.note(made, CutTensor("index", part, (2, total)))
    cut_tensors.note(chosen, CutTensor("edges", edges, (edges.total,)))
    return made, chosen


def kept_of(count: int, p: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which of so many edges are kept, bool [count], as one `torch.rand(count) >= p` says."""
    keep = np.empty(count, np.bool_)
    for first in range(0, count, BLOCK):
        block = keep[first : first + BLOCK]
        block[:] = (uniform(len(block)) >= p).numpy()
    return keep


def _digest(mask: np.ndarray[Any, np.dtype[np.bool_]]) -> int:
    """A number that masks of other edges hardly share."""
    return zlib.crc32(mask.view(np.uint8))


def uniform(count: int) -> Tensor:
    """Random numbers in [0, 1), float32 [count]."""
    return torch.rand(count)
