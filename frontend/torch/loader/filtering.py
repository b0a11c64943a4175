"""A batch as PyG has it: the data's attributes at the nodes and edges that were sampled."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ....runtime.cpu.crew import crews
from ....runtime.sampling.batch import Batch, counts
from ....runtime.sampling.rows import gather
from ....runtime.tensors import CPU, TORCH, empty
from .graphs import NamedGraph, store

_NAMES = {dtype: name for name, dtype in TORCH.items()}


def filtered(
    data: Any, names: NamedGraph, batch: Batch, threads: int | None, hops: bool = True
) -> Any:
    """A copy of the `Data` or `HeteroData` with what belongs to the batch.

    Attributes of nodes are those at `n_id`, of edges those at `e_id`; all others are the data's
    own. With `hops` each type has `num_sampled_nodes` and `num_sampled_edges`, what each hop added.
    `threads` are those of `at_rows`.
    """
    made = copy.copy(data)
    for name, nodes in zip(names.node_types, batch.nodes, strict=True):
        old, new, ids = store(data, name), store(made, name), torch.from_numpy(nodes.ids)
        for key, value in old.items():
            if key == "num_nodes":
                new.num_nodes = ids.numel()
            elif old.is_node_attr(key):
                new[key] = at_rows(value, ids, _dimension(old, key, value), threads)
        if "n_id" not in old:
            new["n_id"] = ids
        new["batch"] = None if nodes.graphs is None else torch.from_numpy(nodes.graphs)
        new["num_sampled_nodes"] = counts(nodes.met) if hops else None
    for name, edges in zip(names.edge_types, batch.edges, strict=True):
        old, new, ids = store(data, name), store(made, name), torch.from_numpy(edges.ids)
        for key, value in old.items():
            if key == "edge_index":
                new[key] = torch.from_numpy(edges.index).to(value.device)
            elif old.is_edge_attr(key):
                new[key] = at_rows(value, ids, _dimension(old, key, value), threads)
        if "e_id" not in old:
            new["e_id"] = ids
        new["num_sampled_edges"] = counts(edges.found)[1:] if hops else None
    return made


def _empty(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """A tensor of undefined content, in memory that was used before: the system clears fresh pages
    one by one, which takes longer than to fill them."""
    if dtype in _NAMES:
        return empty(shape, _NAMES[dtype])
    return torch.empty(shape, dtype=dtype, device=CPU)


def _dimension(attributes: Any, key: str, value: Any) -> int:
    return attributes._parent().__cat_dim__(key, value, attributes)


def at_rows(value: Any, ids: Tensor, dimension: int = 0, threads: int | None = 1) -> Any:
    """`value` at the places `ids` (shape (n,), int64) of a dimension: of a tensor, an array, a
    list or a table of columns.

    Rows of a tensor that lie one behind the other are copied by so many `threads` (None: those of
    compiled code). By default it is this one alone: torch would start a team for each that loads.
    """
    if isinstance(value, np.ndarray):
        return torch.from_numpy(np.take(value, ids.numpy(), axis=dimension))
    if isinstance(value, list | tuple):
        return [value[i] for i in ids.tolist()]
    if not isinstance(value, Tensor):
        return value[ids]
    plain = value.layout == torch.strided and value.device.type == "cpu" and not value.requires_grad
    if dimension != 0 or not plain or not value.is_contiguous() or type(value) is not Tensor:
        return value.index_select(dimension, ids.to(value.device))
    made = _empty((ids.numel(), *value.shape[1:]), value.dtype)
    row = value[:1].numel() * value.element_size()
    given = value.data_ptr(), value.size(0), row, ids.numpy(), made.data_ptr()
    crews.run("rows", row * ids.numel(), lambda count: gather(*given, threads=count), threads)
    return made
