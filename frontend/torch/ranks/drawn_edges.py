"""Edges that a model draws of those of a graph that is cut: each rank keeps those of its own that
one process would keep, and they are known as the edges of a part are.

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
from ..importer.memory.effects import EDGE_DROPOUT, call_of
from . import cut_tensors
from .cut_tensors import CutTensor, EdgePart

BLOCK = 1 << 20
"""Numbers that are in memory at once."""


@dataclass(frozen=True)
class Draw:
    """A `dropout_edge` of the edges in a placeholder: which of its results, the edges (0) and their
    mask (1), are arguments."""

    placeholder: int
    p: float
    results: tuple[int, ...]


def apart(graph: fx.GraphModule) -> tuple[fx.GraphModule, list[Draw]]:
    """A graph without what draws edges, which has the results as placeholders behind its others.

    Raises:
        Unsupported: edges are drawn of some that the graph has made.
    """
    if not any(call_of(node).op == EDGE_DROPOUT for node in graph.graph.nodes):
        return graph, []
    meta = graph.meta
    graph = fx.GraphModule(graph, copy.deepcopy(graph.graph))  # Dynamo reads its own again
    graph.meta = meta
    placeholders = graph.graph.find_nodes(op="placeholder")
    draws: list[Draw] = []
    last = placeholders[-1] if placeholders else None
    for node in list(graph.graph.nodes):
        call = call_of(node)
        if call.op != EDGE_DROPOUT:
            continue
        edges, p = call.arguments["edge_index"], call.arguments["p"]
        if edges not in placeholders:
            raise Unsupported(
                node,
                "over several ranks edges are dropped of those that gnnc.distribute returned, as "
                "they are: which are whose is known of these alone",
            )
        users = list(node.users)
        assert all(u.target is operator.getitem for u in users)
        results = tuple(sorted({int(u.args[1]) for u in users}))
        for k in results:
            mine = [u for u in users if u.args[1] == k]
            with graph.graph.inserting_after(last):
                last = graph.graph.placeholder(f"{node.name}_{k}")
            last.meta = dict(mine[0].meta)
            for user in mine:
                user.replace_all_uses_with(last)
                graph.graph.erase_node(user)
        graph.graph.erase_node(node)
        draws.append(Draw(placeholders.index(edges), float(p), results))
    graph.recompile()
    return graph, draws


def before(run: Callable[..., Any], draws: Sequence[Draw]) -> Callable[..., Any]:
    """`run` with the results of draws as its last arguments."""

    def drawn(*args: Any) -> Any:
        more: list[Tensor] = []
        for draw in draws:
            made = dropout_edge(args[draw.placeholder], draw.p)
            more += [made[k] for k in draw.results]
        return run(*args, *more)

    return drawn


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
