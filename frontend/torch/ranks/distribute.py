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
from . import cut_tensors
from .cut_tensors import CutTensor, EdgePart, NodePart

PARTITION_PATIENCE = 3600.0
"""Seconds that ranks wait for the one that cuts the graph."""


def distribute(
    model: nn.Module, data: Any, /, *, owner: Any = None, **options: Any
) -> tuple[nn.Module, Any]:
    """The model compiled for calls on this rank's part of a graph, and that part.

    All ranks call it with the same model and graph, and make the same calls afterwards. Rank 0 cuts
    the graph (`gnnc partition` says how well), and its parameters, buffers and random numbers are
    taken over by the others, so that all draw the same. A rank's part has the nodes that it owns,
    in the order of the whole graph, and the edges that lead to them; compiled code reads the rows
    of other ranks where these edges need them. What it reduces over nodes or edges (a loss, the
    statistics of a BatchNorm, gradients of parameters) is reduced over those of all ranks; what
    ranks compute of results in torch adds up: give there each its share of the loss. Without
    `gnnc launch` there is one rank, which has everything.

    Args:
        model: the same on every rank.
        data: a `torch_geometric.data.Data` with `edge_index`; tensors with a row a node or a row an
            edge are cut, others stay.
        owner: the rank of each node, int [nodes]; by default the graph is cut for few rows that
            cross and equal work.
        **options: see `gnnc.Options`.

    Returns:
        The model, and a `Data` of this rank with `n_id` and `e_id`, the numbers of its nodes and
        edges in the whole graph, int64. Ends of edges are places among its nodes, those of nodes of
        other ranks count on from there.

    Raises:
        TypeError: `model` is no module, `data` no `Data`, or an option is not known.
        ValueError: `data` has no edges, or `owner` is not a rank for each node.
        Disagreement: ranks have other graphs or models.
    """
    from torch_geometric.data import Data

    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, not {type(model).__name__}")
    if not isinstance(data, Data):
        raise TypeError(f"data must be a torch_geometric.data.Data, not {type(data).__name__}")
    if data.edge_index is None:
        raise ValueError("data has no edge_index: there is nothing to cut")
    from ..compile import compile_target

    communicator = world()
    _share(model, communicator)
    part = _part(data, owner, communicator)
    return compile_target(model, Options(**options)), _data_of(data, part)


def _share(model: nn.Module, communicator: Communicator) -> None:
    """Gives all ranks the parameters, buffers and random numbers of rank 0."""
    shapes = [(name, tuple(x.shape), str(x.dtype)) for name, x in _state(model)]
    communicator.agree("the parameters of the model", str(shapes))
    given = communicator.broadcast(
        ([x.detach().cpu() for _, x in _state(model)], torch.get_rng_state())
        if communicator.rank == 0
        else None
    )
    with torch.no_grad():
        for (_, x), y in zip(_state(model), given[0], strict=True):
            x.copy_(y)
    torch.set_rng_state(given[1])


def _state(model: nn.Module) -> Sequence[tuple[str, Tensor]]:
    return [*model.named_parameters(), *model.named_buffers()]


def _part(data: Any, owner: Any, communicator: Communicator) -> parts.Part:
    index = data.edge_index.detach().cpu().numpy()
    graph = edges.in_memory(index[0], index[1], int(data.num_nodes))
    with communicator.stage("cut the graph", PARTITION_PATIENCE):
        communicator.agree("the graph", edges.fingerprint(graph))
        found = None
        if communicator.rank == 0:
            found = _owner(graph, owner, communicator.size)
        owners = communicator.broadcast(found)
        if isinstance(owners, str):
            raise ValueError(owners)
        return parts.make_part(communicator.rank, communicator.size, owners, graph)


def _owner(graph: edges.Edges, given: Any, size: int) -> NDArray[np.int32] | str:
    """The rank of each node, or what is wrong with those that are given."""
    if given is None:
        return assign.partition(assign.Task(graph, size)).owner
    owner = np.asarray(given)
    if owner.shape != (graph.nodes,) or owner.dtype.kind not in "iu":
        return (
            f"owner: an integer for each of the {graph.nodes} nodes is needed, not {owner.dtype} "
            f"of shape {owner.shape}"
        )
    if len(owner) and not 0 <= owner.min() <= owner.max() < size:
        return f"owner: ranks are 0 to {size - 1}, not {owner.min()} to {owner.max()}"
    return owner.astype(np.int32)


def _data_of(data: Any, part: parts.Part) -> Any:
    """The rows of one rank of each tensor of a graph; compiled calls know them where there are
    others."""
    ranks = np.arange(part.ranks)
    nodes = NodePart(
        part.owned,
        part.ghosts,
        np.repeat(ranks, part.receive_counts),
        part.sent,
        np.repeat(ranks, part.send_counts),
        part.nodes,
    )
    numbers = np.concatenate([part.local_edges, part.remote_edges])
    mine = EdgePart(nodes, nodes, len(part.local_edges), numbers, int(data.edge_index.shape[1]))
    n_id, e_id = torch.from_numpy(part.owned), torch.from_numpy(numbers)
    src = np.concatenate([part.local_src, part.remote_src + len(part.owned)])
    dst = np.concatenate([part.local_dst, part.remote_dst])
    out, known = copy.copy(data), list[tuple[Tensor, CutTensor]]()
    for key, x in data.to_dict().items():
        if not isinstance(x, Tensor) or key == "edge_index":
            continue
        if data.is_node_attr(key):
            out[key] = _rows(data, key, x, n_id)
            known.append((out[key], CutTensor("nodes", nodes)))
        elif data.is_edge_attr(key):
            out[key] = _rows(data, key, x, e_id)
            known.append((out[key], CutTensor("edges", mine)))
    # stacked by torch: without edges NumPy has strides of its own
    ends = torch.stack([torch.from_numpy(x.astype(np.int64)) for x in (src, dst)])
    out.edge_index, out.n_id, out.e_id = ends, n_id, e_id
    out.num_nodes = len(part.owned)
    known += [
        (ends, CutTensor("index", mine)),
        (n_id, CutTensor("nodes", nodes)),
        (e_id, CutTensor("edges", mine)),
    ]
    for x, cut in known if part.ranks > 1 else ():
        cut_tensors.note(x, cut)
    return out


def _rows(data: Any, key: str, x: Tensor, chosen: Tensor) -> Tensor:
    axis = data.__cat_dim__(key, x)
    return x.index_select(int(axis), chosen.to(x.device))
