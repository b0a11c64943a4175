"""The RGCN of rgcn.c, and the tables of its pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .step import Floor, library, padded

TASK = 2048
"""Pairs of one relation at most, whose part of its gradient one thread computes."""
PAIR_COST = 1.5
"""What a pair counts beside its edges where nodes are cut into parts of equal work."""


def rgcn(net: nn.Module, x: Tensor, edge_index: Tensor, edge_type: Tensor) -> Floor:
    """The model `TypedNet("rgcn", ..)` of one layer, with its parameters.

    Raises:
        ValueError: a net of several layers.
    """
    convs: Any = net.convs
    if len(convs) != 1:
        raise ValueError(f"net needs one layer, not {len(convs)}")
    conv = convs[0]
    relations, features, classes = conv.weight.shape
    macros = {"FEATURES": features, "CLASSES": classes, "RELATIONS": relations}
    src, dst = edge_index.numpy()
    tables = _tables(src, dst, edge_type.numpy(), len(x), relations)
    return Floor(library("rgcn", macros), [conv.weight, conv.root, conv.bias], len(x), tables)


def _tables(
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    relation: NDArray[np.int64],
    nodes: int,
    relations: int,
) -> list[NDArray[Any]]:
    """What `relations` in rgcn.c reads."""
    parts = _parts(dst, relation, nodes)
    count = len(parts) - 1
    part = np.searchsorted(parts[1:], dst, "right")
    key = (part * relations + relation) * nodes + dst
    order = np.lexsort((src, key))
    pairs, first = np.unique(key[order], return_index=True)
    pair_edges = np.append(first, len(src))
    segments, begin = np.unique(pairs // nodes, return_index=True)
    end = np.append(begin[1:], len(pairs))
    part_segments = np.searchsorted(segments // relations, np.arange(count + 1))
    rows = np.stack([segments % relations, begin, end], 1)
    tasks = np.array(
        [(r, at, min(at + TASK, b)) for r, a, b in rows for at in range(a, b, TASK)], np.int64
    ).reshape(-1, 3)
    tasks = tasks[np.argsort(tasks[:, 0], kind="stable")]
    relation_tasks = np.searchsorted(tasks[:, 0], np.arange(relations + 1))
    return [
        *(parts, part_segments, rows.astype(np.int32), (pairs % nodes).astype(np.int32)),
        *(pair_edges, padded(src[order].astype(np.int32)), tasks.astype(np.int32), relation_tasks),
        np.array([count, len(tasks)]),
    ]


def _parts(dst: NDArray[np.int64], relation: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
    """Where nodes are cut into ranges of about equal work, one a thread."""
    pairs = np.unique(relation * nodes + dst) % nodes
    cost = 1 + np.bincount(dst, minlength=nodes) + PAIR_COST * np.bincount(pairs, minlength=nodes)
    work = np.cumsum(cost)
    count = torch.get_num_threads()
    cuts = np.searchsorted(work, work[-1] * np.arange(1, count) / count)
    return np.concatenate([[0], cuts, [nodes]]).astype(np.int64)
