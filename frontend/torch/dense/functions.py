"""What functions of dense batches are in terms of rows: of each number, along columns, over the
places of a graph; and moves of dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor, fx
from torch.nn import functional as F

from .align import Operand, aligned, pad_at
from .values import GRAPH, KEY, PLACE, Dense, NotByRows, Places, is_all, shape_of, width

FUNCTIONS: dict[str, Callable[[Call], Any]] = {}
"""The functions by the names of ops, as `canonical` has them."""


@dataclass(frozen=True, eq=False)
class Call:
    """A call with a dense batch among its arguments: its op, the function without an edit in place,
    all arguments as they were given and by their names (those that are `set_apart` are not at their
    defaults), and the sizes of its results."""

    op: str
    of: Places
    function: Callable[..., Any]
    given: tuple[tuple[Any, ...], dict[str, Any]]
    arguments: Mapping[str, Any]
    set_apart: frozenset[str]
    shapes: Sequence[Sequence[Any]]

    @property
    def x(self) -> Dense:
        return self.dense("input")

    @property
    def shape(self) -> Sequence[Any]:
        """The sizes of its only result."""
        (shape,) = self.shapes
        return shape

    def dense(self, name: str) -> Dense:
        x = self.arguments.get(name)
        if not isinstance(x, Dense):
            raise NotByRows(f"{name} is none of rows")
        return x

    def with_(self, **arguments: Any) -> Callable[[Any], Any]:
        """The function of the first argument, the others as they are said here and were given."""
        function = getattr(torch, self.op, None) or getattr(F, self.op)
        said = {n: self.arguments[n] for n in self.set_apart - {"input", "_stacklevel"}}
        return partial(function, **(said | arguments))


def of(*ops: str) -> Callable[[Callable[[Call], Any]], Callable[[Call], Any]]:
    def define(body: Callable[[Call], Any]) -> Callable[[Call], Any]:
        FUNCTIONS.update(dict.fromkeys(ops, body))
        return body

    return define


def function_of(op: str) -> Callable[[Call], Any] | None:
    """What a function is of rows, if it is."""
    if op in FUNCTIONS:
        return FUNCTIONS[op]
    packet = getattr(torch.ops.aten, op, None)
    overloads = [] if packet is None else [getattr(packet, name) for name in packet.overloads()]
    pointwise = any(torch.Tag.pointwise in o.tags for o in overloads)
    return of_each_number if pointwise else None


# ---------------------------------------------------------------- of each number


@of("to", "float", "double", "contiguous", "detach")
def of_each_number(c: Call) -> Dense:
    """A function of numbers that are at the same place, broadcast."""
    return broadcast(c.of, c.function, *c.given[0], **c.given[1])


def broadcast(of: Places, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Dense:
    """A function of numbers of tensors that are broadcast."""
    leaves, spec = pytree.tree_flatten((args, kwargs))
    tensors = [i for i, x in enumerate(leaves) if _is_tensor(x)]
    axes, operands = aligned(of, [leaves[i] for i in tensors])

    def at(part: Callable[[Operand], Any]) -> Any:
        found = list(leaves)
        for i, x in zip(tensors, operands, strict=True):
            found[i] = part(x)
        args, kwargs = pytree.tree_unflatten(found, spec)
        return of.computed(function, *args, **kwargs)

    known = all(x.pad is not None for x in operands)
    return Dense(of, axes, at(lambda x: x.rows), at(lambda x: x.pad) if known else None)


def _is_tensor(x: Any) -> bool:
    is_proxy = isinstance(x, fx.Proxy)
    return isinstance(x, Dense) or (is_proxy and isinstance(x.node.meta["example_value"], Tensor))


@of("dropout")
def dropout(c: Call) -> Dense:
    """Other places draw other numbers: with one, the pad is not the same for all."""
    x, p = c.x, c.arguments["p"]
    if p == 0 or not c.arguments["training"]:
        return x
    return Dense(x.of, x.axes, F.dropout(x.all_rows(), p), None)


@of("masked_fill")
def masked_fill(c: Call) -> Dense:
    """The number where the mask is true."""
    return masked(c.of, c.arguments["input"], c.arguments["mask"], c.arguments["value"])


def masked(of: Places, x: Any, mask: Any, value: Any) -> Dense:
    """torch.masked_fill. Where a mask is true at all places behind the rows, these have the
    number; one that no node has changes no rows."""
    out = _chosen(broadcast(of, torch.masked_fill, x, mask, value), mask, value, x)
    if isinstance(mask, Dense) and is_all(mask.rows, False) and out.axes == x.axes:
        return Dense(of, out.axes, x.rows, out.pad)
    return out


@of("where")
def where(c: Call) -> Dense:
    """The pad is that of the one which is chosen there."""
    x, y = c.arguments["input"], c.arguments["other"]
    return _chosen(of_each_number(c), c.arguments["condition"], x, y)


def _chosen(out: Dense, mask: Any, x: Any, y: Any) -> Dense:
    """`out` with the pad of `x` or `y`, of numbers and dense batches, where the mask tells."""
    if not isinstance(mask, Dense):
        return out
    at_pad = pad_at(mask, out.axes)
    for value, chosen in ((True, x), (False, y)):
        if is_all(at_pad, value) and not isinstance(chosen, fx.Proxy):
            is_dense = isinstance(chosen, Dense)
            pad = pad_at(chosen, out.axes) if is_dense else _number(out, chosen)
            if pad is not None:
                return Dense(out.of, out.axes, out.rows, pad)
    return out


def _number(out: Dense, x: float | bool) -> Tensor:
    return torch.full((1, *out.columns), x, dtype=out.dtype)


@of("add")
def add(c: Call) -> Dense:
    """What is added to minus infinity, which stands where there is no node, stays that."""
    return _with_infinite_pad(of_each_number(c), c.arguments["input"], c.arguments["other"])


def _with_infinite_pad(y: Dense, *operands: Any) -> Dense:
    pads = [pad_at(x, y.axes) for x in operands if isinstance(x, Dense)]
    if y.pad is None and any(is_all(p, -math.inf) for p in pads):
        return Dense(y.of, y.axes, y.rows, _number(y, -math.inf))
    return y


def left_out(x: Dense, mask: Dense) -> Dense:
    """What attention adds to scores: minus infinity where a mask is false, or the mask. It leaves
    out no node.

    Raises:
        NotByRows: the mask is another one.
    """
    if not isinstance(mask.rows, Tensor):
        raise NotByRows("attention with another mask than that of the nodes")
    if mask.dtype == torch.bool:
        y = masked(x.of, x, mask.made(mask.axes, torch.logical_not), -math.inf)
    else:
        y = _with_infinite_pad(broadcast(x.of, torch.add, x, mask), x, mask)
    if not is_all(mask.rows, mask.dtype == torch.bool) or y.axes != x.axes:
        raise NotByRows("attention with another mask than that of the nodes")
    return Dense(y.of, y.axes, x.rows, y.pad)


@of("zeros_like", "ones_like", "full_like")
def like(c: Call) -> Dense:
    """The same number everywhere."""
    x = c.x
    example = torch.empty((1, *x.columns), dtype=x.dtype)
    made = c.with_()(example)
    return Dense(x.of, x.axes, made, made)


# ---------------------------------------------------------------- along columns


@of("linear")
def linear(c: Call) -> Dense:
    return affine(c.x, c.arguments["weight"], c.arguments["bias"])


def affine(x: Dense, weight: Any, bias: Any) -> Dense:
    """F.linear of the last dimension."""
    x.column(-1)
    axes = (*x.axes[:-1], width(shape_of(weight)[0]))
    return x.made(axes, partial(F.linear, weight=weight, bias=bias))


@of("layer_norm", "rms_norm")
def layer_norm(c: Call) -> Dense:
    """Over the last dimensions."""
    for d in range(len(c.arguments["normalized_shape"])):
        c.x.column(-1 - d)
    return c.x.made(c.x.axes, c.with_())


@of("log_softmax", "softmin", "normalize", "cumsum", "cumprod", "flip")
def along(c: Call) -> Dense:
    """A function of columns that gives as many."""
    dims = c.arguments.get("dim", c.arguments.get("dims"))
    name = "dims" if "dims" in c.arguments else "dim"
    several = isinstance(dims, tuple | list)
    columns = [c.x.column(d) for d in (dims if several else [dims])]
    return c.x.made(c.x.axes, c.with_(**{name: columns if several else columns[0]}))


@of("amax", "amin", "prod", "logsumexp", "var", "std", "norm", "any", "all", "argmax", "argmin")
def over_columns(c: Call) -> Dense:
    """A reduction of columns."""
    return _over_columns(c, c.x, _dims(c))


def _over_columns(c: Call, x: Dense, dims: Sequence[int]) -> Dense:
    columns = [x.column(d) for d in dims]
    keep = bool(c.arguments.get("keepdim"))
    axes = [1 if d in dims else a for d, a in enumerate(x.axes) if keep or d not in dims]
    several = isinstance(c.arguments.get("dim"), tuple | list)
    return x.made(axes, c.with_(dim=columns if several else columns[0]))


def _dims(c: Call) -> list[int]:
    dims = c.arguments.get("dim")
    if dims is None or (isinstance(dims, tuple | list) and not dims):
        raise NotByRows(f"{c.op} over all graphs")
    return [c.x.wrap(d) for d in (dims if isinstance(dims, tuple | list) else [dims])]


# ---------------------------------------------------------------- over the places of a graph


@of("sum", "mean")
def total(c: Call) -> Any:
    """The rows of each graph, and what stands at the places behind them."""
    dims = _dims(c)
    if not any(isinstance(c.x.axes[d], str) for d in dims):
        return _over_columns(c, c.x, dims)
    if [c.x.axes[d] for d in dims] != [PLACE] or c.arguments.get("dtype") is not None:
        raise NotByRows(f"{c.op} over {[c.x.axes[d] for d in dims]}")
    x = c.x
    y = sums(x)
    if c.op == "mean":
        y = y / x.of.longest
    axes = [1 if a == PLACE else a for a in x.axes if c.arguments.get("keepdim") or a != PLACE]
    for d, a in enumerate(x.axes):
        if a == PLACE and c.arguments.get("keepdim"):
            y = y.unsqueeze(1 + sum(not isinstance(b, str) for b in x.axes[:d]))
    return y.movedim(0, axes.index(GRAPH)) if axes.index(GRAPH) else y


def sums(x: Dense) -> fx.Proxy:
    """The sums over places, graphs x columns."""
    if x.paired:
        raise NotByRows("sums over pairs")
    if x.pad is None:
        raise NotByRows("a sum over places of which not all are known")
    of, reduce = x.of, torch.ops.gnnc.segment_reduce
    y = reduce(x.all_rows(), of.batch, 0, of.graphs, "sum")
    if is_all(x.pad, 0):
        return y
    ones = of.tracer.called(torch.ones, (of.count,), dtype=x.dtype)
    behind = of.longest - reduce(ones, of.batch, 0, of.graphs, "sum")
    for _ in x.columns:
        behind = behind.unsqueeze(-1)
    pads = behind * x.node(x.pad)
    if not isinstance(x.pad, Tensor) or not bool(x.pad.isfinite().all()):
        pads = torch.where(behind > 0, pads, 0)  # none of infinity is not a number
    return y + pads


@of("softmax")
def softmax(c: Call) -> Dense:
    """Over columns, or over the nodes that a node has in its graph."""
    if not isinstance(c.x.axes[c.x.wrap(c.arguments["dim"])], str):
        return along(c)
    if c.x.axes[c.x.wrap(c.arguments["dim"])] != KEY or c.arguments.get("dtype") is not None:
        raise NotByRows("a softmax over the places of a graph that may have no node")
    return over_nodes(c.x)


def over_nodes(x: Dense) -> Dense:
    """The softmax over nodes: those of the graph of a node, or of a graph."""
    if not is_all(x.pad, -math.inf) or isinstance(x.rows, Tensor):
        raise NotByRows("a softmax over places that no mask leaves out")
    of = x.of
    groups = (of.ends[0], of.count) if x.paired else (of.batch, of.graphs)
    rows = torch.ops.gnnc.segment_softmax(x.rows, *groups)
    return Dense(of, x.axes, rows, torch.zeros_like(x.pad))
