"""Graphs of Dynamo's without matrices: their entries are what a graph takes and computes with."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx
from torch.fx.proxy import GraphAppendingTracer

from .matrix import Matrix
from .operations import OPERATIONS, Entries

Backend = Callable[[fx.GraphModule, Sequence[Any]], Callable[..., Any]]

_PARTS = ("row", "col", "value")


@dataclass(frozen=True)
class Product:
    """A product of a graph: the numbers of a matrix, how many of them are entries, and the width of
    what it is multiplied by, for the first call's arguments."""

    numbers: int
    entries: int
    width: int
    number_bytes: int


def on_entries(
    backend: Backend, check: Callable[[Sequence[Product]], None] = lambda products: None
) -> Backend:
    """A backend that takes graphs with matrices, from one that takes graphs of dense tensors.
    `check` sees the products first, and may raise."""

    def taking(graph: fx.GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        if not any(isinstance(_example(n), Matrix) for n in graph.graph.nodes):
            return backend(graph, examples)
        copy = _Copy(graph)
        made = copy.made()
        check(copy.products)
        run = backend(made, _spread(examples))
        return lambda *args: run(*_spread(args))

    return taking


def _spread(args: Sequence[Any]) -> list[Any]:
    out: list[Any] = []
    for x in args:
        if isinstance(x, Matrix):
            out += [x.row.size(0), *(getattr(x, p) for p in _PARTS)]
        else:
            out.append(x)
    return out


def _example(node: fx.Node) -> Any:
    return node.meta.get("example_value")


def _product(node: fx.Node, shape: Sequence[Any]) -> Product:
    value, x = _example(node.args[2]), _example(node.args[3])  # type: ignore[arg-type]
    numbers = math.prod(_number(_example(n) if isinstance(n, fx.Node) else n) for n in shape)
    width = math.prod(map(_number, x.shape[1:]))
    return Product(numbers, _number(value.shape[0]), width, value.element_size())


def _number(size: int | torch.SymInt) -> int:
    """A size in the first call, of which no guard is made."""
    return size.node.hint if isinstance(size, torch.SymInt) else size


class _Copy:
    """A copy of a graph, in which a matrix is the nodes of its entries."""

    def __init__(self, old: fx.GraphModule) -> None:
        self.old = old
        self.graph = fx.Graph()
        self.tracer = GraphAppendingTracer(self.graph)
        self.now: dict[fx.Node, Any] = {}  # a node, or the entries of a matrix
        self.products: list[Product] = []

    def made(self) -> fx.GraphModule:
        for node in self.old.graph.nodes:
            matrix = isinstance(_example(node), Matrix)
            if node.op == "placeholder" and matrix:
                self.now[node] = self.argument(node)
            elif matrix or any(isinstance(self.now[x], Entries) for x in node.all_input_nodes):
                self.now[node] = self.computed(node)
            elif node.target is torch.ops.gnnc.index_of_pointer and self.from_index(node):
                self.now[node] = self.from_index(node)
            else:
                self.now[node] = self.graph.node_copy(node, self.now.__getitem__)
        self.graph.lint()
        return fx.GraphModule(self.old, self.graph)

    def from_index(self, node: fx.Node) -> fx.Node | None:
        """The index that the pointer was made of, which is made of that again."""
        made = self.now[node.args[0]]  # type: ignore[index]
        return made.args[0] if made.target is torch.ops.gnnc.pointer else None

    def argument(self, node: fx.Node) -> Entries:
        matrix = _example(node)
        count = self.graph.placeholder(f"{node.target}entries")
        count.meta.update(node.meta, example_value=matrix.row.size(0))
        parts = []
        for part in _PARTS:
            new = self.graph.placeholder(f"{node.target}{part}")
            new.meta.update(node.meta, example_value=getattr(matrix, part))
            parts.append(new)
        return Entries(*parts, tuple(map(self.size, matrix.shape)), matrix.like)

    def size(self, n: int | torch.SymInt) -> Any:
        """A size as a number or as a placeholder of it."""
        if not isinstance(n, torch.SymInt):
            return n
        for node in self.old.graph.nodes:
            known = _example(node)
            if isinstance(known, torch.SymInt) and known.node.expr == n.node.expr:
                if node in self.now:
                    return self.now[node]
        return n

    def computed(self, node: fx.Node) -> Any:
        """What a function makes of matrices, as nodes."""
        if node.op == "output":
            raise NotImplementedError("a sparse matrix as a result")
        function = node.target if node.op == "call_function" else getattr(Tensor, str(node.target))
        before = len(self.graph.nodes)

        def traced(x: fx.Node) -> Any:
            new = self.now[x]
            if isinstance(new, Entries):
                return Entries(*map(self.proxy, new[:3]), tuple(map(self.proxy, new.shape)), new[4])
            return self.proxy(new)

        args, kwargs = fx.node.map_arg((node.args, node.kwargs), lambda x: _Held(traced(x)))
        args, kwargs = _released(args), _released(kwargs)
        out = OPERATIONS[_plain(function)](*args, **kwargs)
        for new in list(self.graph.nodes)[before:]:
            new.meta.update(node.meta, example_value=_value(new))
            if new.target is torch.ops.gnnc.sparse_matmul:
                (matrix,) = (
                    m for x in node.all_input_nodes if isinstance(m := self.now[x], Entries)
                )
                self.products.append(_product(new, matrix.shape))
        if isinstance(out, Entries):
            return Entries(*map(_node, out[:3]), tuple(map(_node, out.shape)), out.like)
        return _node(out)

    def proxy(self, x: Any) -> Any:
        return fx.Proxy(x, self.tracer) if isinstance(x, fx.Node) else x


class _Held:
    """Keeps fx from looking into what an argument has become."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _released(x: Any) -> Any:
    if isinstance(x, _Held):
        return x.value
    if isinstance(x, dict):
        return {k: _released(v) for k, v in x.items()}
    if isinstance(x, tuple | list):
        return type(x)(_released(v) for v in x)
    return x


def _plain(function: Any) -> Any:
    """The function of an operator, as `OPERATIONS` has it."""
    import operator

    return torch.matmul if function is operator.matmul else function


def _node(x: Any) -> Any:
    return x.node if isinstance(x, fx.Proxy) else x


def _value(node: fx.Node) -> Any:
    """What a new node gives for the examples."""
    args, kwargs = fx.node.map_arg((node.args, node.kwargs), _example)
    if node.op == "call_method":
        return getattr(args[0], str(node.target))(*args[1:], **kwargs)
    assert callable(node.target)
    return node.target(*args, **kwargs)
