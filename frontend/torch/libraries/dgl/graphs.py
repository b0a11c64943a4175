"""Graphs of DGL as graphs of `gnnc.dgl`, which are plain torch and can be traced.

A stand-in is made once for each structure: a graph of DGL has another index when nodes or edges
were added. While a call runs its features are the graph's own: what traced code sets or deletes is
set and deleted in the graph before other code looks at the graph, and when the call ends.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torch import Tensor

from ...capture.exchanged import exchange, exchange_class

if TYPE_CHECKING:
    import gnnc.dgl

Features = dict[str, Tensor]


@dataclass
class _StandIn:
    """`made_of` is what of DGL's graph `graph` was made of, `made` what the stand-in had then."""

    graph: gnnc.dgl.DGLGraph
    made_of: tuple[Any, ...]
    made: tuple[Any, ...]


@dataclass
class _Frame:
    """Features of one type in a call: DGL's `real`, as the dict of a stand-in, and as they were
    when both were the same. Graphs that share DGL's share the dict."""

    real: Any
    data: Features = field(default_factory=dict[str, Tensor])
    same: Features = field(default_factory=dict[str, Tensor])

    def push(self) -> None:
        for name, value in self.data.items():
            if self.same.get(name) is not value:
                self.real[name] = value
        for name in self.same.keys() - self.data.keys():
            del self.real[name]
        self.same = dict(self.data)

    def pull(self) -> None:
        self.same = dict(self.real)
        self.data.clear()
        self.data.update(self.same)


class Calls(threading.local):
    """The graphs that are lent to the calls of a thread that run, one in another."""

    def __init__(self) -> None:
        self.depth = 0
        self.known: weakref.WeakKeyDictionary[Any, _StandIn] = weakref.WeakKeyDictionary()
        self.lent: dict[int, tuple[Any, _StandIn]] = {}
        self.frames: dict[int, _Frame] = {}
        self.touched = False

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *raised: object) -> None:
        self.depth -= 1
        if self.lent:
            self.push()
            if not self.depth:
                self._end()

    def push(self) -> None:
        """Has the graphs be as the stand-ins are."""
        for real, known in self.lent.values():
            if _changed(known.made, _state(known.graph)):
                _restructure(real, known)
        for frame in self.frames.values():
            frame.push()

    def touch(self) -> None:
        """Before other code than the traced reads or writes features of a graph."""
        if self.lent and not self.touched:
            self.touched = True
            self.push()

    def stand_in(self, real: Any) -> gnnc.dgl.DGLGraph:
        if id(real) not in self.lent:
            self.lent[id(real)] = real, self._structure(real)
            self._lend(real)
        elif self.touched:
            for frame in self.frames.values():
                frame.pull()
            for other, _ in self.lent.values():
                self._lend(other)
        self.touched = False
        return self.lent[id(real)][1].graph

    def _structure(self, real: Any) -> _StandIn:
        known = self.known.get(real)
        if known is None or _changed(known.made_of, _of(real)):
            made = sys.modules["gnnc.dgl"].from_dgl(real)
            known = self.known[real] = _StandIn(made, _of(real), _state(made))
        return known

    def _lend(self, real: Any) -> None:
        for (place, name), frame in zip(
            _places(self.lent[id(real)][1].graph), _frames(real), strict=True
        ):
            if id(frame) not in self.frames:
                self.frames[id(frame)] = _Frame(frame)
                self.frames[id(frame)].pull()
            place[name] = self.frames[id(frame)].data

    def _end(self) -> None:
        for _, known in self.lent.values():
            for place, name in _places(known.graph):
                place[name] = {}  # nothing of a graph is kept alive
        self.lent, self.frames, self.touched = {}, {}, False

    def given_back(self, result: Any) -> Any:
        """A result in which stand-ins are the graphs they stand for, and graphs that a call on
        graphs of DGL has made are DGL's."""
        if isinstance(result, Tensor) or "gnnc.dgl" not in sys.modules:
            return result
        return self._given_back(result)

    def _given_back(self, x: Any) -> Any:
        ours = sys.modules["gnnc.dgl"]
        if type(x) in (list, dict):  # the same object, which others may hold
            for key, value in list(x.items() if type(x) is dict else enumerate(x)):
                if (new := self._given_back(value)) is not value:
                    x[key] = new
        elif isinstance(x, tuple):
            parts = [self._given_back(value) for value in x]
            if any(a is not b for a, b in zip(parts, x, strict=True)):
                return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
        elif isinstance(x, ours.DGLGraph) and self.lent:
            reals = (real for real, known in self.lent.values() if known.graph is x)
            return next(reals, None) or ours.to_dgl(x)
        return ours.degrees.untraced(x)


