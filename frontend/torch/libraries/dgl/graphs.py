"""Graphs of DGL as graphs of `gnnc.dgl`, which are plain torch and can be traced.

A stand-in is made once for each structure: a graph of DGL has another index when nodes or edges
were added. Its features are the graph's own while a call runs, and what the call has set or deleted
is set and deleted in the graph when it ends.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor

from ...capture.exchanged import exchange

if TYPE_CHECKING:
    import gnnc.dgl

Features = dict[str, Tensor]


@dataclass
class _StandIn:
    """`index` is the structure of DGL that `graph` was made of."""

    index: Any
    graph: gnnc.dgl.DGLGraph


@dataclass
class _Lent:
    """A graph of DGL in a call: its stand-in, and the features that both had before."""

    real: Any
    graph: gnnc.dgl.DGLGraph
    before: list[Features]


class Calls(threading.local):
    """The graphs that are lent to the calls of a thread, the innermost call last."""

    def __init__(self) -> None:
        self.running: list[dict[int, _Lent]] = []

    def __enter__(self) -> None:
        self.running.append({})

    def __exit__(self, kind: object, *raised: object) -> None:
        lent = self.running.pop()
        if kind is None:
            for one in lent.values():
                _write_back(one)


calls = Calls()
_known: weakref.WeakKeyDictionary[Any, _StandIn] = weakref.WeakKeyDictionary()


def stand_in(real: Any) -> gnnc.dgl.DGLGraph:
    """The graph of `gnnc.dgl` with the structure and the features of one of DGL. Within one call it
    is that of its beginning, so that what the call sets is not overwritten."""
    lent = calls.running[-1] if calls.running else {}
    if id(real) not in lent:
        graph = _structure(real)
        before = [dict(data) for data in _features(real)]
        for frame, data in zip(_frames(graph), before, strict=True):
            frame.clear()
            frame.update(data)
        lent[id(real)] = _Lent(real, graph, before)
    return lent[id(real)].graph


def _structure(real: Any) -> gnnc.dgl.DGLGraph:
    known = _known.get(real)
    if known is None or known.index is not real._graph:
        known = _known[real] = _StandIn(real._graph, sys.modules["gnnc.dgl"].from_dgl(real))
    return known.graph


def _features(real: Any) -> Iterator[Any]:
    """The features of a graph of DGL, as dicts that can be written to: of the node types, then of
    the edge types; of a block those of sources, targets and edges."""
    if real.is_block:
        yield from (real.srcnodes[name].data for name in real.srctypes)
        yield from (real.dstnodes[name].data for name in real.dsttypes)
    else:
        yield from (real.nodes[name].data for name in real.ntypes)
    yield from (real.edges[etype].data for etype in real.canonical_etypes)


def _frames(graph: gnnc.dgl.DGLGraph) -> Iterator[Features]:
    """The same of a stand-in, in this order."""
    yield from graph._source_frames.values()
    if graph.is_block:
        yield from graph._target_frames.values()
    yield from graph._edge_frames.values()


def _write_back(lent: _Lent) -> None:
    for data, frame, before in zip(
        _features(lent.real), _frames(lent.graph), lent.before, strict=True
    ):
        for name, value in frame.items():
            if before.get(name) is not value:
                data[name] = value
        for name in before.keys() - frame.keys():
            del data[name]


ATTRIBUTE = "_gnnc_graph"


def install() -> None:
    """Has graphs of DGL exchanged, once DGL has been imported."""
    exchange(sys.modules["dgl"].DGLGraph, ATTRIBUTE, lambda g: g.device.type == "cpu", stand_in)


def install_ours() -> None:
    """Has graphs of `gnnc.dgl` taken for themselves: what is exchanged is known to have numbers
    that change."""
    exchange(sys.modules["gnnc.dgl"].DGLGraph, ATTRIBUTE, lambda g: True, lambda g: g)
