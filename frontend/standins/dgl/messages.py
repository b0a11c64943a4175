"""From features of nodes and edges to results at targets: what one call of message passing does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from .base import DGLError
from .frames import Rows
from .function import TargetCode, is_message, is_reduce
from .mailbox import reduce_by_user
from .one_node import one_node
from .reduce import counts, reduce_messages, without_messages
from .topology import EType
from .udf import EdgeBatch, NodeBatch

Features = Mapping[str, Tensor]
SIDES = {TargetCode.SRC: "sources", TargetCode.DST: "targets", TargetCode.EDGE: "edges"}
"""The features of a `Passage` that an operand is one of."""


class Passage:
    """The edges that a call runs over, and the features that it reads.

    `src` has rows of the frame `sources`. Results have `num_dst` rows: `dst` has those, `targets`
    their features. `nodes` (the ids of the targets) and `ids` (sources, targets and ids of the
    edges) are what users' functions are told, made when they ask. While a call is traced, how many
    edges there are is a question only if `counted`.
    """

    def __init__(
        self,
        etype: EType,
        src: Tensor,
        dst: Tensor,
        num_dst: int,
        sources: Features,
        targets: Features,
        edges: Features,
        nodes: Callable[[], Tensor],
        ids: Callable[[], tuple[Tensor, Tensor, Tensor]],
    ):
        self.etype, self.src, self.dst, self.num_dst = etype, src, dst, num_dst
        self.sources, self.targets, self.edges = sources, targets, edges
        self.nodes, self.ids = nodes, ids
        self.counted = True

    def operand(self, target: int, field: str) -> Tensor:
        """A feature as one row an edge."""
        if target == TargetCode.SRC:
            return self.sources[field].index_select(0, self.src)
        if target == TargetCode.DST:
            return self.targets[field].index_select(0, self.dst)
        return self.edges[field]


def messages(passage: Passage, function: Any) -> dict[str, Tensor]:
    """The messages of a known or a user's function, one row an edge."""
    if not is_message(function):
        return function(edge_batch(passage))
    if not hasattr(function, "binary_op"):
        return {function.out_field: passage.operand(function.target, function.in_field)}
    left = passage.operand(function.lhs, function.lhs_field)
    right = passage.operand(function.rhs, function.rhs_field)
    return {function.out_field: combine(function.binary_op, left, right)}


def read_together(passages: Sequence[Passage], function: Any) -> Sequence[Passage]:
    """Edges of several types, for a known message of all: reading is one node of autograd."""
    if hasattr(function, "binary_op"):
        read = [(function.lhs, function.lhs_field), (function.rhs, function.rhs_field)]
    else:
        read = [(function.target, function.in_field)]
    places = [(p, SIDES[target], field) for p in passages for target, field in read]
    values = one_node([getattr(p, side)[field] for p, side, field in places])
    for (passage, side, field), value in zip(places, values, strict=True):
        setattr(passage, side, {**getattr(passage, side), field: value})
    return passages


def edge_batch(passage: Passage) -> EdgeBatch:
    """What a user's function of edges is given."""
    src, dst = Rows(passage.sources, passage.src), Rows(passage.targets, passage.dst)
    size = passage.src.shape[0]
    return EdgeBatch(passage.ids, size, passage.etype, src, passage.edges, dst)


def combine(operation: str, left: Tensor, right: Tensor) -> Tensor:
    """An operation on two features of the same edges, `(edges, ..)`.

    The one with fewer dimensions gets ones after the first, and then NumPy's rules hold. `dot` sums
    the last dimension and keeps it, but for two features of one number an edge. Raises `DGLError`
    for features of two types.
    """
    if left.dtype != right.dtype:
        raise DGLError(
            f"The features of {operation} have two types, {left.dtype} and {right.dtype}: convert "
            "one of them to the other's."
        )
    flat = left.dim() == right.dim() == 1
    left, right = _padded(left, right.dim()), _padded(right, left.dim())
    if operation == "add":
        return left + right
    if operation == "sub":
        return left - right
    if operation == "mul":
        return left * right
    if operation == "div":
        return left / right
    if operation == "dot":
        return left * right if flat else (left * right).sum(-1, keepdim=True)
    raise DGLError(f"{operation!r} is not an operation of messages: add, sub, mul, div, dot")


def _padded(value: Tensor, dims: int) -> Tensor:
    missing = dims - value.dim()
    if missing <= 0:
        return value
    return value.reshape((value.shape[0],) + (1,) * missing + value.shape[1:])


def message_passing(
    passage: Passage, message: Any, reduce: Any, apply: Any = None, infinite: bool = False
) -> dict[str, Tensor]:
    """Messages, reduced at the targets, and a user's function of these and the old features.

    Returns features of `num_dst` rows. Where no edge leads, max and min are zero, or infinities
    with `infinite`. Raises `DGLError` if a known message and a known reduce
    function are about different fields.
    """
    if is_message(message) and is_reduce(reduce) and message.out_field != reduce.msg_field:
        raise DGLError(
            f"Invalid message ({message}) and reduce ({reduce}) function pairs. The output field "
            "of the message function must be equal to the message field of the reduce function."
        )
    sent = messages(passage, message)
    if is_reduce(reduce):
        received = sent[reduce.msg_field]
        reduced = reduce_messages(received, passage.dst, passage.num_dst, reduce.name)
        if infinite:
            reduced = without_messages(reduced, passage.dst, reduce.name)
        results = {reduce.out_field: reduced}
    else:
        results = reduce_by_user(passage, reduce, sent)
    return applied(passage, apply, results)


def applied(passage: Passage, apply: Any, results: dict[str, Tensor]) -> dict[str, Tensor]:
    """What a user's function makes of results at the targets and of their other features."""
    if apply is None:
        return results
    data = dict(results)
    for key in passage.targets:
        if key not in data:
            data[key] = passage.targets[key]
    return apply(NodeBatch(passage.nodes(), passage.etype[2], data))


def as_before_without_edges(passage: Passage, results: dict[str, Tensor]) -> dict[str, Tensor]:
    """What a user's reduce function, traced as called for all targets at once, leaves of their
    features: without any edge it is not called, and all of them stay as they were."""
    some = counts(passage.dst, passage.num_dst).sum() > 0
    found = dict(results)
    for key, new in results.items():
        old = passage.targets[key] if key in passage.targets else None
        if old is not None and (old.shape, old.dtype) == (new.shape, new.dtype):
            found[key] = torch.where(some, new, old)
    return found


def cross_reduce(
    results: list[dict[str, Tensor]], reducer: str | Callable[[list[Tensor]], Tensor]
) -> dict[str, Tensor]:
    """Joins what several edge types lead to the same nodes; `stack` makes a second dimension."""
    if len(results) == 1 and reducer != "stack":
        return results[0]
    keys = dict.fromkeys(key for result in results for key in result)
    return {key: _joined([r[key] for r in results if key in r], reducer) for key in keys}


def _joined(values: list[Tensor], reducer: str | Callable[[list[Tensor]], Tensor]) -> Tensor:
    if callable(reducer):
        return reducer(values)
    if reducer == "stack":
        return torch.stack(values, 1)
    if reducer not in ("sum", "max", "min", "mean"):
        raise DGLError(
            'Invalid cross type reducer. Must be one of "sum", "max", "min", "mean" or "stack".'
            f" Got {reducer!r}."
        )
    if len(values) == 1:
        return values[0]
    stacked = torch.stack(values, 0)
    if reducer == "sum":
        return stacked.sum(0)
    if reducer == "mean":
        return stacked.mean(0)
    return stacked.amax(0) if reducer == "max" else stacked.amin(0)
