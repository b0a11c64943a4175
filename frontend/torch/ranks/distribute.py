"""`gnnc.distribute`: a model and a graph on several ranks."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ....runtime.partition import assign, edges, parts
from ....runtime.ranks.communicator import Communicator
from ....runtime.ranks.world import world
from ...compiler import Options
from . import batch_sizes, cut_tensors, remote_reads, same_code
from .cut_tensors import CutTensor
from .features_of_all import with_shares
from .partition_folder import PartitionFolder, index_of
from .sharded import Table, shard, tables_of
from .typed_parts import EdgesOfType, TypedParts, together

PARTITION_PATIENCE = 3600.0
"""Seconds that ranks wait for the one that cuts the graph."""


def distribute(
    model: nn.Module,
    data: Any,
    /,
    *,
    owner: Any = None,
    chunks: int = 1,
    sharded: Any = (),
    **options: Any,
) -> tuple[nn.Module, Any]:
    """The model compiled for calls on this rank's part of a graph, and that part.

    All ranks call it with the same model and graph, and make the same calls afterwards. Rank 0 cuts
    the graph (`gnnc partition` says how well), and its parameters, buffers and random numbers are
    taken over by the others, so that all draw the same. A rank's part has the nodes that it owns,
    in the order of the whole graph, and the edges that lead to them; compiled code reads the rows
    of other ranks where these edges need them. What it reduces over nodes or edges (a loss, the
    statistics of a BatchNorm, gradients of parameters) is reduced over those of all ranks; what
    ranks compute of rows in torch adds up: give there each its share of the loss. A result that is
    the same on all ranks takes the gradient of one process, which all give. Without `gnnc launch`
    there is one rank, which has everything.

    Args:
        model: the same on every rank.
        data: a `torch_geometric.data.Data` or `HeteroData` with `edge_index`; tensors with a row a
            node or a row an edge are cut, others stay. So are further edges over the same nodes,
            `edge_label_index` with its `edge_label`, `neg_edge_index` and the like. Or a
            `gnnc.PartitionFolder`, of which each rank reads its part alone: no rank has the whole
            graph.
        owner: the rank of each node, int [nodes], of a `HeteroData` a dict with those of each type;
            by default the graph is cut for few rows that cross and equal work. A `PartitionFolder`
            says it itself.
        chunks: how many messages the rows that a rank sends to another one are divided into, 1 or
            more: those of one chunk are summed while the next is under way. More than one cost time
            where messages are fast, as between processes of one machine.
        sharded: names of parameters of which a rank is to have some rows (`["embedding.weight"]`).
            Of those with a row a node it has the rows of its own nodes, in the order of its part;
            where their number does not tell which type of nodes of a `HeteroData`, give a dict with
            the type of each. Other tables of `nn.Embedding` lie on ranks in blocks of rows. Nodes
            read rows of both by an index too (`model.embedding(data.n_id)`). New parameters take
            their places, so optimizers come after this; gradients, and what an optimizer keeps,
            exist for own rows alone. Tables of `nn.Embedding` on the device meta are drawn here,
            from the distribution that torch draws them from: no rank ever has all rows.
        **options: see `gnnc.Options`.

    Returns:
        The model, and a `Data` or `HeteroData` of this rank with `n_id` and `e_id`, the numbers of
        its nodes and edges in the whole graph (of their type), int64, and so `edge_label_id` where
        there is an `edge_label_index`. Ends of edges are places
        among its nodes, those of nodes of other ranks count on from there.

    Raises:
        TypeError: `model` is no module, `data` no graph of PyG, `sharded` has no names, or an
            option is not known.
        ValueError: `data` has no edges, `owner` is not a rank for each node, `chunks` is below 1,
            or `sharded` names what is no parameter, or one with another number of rows.
        OSError, BadPartition: of a `PartitionFolder`, as `PartitionFolder.part` does.
        Disagreement: ranks have other graphs, models, or versions of gnnc or torch, or some have a
            table on the device meta.
    """
    from torch_geometric.data import Data, HeteroData

    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, not {type(model).__name__}")
    if not isinstance(data, Data | HeteroData | PartitionFolder):
        raise TypeError(
            "data must be a torch_geometric.data.Data or HeteroData, or a gnnc.PartitionFolder, "
            f"not {type(data).__name__}"
        )
    from ..compile import compile_target

    chosen, communicator = Options(**options), world()
    if not isinstance(chunks, int) or chunks < 1:
        raise ValueError(f"chunks: {chunks!r}, and rows cross in one chunk at least, an integer")
    tables = tables_of(model, sharded)
    same_code.check(communicator)
    communicator.agree("the number of chunks", str(chunks))
    told = ", ".join(t.told for t in tables)
    communicator.agree("sharded, or which of its tables are on the device meta", told)
    if isinstance(data, PartitionFolder):
        if owner is not None:
            raise ValueError("owner: the partition in the folder has one")
        mine, known = data.part(communicator, chunks)
        _start(model, tables, communicator)
    else:
        stores = Stores(data)
        _start(model, tables, communicator)
        mine, known = _data_of(stores, _part(stores, owner, chunks, communicator))
    by_id = {id(x): cut.part for x, cut in known}
    parts = {s._key: by_id[id(s.n_id)] for s in mine.node_stores}
    shard(model, tables, parts, chunks, communicator)
    if communicator.size > 1:
        for x, cut in with_shares(known, communicator):
            cut_tensors.note(x, cut)
        remote_reads.find_out(chosen, str(known[0][0].device))
    return compile_target(model, chosen), mine


def _start(model: nn.Module, tables: Sequence[Table], communicator: Communicator) -> None:
    batch_sizes.know_ranks()
    _share(model, tables, communicator)


class Stores:
    """The types of nodes and edges of a graph of PyG, by the stores that have their tensors."""

    def __init__(self, data: Any) -> None:
        self.data = data
        self.nodes: list[Any] = data.node_stores
        self.keys = [s._key for s in self.nodes]
        for s in data.edge_stores:
            if s.get("edge_index") is None:
                of = "" if s._key is None else f" for edges of type {s._key}"
                raise ValueError(f"data has no edge_index{of}: there is nothing to cut")
        self.edges = [(i, k) for i, s in enumerate(data.edge_stores) for k in index_keys(s)]
        """The edges that are cut: the place of their store, and the name of their ends in it."""
        if not self.edges:
            raise ValueError("data has no edge_index: there is nothing to cut")
        self.counts = [int(s.num_nodes) for s in self.nodes]
        self.types = [self._type(data.edge_stores[i], k) for i, k in self.edges]

    def _type(self, store: Any, name: str) -> EdgesOfType:
        key = store._key
        source, target = (None, None) if key is None else (key[0], key[2])
        for end in (source, target):
            if end not in self.keys:
                raise ValueError(f"data has edges of type {key} and no nodes of type {end!r}")
        ends = store[name].detach().cpu().numpy().astype(np.int64, copy=False)
        return EdgesOfType(self.keys.index(source), self.keys.index(target), ends, name)

    def owner_of_all(self, given: Any) -> Any:
        """What a user gives as owners, for the nodes of all types one after the other, or what is
        wrong with it."""
        if self.keys == [None] or given is None:
            return given
        if not isinstance(given, dict):
            return f"owner: a dict with those of each type of nodes, not {type(given).__name__}"
        if missing := [k for k in self.keys if k not in given]:
            return f"owner: there are none of the nodes of type {missing[0]!r}"
        each = [np.asarray(given[k]) for k in self.keys]
        for k, x, n in zip(self.keys, each, self.counts, strict=True):
            if x.shape != (n,):
                return f"owner: {k!r} has {n} nodes, and owners of shape {x.shape}"
        return np.concatenate(each)


def _share(model: nn.Module, tables: Sequence[Table], communicator: Communicator) -> None:
    """Gives all ranks the parameters, but for tables, the buffers and the random numbers of rank
    0."""
    shapes = [(name, tuple(x.shape), str(x.dtype)) for name, x in _state(model)]
    communicator.agree("the parameters of the model", str(shapes))
    cut = {id(t.parameter) for t in tables}
    shared = [x for _, x in _state(model) if id(x) not in cut]
    given = communicator.broadcast(
        ([x.detach().cpu() for x in shared], torch.get_rng_state())
        if communicator.rank == 0
        else None
    )
    with torch.no_grad():
        for x, y in zip(shared, given[0], strict=True):
            x.copy_(y)
    torch.set_rng_state(given[1])


def _state(model: nn.Module) -> Sequence[tuple[str, Tensor]]:
    return [*model.named_parameters(), *model.named_buffers()]


def _part(stores: Stores, owner: Any, chunks: int, communicator: Communicator) -> TypedParts:
    with communicator.stage("cut the graph", PARTITION_PATIENCE):
        graph, types = together(stores.counts, stores.types)
        of_types = [(k, n) for k, n in zip(stores.keys, stores.counts, strict=True)]
        communicator.agree("the graph", f"{of_types} {edges.fingerprint(graph)}")
        found = None
        if communicator.rank == 0:
            found = _owner(graph, stores.owner_of_all(owner), communicator.size)
        owners = communicator.broadcast(found)
        if isinstance(owners, str):
            raise ValueError(owners)
        part = parts.make_typed_part(communicator.rank, communicator.size, owners, graph, types)
        return TypedParts(part, types, chunks)


def _owner(graph: edges.Edges, given: Any, size: int) -> NDArray[np.int32] | str:
    """The rank of each node, or what is wrong with those that are given."""
    if given is None:
        return assign.partition(assign.Task(graph, size)).owner
    if isinstance(given, str):
        return given
    owner = np.asarray(given)
    if owner.shape != (graph.nodes,) or owner.dtype.kind not in "iu":
        return (
            f"owner: an integer for each of the {graph.nodes} nodes is needed, not {owner.dtype} "
            f"of shape {owner.shape}"
        )
    if len(owner) and not 0 <= owner.min() <= owner.max() < size:
        return f"owner: ranks are 0 to {size - 1}, not {owner.min()} to {owner.max()}"
    return owner.astype(np.int32)


def _data_of(stores: Stores, parts: TypedParts) -> tuple[Any, list[tuple[Tensor, CutTensor]]]:
    """The rows of one rank of each tensor of a graph, and what compiled calls know of them."""
    out = copy.copy(stores.data)
    known: list[tuple[Tensor, CutTensor]] = []
    for (i, name), (part, ends) in zip(stores.edges, parts.edges, strict=True):
        old, new = stores.data.edge_stores[i], out.edge_stores[i]
        numbers = number_key(name)
        new[name], new[numbers] = index_of(ends), torch.from_numpy(part.numbers)
        known.append((new[name], CutTensor("index", part, (2, part.total))))
        known.append((new[numbers], CutTensor("edges", part, (part.total,))))
        for key in row_keys(old, name):
            new[key] = _rows(old, key, part.numbers)
            known.append((new[key], CutTensor("edges", part, tuple(old[key].shape))))
    for old, new, part in zip(stores.nodes, out.node_stores, parts.nodes, strict=True):
        for key in filter(old.is_node_attr, _tensors(old)):
            new[key] = _rows(old, key, part.owned)
            known.append((new[key], CutTensor("nodes", part, tuple(old[key].shape))))
        new.n_id, new.num_nodes = torch.from_numpy(part.owned), len(part.owned)
        known.append((new.n_id, CutTensor("nodes", part, (part.total,))))
    return out, known


def _tensors(store: Any) -> list[str]:
    """What may have rows of nodes or of the edges of `edge_index`."""
    others = index_keys(store)
    taken = {*others, *(key.removesuffix("_index") for key in others)}
    return [key for key, x in store.items() if isinstance(x, Tensor) and key not in taken]


def index_keys(store: Any) -> list[str]:
    """The names of ends of edges in a store of PyG: `edge_index`, and what link prediction adds,
    `edge_label_index`, `neg_edge_index` and the like."""
    more = [
        key
        for key, x in store.items()
        if key != "edge_index" and key.endswith(("edge_index", "edge_label_index"))
        if isinstance(x, Tensor) and x.dim() == 2 and len(x) == 2 and not x.is_floating_point()
    ]
    return ["edge_index", *more] if store.get("edge_index") is not None else []


def number_key(index: str) -> str:
    """The name of the numbers in the whole graph of edges whose ends have a name."""
    return "e_id" if index == "edge_index" else f"{index.removesuffix('_index')}_id"


def row_keys(store: Any, index: str) -> list[str]:
    """The names of rows of edges whose ends have a name: of `edge_label_index` `edge_label`."""
    if index == "edge_index":
        return list(filter(store.is_edge_attr, _tensors(store)))
    key = index.removesuffix("_index")
    rows = store.get(key)
    is_one = isinstance(rows, Tensor) and rows.dim() > 0 and len(rows) == store[index].shape[1]
    return [key] if is_one else []


def _rows(store: Any, key: str, chosen: NDArray[np.int64]) -> Tensor:
    x: Tensor = store[key]
    axis = int(store._parent().__cat_dim__(key, x, store))
    return x.index_select(axis, torch.from_numpy(chosen).to(x.device))