calls = Calls()


def _of(real: Any) -> tuple[Any, ...]:
    """What a stand-in is made of, each another object when it has changed."""
    return real._graph, real._batch_num_nodes, real._batch_num_edges


def _state(graph: gnnc.dgl.DGLGraph) -> tuple[Any, ...]:
    """The same of a stand-in."""
    return graph._topology, graph._batch_nodes, graph._batch_edges


def _changed(before: tuple[Any, ...], now: tuple[Any, ...]) -> bool:
    return any(a is not b for a, b in zip(before, now, strict=True))


def _frames(real: Any) -> Iterator[Any]:
    """The frames of a graph of DGL: of the node types, then of the edge types; of a block those of
    sources, targets and edges."""
    nodes, edges = vars(real)["_node_frames"], vars(real)["_edge_frames"]
    if real.is_block:
        yield from (nodes[real.get_ntype_id_from_src(name)] for name in real.srctypes)
        yield from (nodes[real.get_ntype_id_from_dst(name)] for name in real.dsttypes)
    else:
        yield from nodes
    yield from edges


def _places(graph: gnnc.dgl.DGLGraph) -> Iterator[tuple[dict[Any, Features], Any]]:
    """Where a stand-in has the same, in this order."""
    yield from ((graph._source_frames, name) for name in graph._source_frames)
    if graph.is_block:
        yield from ((graph._target_frames, name) for name in graph._target_frames)
    yield from ((graph._edge_frames, name) for name in graph._edge_frames)


def _restructure(real: Any, known: _StandIn) -> None:
    """Edges or nodes were added or removed in a call, or it said how a batch is divided."""
    made = sys.modules["gnnc.dgl"].to_dgl(known.graph)
    names = ["_batch_num_nodes", "_batch_num_edges"]
    if known.graph._topology is not known.made[0]:
        names += ["_graph", "_node_frames", "_edge_frames"]
    vars(real).update((name, vars(made)[name]) for name in names)
    known.made_of, known.made = _of(real), _state(known.graph)
    calls._lend(real)


class _Watched:
    """An attribute of DGL's graphs that has their frames: code that is not traced comes by here."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, real: Any, of: type | None = None) -> Any:
        if real is None:
            return self
        calls.touch()
        if self._name not in vars(real):
            raise AttributeError(self._name)
        return vars(real)[self._name]

    def __set__(self, real: Any, value: Any) -> None:
        calls.touch()
        vars(real)[self._name] = value


ATTRIBUTE = "_gnnc_graph"


def install() -> None:
    """Has graphs of DGL exchanged, once DGL has been imported."""
    real, ours = sys.modules["dgl"], importlib.import_module("gnnc.dgl")
    for name in ("_node_frames", "_edge_frames"):
        setattr(real.DGLGraph, name, _Watched(name))
    home = os.path.dirname(real.__file__)
    layers = os.path.join(home, "nn")

    def inner(file: str) -> bool:  # what DGL's graphs do themselves
        return file.startswith(home) and not file.startswith(layers)

    exchange(real.DGLGraph, ATTRIBUTE, lambda g: g.device.type == "cpu", calls.stand_in, inner)
    exchange_class(real.DGLGraph, "_gnnc_class", ours.DGLGraph)
    ours.DGLError.__bases__ = (real.DGLError,)  # who expects DGL's catches it


def install_ours() -> None:
    """Has graphs and matrices of `gnnc.dgl` taken for themselves: what is exchanged is known to
    have numbers that change."""
    ours = importlib.import_module("gnnc.dgl")
    for of in (ours.DGLGraph, ours.sparse.SparseMatrix):
        exchange(of, ATTRIBUTE, lambda x: True, lambda x: x)
