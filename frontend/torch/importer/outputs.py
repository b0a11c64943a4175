"""What a graph returns: results of the program, arguments, and views of both, as in torch.

A tensor that lies in the memory of an argument, or of another result, is made by doing the views in
torch on the real tensor. So are views that leave gaps in their memory, or read it several times.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import sympy
import torch
from torch import Tensor, fx

from .binding import Constant, Copy, Hole, Number, Result, Same, Size, Step, View
from .errors import NoRule, node_name
from .memory.attached import is_made_of
from .values.sizes import example, expression
from .values.tensors import Arr, Merge, Sym
from .walk import Foreign, Walk

SHOWN = "gnnc_shown"
"""Of a node of a part of a graph: whether the whole graph returns it."""
_CONSTANTS = (bool, int, float, str, torch.dtype, torch.device, type(None))


class Returned:
    """The outputs of a walk. `tree` is the structure with leaves as in `Imported.outputs`; `wanted`
    are the tensors that its `Result`s number, each with the order of its dimensions in memory
    (None: as the program has them), `nodes` their nodes (None: an item of one). What is one tensor
    is one object in the tree."""

    def __init__(self, walk: Walk, bind_size: Callable[[sympy.Expr], Size]) -> None:
        self.walk = walk
        self.bind_size = bind_size
        self.inputs = {x.v.number: node for node, x in walk.inputs.items() if isinstance(x, Arr)}
        self.wanted: list[tuple[Arr, tuple[int, ...] | None]] = []
        self.nodes: list[fx.Node | None] = []
        self.views: list[fx.Node] = []
        self.places: dict[fx.Node, View | Copy] = {}
        self.numbers: dict[fx.Node, Result] = {}
        self.lone = self._lone()
        self.tree = self._output(walk.outputs, walk.returned)

    def _lone(self) -> set[int]:
        """The memory that only one tensor of the outputs lies in."""
        tensors = {self.walk.aliases.itself(n) for n in _nodes(self.walk.returned)}
        keys = [self.walk.aliases.key(n) for n in tensors]
        return {k for k in keys if k is not None and keys.count(k) == 1}

    def _output(self, x: Any, node: Any) -> Any:
        """Where an output comes from: `x` is the meaning of `node`, or of the nodes in it."""
        if isinstance(x, dict):
            return {k: self._output(v, _item(node, k)) for k, v in x.items()}
        if isinstance(x, tuple | list):
            return type(x)(self._output(y, _item(node, k)) for k, y in enumerate(x))
        if isinstance(node, fx.Node) and isinstance(example(node), Tensor):
            return self._tensor(x, node)
        if isinstance(x, Sym):
            return Number(self.bind_size(x.expr))
        if isinstance(x, Foreign):
            return Same(self.walk.placeholders.index(x.node))
        if isinstance(x, Arr):
            return self._result(x, None, None)
        if not isinstance(x, _CONSTANTS):
            raise NoRule("a value that only other rules can read is returned")
        return Constant(x)

    def _tensor(self, x: Any, node: fx.Node) -> Any:
        root, *views = self.walk.aliases.chain(node)
        value = example(self.walk.aliases.itself(node))
        key = self.walk.aliases.key(node)
        if root.op == "placeholder":
            return self._seen(node, self._view(Same(self.walk.placeholders.index(root)), views))
        if any(self.walk.aliases.key(p) == key for p in self.walk.placeholders):
            raise NoRule(f"{node.name} is returned: it lies in the memory of an argument")
        order = None if self.walk.aliases.layouts.differs(value) else memory_order(value)
        if views and (key not in self.lone or order is None):
            return self._seen(node, self._view(self._number(root), views))
        original = self._copied(x, node) if isinstance(x, Arr) else None
        if original is not None and key in self.lone:
            copy = Copy(original, order == tuple(range(value.dim())))
            return self.places.setdefault(self.walk.aliases.itself(node), copy)
        return self._number(self.walk.aliases.itself(node))

    def _seen(self, node: fx.Node, place: Result | Same | View) -> Any:
        """Note a view that the caller gets, who may ask for its gradient; of one tensor there is
        one."""
        node = self.walk.aliases.itself(node)
        if not isinstance(place, View):
            return place
        if node.meta.get(SHOWN, True) and node not in self.views:
            self.views.append(node)
        return self.places.setdefault(node, place)

    def _copied(self, x: Arr, node: fx.Node) -> int | None:
        """The placeholder whose numbers a tensor has, and the gradient of no other, unless that is
        edited."""
        original = self.inputs.get(x.v.number)
        if original is None or original in self.walk.updates:
            return None
        mine, number = self.walk.inputs[original], self.walk.placeholders.index(original)
        alike = len(mine.dims) == len(x.dims) and mine.axis == x.axis
        return number if alike and is_made_of(self.walk.placeholders, node, number) else None

    # -------------------------------------------------------------- results

    def _number(self, node: fx.Node) -> Result:
        if node not in self.numbers:
            x, value = self.walk.read(node), example(node)
            if not isinstance(x, Arr) or not isinstance(value, Tensor):
                raise NoRule("views are returned of a value that is no tensor")
            self.numbers[node] = self._result(x, _unlike(x, memory_order(value)), node)
        return self.numbers[node]

    def _result(self, x: Arr, order: tuple[int, ...] | None, node: fx.Node | None) -> Result:
        self.wanted.append((x, order))
        self.nodes.append(node)
        return Result(len(self.wanted) - 1)

    # ---------------------------------------------------------------- views

    def _view(self, of: Result | Same, views: Sequence[fx.Node]) -> Result | Same | View:
        return View(of, tuple(self._step(n) for n in views)) if views else of

    def _step(self, node: fx.Node) -> Step:
        source = self.walk.aliases.source(node)
        modes = self.walk.modes
        function: Any = node.target
        args, kwargs = node.args, dict(node.kwargs)
        if node.op == "call_method":
            function = getattr(Tensor, str(node.target))
        if node_name(node) in _BY_EXAMPLE:  # the other tensor only tells the shape
            function, value = _BY_EXAMPLE[node_name(node)], example(node)
            assert isinstance(value, Tensor)
            args, kwargs = (source, [self._bound(d) for d in value.shape]), {}
        bound = [self._argument(a, source) for a in args]
        named = {k: self._argument(a, source) for k, a in kwargs.items()}
        symbolic = any(isinstance(a, Size) for a in _flat((bound, list(named.values()))))
        records = modes.at[node]
        mode = None if records == modes.outside else records
        return Step(function, tuple(bound), named, symbolic, mode)

    def _argument(self, a: Any, source: fx.Node | None) -> Any:
        if isinstance(a, fx.Node):
            if source is not None and self.walk.aliases.itself(a) is self.walk.aliases.itself(
                source
            ):
                return Hole
            return self._bound(example(a))
        if isinstance(a, slice):
            return slice(*(self._argument(b, source) for b in (a.start, a.stop, a.step)))
        if isinstance(a, tuple | list):
            return type(a)(self._argument(b, source) for b in a)
        return a

    def _bound(self, value: Any) -> Any:
        """A number as it is, or as the caller computes it from sizes."""
        if isinstance(value, torch.SymInt):
            return self.bind_size(expression(value))
        if isinstance(value, torch.Size):
            return [self._bound(d) for d in value]
        if isinstance(value, int | float | bool):
            return value
        raise NoRule("a view is returned that takes a tensor besides the one it is of")


_BY_EXAMPLE: dict[str, Callable[..., Any]] = {
    "view_as": Tensor.view,
    "reshape_as": Tensor.reshape,
    "expand_as": Tensor.expand,
}


# ------------------------------------------------------------------------- memory


def memory_order(value: Tensor) -> tuple[int, ...] | None:
    """The dimensions of an example tensor from the outermost in memory to the innermost; None where
    its numbers do not lie one after the other."""
    expressions = [expression(d) for d in (*value.shape, *value.stride())]
    symbols = sorted({s for e in expressions for s in e.free_symbols}, key=str)
    # any sizes tell, as long as no two products of them are equal by chance
    sizes = {s: sympy.prime(1000 + 37 * k) for k, s in enumerate(symbols)}
    figures = [int(e.subs(sizes)) for e in expressions]
    shape, strides = figures[: value.dim()], figures[value.dim() :]
    order = sorted(range(value.dim()), key=lambda d: (-strides[d], shape[d] == 1, d))
    expected = 1
    for d in reversed(order):
        if shape[d] != 1 and strides[d] != expected:
            return None
        expected *= shape[d]
    alone = [d for d in order if shape[d] != 1]
    if alone == sorted(alone):
        return tuple(range(value.dim()))
    return tuple(order)


def _unlike(x: Arr, order: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """`order`, unless the rows of a program come in that order anyhow."""
    if order is None:
        return None
    axis = x.axis
    if axis is not None and isinstance(x.dims[axis], Merge):
        return order if axis else None
    own = list(range(x.rank))
    if axis is not None:
        own.insert(0, own.pop(axis))
    counted = [d for d in range(x.rank) if x.dims[d] != 1]
    same = [d for d in own if d in counted] == [d for d in order if d in counted]
    return None if same else order


# -------------------------------------------------------------------------- trees


def _item(tree: Any, key: Any) -> Any:
    """An item of nested nodes; None of a single node that gives them all."""
    return tree[key] if isinstance(tree, dict | tuple | list) else None


def _nodes(tree: Any) -> list[fx.Node]:
    """The nodes of tensors in nested tuples, lists and dicts."""
    return [x for x in _flat(tree) if isinstance(x, fx.Node) and isinstance(example(x), Tensor)]


def _flat(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return _flat(list(tree.values()))
    if isinstance(tree, slice):
        return [tree.start, tree.stop, tree.step]
    if isinstance(tree, tuple | list):
        return list(itertools.chain.from_iterable(_flat(x) for x in tree))
    return [tree]
