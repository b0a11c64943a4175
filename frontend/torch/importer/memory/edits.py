"""Edits in place as values: what is edited through a view is carried back to the tensor that the
memory belongs to; every other view of it is made again when it is read next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import fx

from ..errors import NoRule, Reject, node_name
from ..rules import RULES, Call
from ..values.nodes import sources
from ..values.sizes import example
from ..values.tensors import Arr
from ..values.views import WHOLE, put, spelled_out, view
from .aliases import Aliases, same_place
from .effects import call_of, written

# ------------------------------------------------------------------- views undone


def carried_back(call: Call, old: Arr, new: Arr) -> Arr:
    """What the operand `old` of a view becomes when the view's numbers become `new`.

    Raises:
        NoRule: this view cannot be undone.
    """
    if same_place(call.example, example(call.form.arguments["input"])):
        return new
    undo = UNDO.get(call.op)
    if undo is None:
        raise NoRule(f"an edit through the view that {call.form.spelled} gives")
    return undo(call, old, new)


def carried_back_from_item(split: Call, k: int, old: Arr, new: Arr) -> Arr:
    """The same for one of several views that a call gives: chunks, or rows one by one."""
    dim = old.wrap(split.arg("dim", 0))
    if split.op == "unbind":
        return put(split.ctx, old, (*[WHOLE] * dim, k), new)
    sizes = [piece.shape[dim] for piece in split.example[: k + 1]]
    if not all(isinstance(n, int) for n in sizes):
        raise NoRule("an edit of one of several parts of rows")
    piece = slice(sum(sizes[:k]), sum(sizes[: k + 1]))
    return put(split.ctx, old, (*[WHOLE] * dim, piece), new)


def _undo_shape(c: Call, old: Arr, new: Arr) -> Arr:
    like = example(c.form.arguments["input"])
    assert isinstance(like, torch.Tensor)
    if like.dtype != c.out.dtype:
        raise NoRule("an edit through a view as another dtype")
    return view(c.ctx, new, like)


def _undo_transpose(c: Call, old: Arr, new: Arr) -> Arr:
    """A transposition, of two dimensions or of all, undoes itself."""
    return RULES[c.op](replace(c, arguments={**c.arguments, "input": new}))


def _undo_permute(c: Call, old: Arr, new: Arr) -> Arr:
    order = [old.wrap(d) for d in c.arg("dims")]
    return c.ctx.permute(new, [order.index(d) for d in range(old.rank)])


def _undo_narrow(c: Call, old: Arr, new: Arr) -> Arr:
    dim, start = old.wrap(c.arg("dim")), c.arg("start")
    length = c.out.shape[dim]
    if type(start) is not int or not isinstance(length, int):
        raise NoRule("an edit of a slice with symbolic bounds")
    start = start + old.dims[dim] if start < 0 and isinstance(old.dims[dim], int) else start
    return put(c.ctx, old, (*[WHOLE] * dim, slice(start, start + length)), new)


def _undo_getitem(c: Call, old: Arr, new: Arr) -> Arr:
    given = c.arg("index")
    given = given if isinstance(given, tuple) else (given,)
    index = spelled_out(given, old.rank)
    kept = [i for i in index if i is None or isinstance(i, slice)]
    kept += [WHOLE] * (new.rank - len(kept))
    for dim in reversed(range(len(kept))):
        if kept[dim] is None:  # a dimension that the index has added
            dims = [*new.dims[:dim], *new.dims[dim + 1 :]]
            new = Arr(dims, c.ctx.values.reshape(new.v, [d for d in dims if isinstance(d, int)]))
    return put(c.ctx, old, tuple(i for i in index if i is not None), new)


_RESHAPES = "view view_as reshape reshape_as flatten ravel squeeze unsqueeze unflatten"
UNDO: dict[str, Callable[[Call, Arr, Arr], Arr]] = {
    **dict.fromkeys(_RESHAPES.split(), _undo_shape),
    **dict.fromkeys(("transpose", "t", "T", "mT"), _undo_transpose),
    "permute": _undo_permute,
    "select": lambda c, old, new: put(
        c.ctx, old, (*[WHOLE] * old.wrap(c.arg("dim")), c.arg("index")), new
    ),
    "narrow": _undo_narrow,
    "getitem": _undo_getitem,
}


def check_operands(node: fx.Node, aliases: Aliases) -> None:
    """Raises Reject where an edit reads the memory that it writes to, unless number by number from
    the same places: torch refuses it, or the result depends on the order in which it goes."""
    call = call_of(node)
    by_index = call.op.startswith(("index", "scatter", "masked", "put"))
    for base in written(node):
        for x in node.all_input_nodes:
            if x is base or aliases.key(x) != aliases.key(base):
                continue
            if not same_place(example(x), example(base)):
                raise Reject(f"it reads {x.name}, which lies in the memory that it edits")
        if by_index and sum(a is base for a in call.arguments.values()) > 1:
            raise Reject(f"it reads {base.name} by index while it edits it")


def check_attached(old: Arr, new: Arr, base: fx.Node) -> None:
    """Raises Reject where an edit leaves nothing of what a tensor was made from: in torch its
    gradient is zero then, not missing."""
    if set(sources(old.v)).difference(sources(new.v)):
        raise Reject(f"it overwrites all of {base.name}, whose gradient is zero then")


def assigns_itself(node: fx.Node, aliases: Aliases) -> bool:
    """Whether an assignment gives an item to the place that it lies in: the end of
    `x[i] += y`, where the item was edited already."""
    base, index, value = node.args
    if not isinstance(value, fx.Node) or not isinstance(base, fx.Node):
        return False
    item = aliases.itself(value)
    source = aliases.source(item)
    return (
        source is not None
        and node_name(item) == "getitem"
        and aliases.itself(source) is aliases.itself(base)
        and item.args[1] == index
    )
