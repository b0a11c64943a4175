"""`gnnc.loader.NeighborLoader`: PyG's, sampled by compiled code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ....runtime.sampling.sampler import Key, NeighborSampler, Picks, Seeds
from .filtering import filtered
from .graphs import EdgeType, NamedGraph, graph_of
from .loader import Loader
from .seeds import Int64s, input_nodes

Fanouts = Sequence[int] | Mapping[tuple[str, str, str], Sequence[int]]
"""How many edges of a node are taken at each hop: of all relations, or of each."""


class NeighborLoader(Loader):
    """Batches of seeds and what their neighbours send them, as `torch_geometric.loader`'s loader of
    this name makes them: each node is expanded once, at the hop after the one it was met at.

    A batch is a copy of `data` at the sampled nodes and edges, with `n_id`, `e_id`, `input_id`,
    `batch_size`, `num_sampled_nodes`, `num_sampled_edges`, and `batch` and `seed_time` where seeds
    have graphs of their own. Seeds are its first nodes. Random numbers depend on (seed, epoch,
    step, hop, node) alone: not on threads; a node that is a seed twice has the same neighbours both
    times.

    Args:
        data: a `Data` or `HeteroData` with `edge_index`.
        num_neighbors: edges taken of a node at each hop, counted from the seeds; -1 takes all; of a
            `HeteroData` for all relations, or for each in a dictionary.
        input_nodes: node numbers or a mask, None for all; of a `HeteroData` a type of nodes, or a
            pair of it and these.
        input_time: when each of `input_nodes` is looked at, shape (seeds,), integers; by default
            the time of the node.
        replace: whether an edge may be taken more than once.
        subgraph_type: `directional`, or `induced`: all edges between the sampled nodes.
        disjoint: whether each seed has a graph of its own; always where there are times.
        temporal_strategy: `uniform`, or `last`: the latest edges that a seed may see.
        time_attr: the name of times of nodes, or of edges: no seed sees what came after its time.
        weight_attr: the name of weights of edges, in proportion to which these are taken; an edge
            of weight 0 never is.
        is_sorted: has no effect: edges are put in order in linear time.
        filter_per_worker: has no effect: threads share the data.
        arguments: those of `Loader`.

    Raises:
        AttributeError, IndexError, TypeError, ValueError: data or arguments that are none, and
            those that name what is not supported.
    """

    def __init__(
        self,
        data: Any,
        num_neighbors: Fanouts,
        input_nodes: Any = None,
        input_time: Tensor | None = None,
        replace: bool = False,
        subgraph_type: Any = "directional",
        disjoint: bool = False,
        temporal_strategy: str = "uniform",
        time_attr: str | None = None,
        weight_attr: str | None = None,
        is_sorted: bool = False,
        filter_per_worker: bool | None = None,
        **arguments: Any,
    ) -> None:
        self.data, self.num_neighbors, self.input_nodes = data, num_neighbors, input_nodes
        self._names = graph_of(data, weight_attr, time_attr)
        self._type, self._nodes, self._ids = _seeds(data, input_nodes)
        self._induced = _is_induced(subgraph_type)
        self._times = _seed_times(self._names, self._type, self._nodes, input_time, time_attr)
        self.disjoint = disjoint or time_attr is not None
        if self.disjoint and self._induced:
            raise ValueError("subgraph_type='induced' is not supported with disjoint graphs")
        pick = _pick(temporal_strategy, weight_attr, time_attr)
        kinds = {"disjoint": self.disjoint, "induced": self._induced}
        self._sampler = sampler_of(self._names, num_neighbors, replace, pick, **kinds)
        super().__init__(self._nodes.size, **arguments)

    @property
    def splits(self) -> bool:
        """See Loader: where each seed has a graph of its own."""
        return self.disjoint

    def make(self, places: Int64s, key: Key, threads: int | None) -> Any:
        graph, times = self._names, None if self._times is None else self._times[places]
        nodes = tuple(
            self._nodes[places] if t == self._type else np.zeros(0, np.int64)
            for t in graph.node_types
        )
        batch = self._sampler.sample(Seeds(nodes, times=times), key, threads=threads)
        made = filtered(self.data, graph, batch, threads, hops=not self._induced)
        target = made if self._type is None else made[self._type]
        target.input_id = torch.from_numpy(self._ids[places])
        target.seed_time = None if times is None else torch.from_numpy(times)
        target.batch_size = places.size
        return made

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


_seeds = input_nodes  # the argument of the constructor has this name too


def sampler_of(
    names: NamedGraph, num_neighbors: Fanouts, replace: bool, pick: Picks, **options: bool
) -> NeighborSampler:
    """The sampler of a graph with named types; `options` are those of `NeighborSampler`."""
    hops = fanouts(num_neighbors, names.edge_types)
    return NeighborSampler(names.graph, hops, replace=replace, pick=pick, **options)


def fanouts(given: Any, edge_types: tuple[EdgeType, ...]) -> list[list[int]]:
    """Numbers of edges by hop and relation, of a list or a dictionary of lists.

    Raises:
        ValueError: a dictionary without one of the relations, or with hops of different number.
    """
    if hasattr(given, "get_values"):  # PyG's NumNeighbors
        given = given.get_values(None if edge_types == (None,) else list(edge_types))
    if not isinstance(given, Mapping):
        return [[int(k)] * len(edge_types) for k in given]
    if missing := [t for t in edge_types if t not in given]:
        raise ValueError(f"num_neighbors has no numbers for {missing[0]}")
    lists = [list(given[t]) for t in edge_types]
    if len({len(one) for one in lists}) > 1:
        raise ValueError("num_neighbors has different numbers of hops for its relations")
    return [[int(k) for k in hop] for hop in zip(*lists, strict=True)]


def _is_induced(subgraph_type: Any) -> bool:
    name = getattr(subgraph_type, "value", subgraph_type)
    if name not in ("directional", "induced"):
        raise ValueError(
            f"subgraph_type={name!r} is not supported: give 'directional' or 'induced'"
        )
    return name == "induced"


def _pick(strategy: str, weight: str | None, time: str | None) -> Picks:
    if strategy not in ("uniform", "last"):
        raise ValueError(f"temporal_strategy must be 'uniform' or 'last', got {strategy!r}")
    if strategy == "last" and time is not None:
        if weight is not None:
            raise ValueError("temporal_strategy='last' takes no weights: leave out weight_attr")
        return "last"
    return "uniform" if weight is None else "weighted"


def _seed_times(
    names: NamedGraph, name: str | None, nodes: Int64s, given: Tensor | None, attribute: str | None
) -> Int64s | None:
    """When each seed is looked at; None where there are no times."""
    if attribute is None:
        if given is not None:
            raise ValueError("input_time needs time_attr, the times that it is compared with")
        return None
    if given is not None:
        times = given.detach().to("cpu", torch.int64).numpy()
        if times.shape != nodes.shape:
            raise ValueError(
                f"input_time must have shape {nodes.shape}, one for each of input_nodes, "
                f"got {times.shape}"
            )
        return times
    own = names.times[names.node_types.index(name)]
    if own is None:
        raise ValueError(f"seeds have no {attribute!r}: say in input_time when they are looked at")
    return own[nodes]
