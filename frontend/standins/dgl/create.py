"""Making graphs: `graph`, `heterograph`, `create_block`, and what only needs these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .base import ONE_ETYPE, ONE_NTYPE, DGLError
from .graph import DGLGraph
from .random import generator
from .topology import EType, Relation, Topology, relation

Ends = tuple[Tensor, Tensor, int, int]
"""Sources, targets, and the least numbers of nodes that hold them."""


def graph(
    data: Any,
    *,
    num_nodes: int | None = None,
    idtype: torch.dtype | None = None,
    device: Any = None,
    row_sorted: bool = False,
    col_sorted: bool = False,
) -> DGLGraph:
    """A graph of one node type and one edge type.

    `data` is a pair `(u, v)` of ids (tensors, arrays or lists), a list of pairs, or
    `('coo', (u, v))`, `('csr' or 'csc', (pointers, indices, edge ids))`. Without `num_nodes` there
    are as many nodes as the largest id asks for. `row_sorted` and `col_sorted` change nothing.
    Raises `DGLError` for ids that are negative or beyond `num_nodes`.
    """
    src, dst, rows, columns = ends_of(data, idtype)
    least = max(rows, columns)
    if num_nodes is None:
        num_nodes = least
    elif num_nodes < least:
        raise DGLError(
            "The num_nodes argument must be larger than the max ID in the data, but got "
            f"{num_nodes} and {least - 1}."
        )
    etype = (ONE_NTYPE, ONE_ETYPE, ONE_NTYPE)
    return of_checked_ends({etype: (src, dst)}, {ONE_NTYPE: num_nodes}, None, device)


def heterograph(
    data_dict: Mapping[EType, Any],
    num_nodes_dict: Mapping[str, int] | None = None,
    idtype: torch.dtype | None = None,
    device: Any = None,
) -> DGLGraph:
    """A graph of several types: `data_dict` has edges, as for `graph`, by canonical edge type.

    Types are in alphabetical order. Without `num_nodes_dict` there are as many nodes of a type as
    the largest id asks for. Raises `DGLError` for ids that are negative or out of range.
    """
    ends = {_canonical(etype): ends_of(data, idtype) for etype, data in data_dict.items()}
    least: dict[str, int] = {}
    for (src, _, dst), (_, _, rows, columns) in ends.items():
        least[src] = max(least.get(src, 0), rows)
        least[dst] = max(least.get(dst, 0), columns)
    if num_nodes_dict is not None:
        _check_counts(least, num_nodes_dict, "node type")
        least = dict(num_nodes_dict)
    counts = {ntype: int(least[ntype]) for ntype in sorted(least)}
    pairs = {etype: ends[etype][:2] for etype in sorted(ends)}
    return of_checked_ends(pairs, counts, None, device)


def create_block(
    data_dict: Any,
    num_src_nodes: Any = None,
    num_dst_nodes: Any = None,
    idtype: torch.dtype | None = None,
    device: Any = None,
) -> DGLGraph:
    """A block: sources and targets are counted apart, also where they are of one type.

    `data_dict` is as for `heterograph`, or as for `graph` and then the counts are numbers.
    """
    if not isinstance(data_dict, Mapping):
        data_dict = {(ONE_NTYPE, ONE_ETYPE, ONE_NTYPE): data_dict}
        if num_src_nodes is not None or num_dst_nodes is not None:
            num_src_nodes = {ONE_NTYPE: _number("num_src_nodes", num_src_nodes)}
            num_dst_nodes = {ONE_NTYPE: _number("num_dst_nodes", num_dst_nodes)}
    ends = {_canonical(etype): ends_of(data, idtype) for etype, data in data_dict.items()}
    sources: dict[str, int] = {}
    targets: dict[str, int] = {}
    for (src, _, dst), (_, _, rows, columns) in ends.items():
        sources[src] = max(sources.get(src, 0), rows)
        targets[dst] = max(targets.get(dst, 0), columns)
    if num_src_nodes is not None or num_dst_nodes is not None:
        _check_counts(sources, num_src_nodes, "source node type")
        _check_counts(targets, num_dst_nodes, "destination node type")
        sources, targets = num_src_nodes, num_dst_nodes
    pairs = {etype: ends[etype][:2] for etype in sorted(ends)}
    return of_checked_ends(
        pairs,
        {ntype: int(sources[ntype]) for ntype in sorted(sources)},
        {ntype: int(targets[ntype]) for ntype in sorted(targets)},
        device,
    )


def block_to_graph(block: DGLGraph) -> DGLGraph:
    """A block as a graph with node types `.._src` and `.._dst`."""
    topology = block._topology
    relations = {(f"{s}_src", e, f"{d}_dst"): r for (s, e, d), r in topology.relations.items()}
    counts = {f"{ntype}_src": rows for ntype, rows in topology.sources.items()}
    counts.update({f"{ntype}_dst": rows for ntype, rows in topology.targets.items()})
    frames = {f"{ntype}_src": dict(f) for ntype, f in block._source_frames.items()}
    frames.update({f"{ntype}_dst": dict(f) for ntype, f in block._target_frames.items()})
    edges = {(f"{s}_src", e, f"{d}_dst"): dict(f) for (s, e, d), f in block._edge_frames.items()}
    made = Topology(relations, counts, None, topology.idtype, topology.device)
    return DGLGraph(made, None, None, (frames, frames), edges)


def rand_graph(
    num_nodes: int,
    num_edges: int,
    idtype: torch.dtype = torch.int64,
    device: Any = "cpu",
) -> DGLGraph:
    """A graph whose edges have ends drawn evenly; `seed` sets where the generator is."""
    ends = torch.randint(num_nodes, (2, num_edges), generator=generator)
    return graph((ends[0], ends[1]), num_nodes=num_nodes, idtype=idtype, device=device)


def rand_bipartite(
    utype: str,
    etype: str,
    vtype: str,
    num_src_nodes: int,
    num_dst_nodes: int,
    num_edges: int,
    idtype: torch.dtype = torch.int64,
    device: Any = "cpu",
) -> DGLGraph:
    """A graph of two node types with evenly drawn ends; `seed` sets where the generator is."""
    src = torch.randint(num_src_nodes, (num_edges,), generator=generator)
    dst = torch.randint(num_dst_nodes, (num_edges,), generator=generator)
    counts = {utype: num_src_nodes, vtype: num_dst_nodes}
    return heterograph({(utype, etype, vtype): (src, dst)}, counts, idtype, device)


def ends_of(data: Any, idtype: torch.dtype | None) -> Ends:
    """The ends that a caller gave in one of `graph`'s forms; their dtype is the graph's."""
    if isinstance(data, tuple) and len(data) == 2 and isinstance(data[0], str):
        form, arrays = data
        if form == "coo":
            return ends_of(tuple(arrays), idtype)
        if form in ("csr", "csc"):
            return _unpacked(form, arrays, idtype)
        raise DGLError(f"data must be 'coo', 'csr' or 'csc' and arrays, got {form!r}")
    if isinstance(data, tuple):
        if len(data) != 2:
            raise DGLError(f"Expect a pair (u, v), but got {len(data)} items.")
        src, dst = _tensor(data[0], idtype), _tensor(data[1], idtype)
    elif hasattr(data, "tocoo") or hasattr(data, "adjacency"):
        raise DGLError(
            f"graph(..) takes pairs of ids, not {type(data).__name__}: use from_scipy or "
            "from_networkx."
        )
    elif isinstance(data, Iterable) and not isinstance(data, (Tensor, str)):
        pairs = list(data)
        src = _tensor([u for u, _ in pairs], idtype)
        dst = _tensor([v for _, v in pairs], idtype)
    else:
        raise DGLError(f"Unsupported graph data type: {type(data)}")
    if src.shape != dst.shape:
        raise DGLError(
            f"Expect source and destination ids of one length, but got {src.shape[0]} and "
            f"{dst.shape[0]}."
        )
    if src.dtype != dst.dtype or src.device != dst.device:
        raise DGLError(
            "Expect the source and destination node IDs to have the same dtype and device, but "
            f"got {src.dtype} on {src.device} and {dst.dtype} on {dst.device}."
        )
    return src, dst, _least(src), _least(dst)


def _unpacked(form: str, arrays: Any, idtype: torch.dtype | None) -> Ends:
    pointers, indices, eids = (_tensor(a, idtype) for a in arrays)
    rows = pointers.shape[0] - 1
    degrees = pointers[1:] - pointers[:-1]
    owners = torch.arange(rows, device=pointers.device).to(pointers.dtype)
    owners = owners.repeat_interleave(degrees, output_size=indices.shape[0])
    if eids.shape[0]:
        place = eids.argsort()
        owners, indices = owners[place], indices[place]
    if form == "csr":
        return owners, indices, rows, _least(indices)
    return indices, owners, _least(indices), rows


def _tensor(ids: Any, idtype: torch.dtype | None) -> Tensor:
    if not isinstance(ids, Tensor):
        ids = torch.as_tensor(np.asarray(ids) if len(ids) else np.zeros(0, np.int64))
    if ids.dtype not in (torch.int32, torch.int64):
        raise DGLError(f"Expect ids of int32 or int64, but got {ids.dtype}.")
    if ids.dim() != 1:
        raise DGLError(f"Expect a 1-D tensor of ids, but got {ids.dim()}-D.")
    return ids if idtype is None else ids.to(idtype)


def _least(ids: Tensor) -> int:
    if ids.shape[0] == 0:
        return 0
    low, high = torch.stack(torch.aminmax(ids)).tolist()
    if low < 0:
        raise DGLError(f"Expect ids of nodes that are not negative, but got {low}.")
    return high + 1


def of_checked_ends(
    pairs: Mapping[EType, tuple[Tensor, Tensor]],
    sources: dict[str, int],
    targets: dict[str, int] | None,
    device: Any,
) -> DGLGraph:
    """A graph of checked ends, with the dtype of their ids."""
    ends = targets if targets is not None else sources
    relations: dict[EType, Relation] = {}
    idtype, place = torch.int64, torch.device("cpu")
    for etype, (src, dst) in pairs.items():
        idtype, place = src.dtype, src.device
        relations[etype] = relation(src, dst, sources[etype[0]], ends[etype[2]])
    return DGLGraph(Topology(relations, sources, targets, idtype, place)).to(device)


def _canonical(etype: Any) -> EType:
    if not isinstance(etype, tuple) or len(etype) != 3:
        raise DGLError(f"Expect edge types (srctype, etype, dsttype), but got {etype!r}.")
    return etype


def _check_counts(least: Mapping[str, int], given: Any, what: str) -> None:
    if not isinstance(given, Mapping):
        raise DGLError(f"Expect a dict with the number of nodes of each {what}, but got {given!r}.")
    for ntype, rows in least.items():
        if ntype not in given:
            raise DGLError(f"The number of nodes of {what} {ntype} is missing.")
        if given[ntype] < rows:
            raise DGLError(
                f"The given number of nodes of {what} {ntype} must be larger than the max ID in "
                f"the data, but got {given[ntype]} and {rows - 1}."
            )


def _number(name: str, value: Any) -> int:
    if not isinstance(value, int):
        raise DGLError(f"{name} must be an integer if the edges are not a dict, got {value!r}")
    return value
