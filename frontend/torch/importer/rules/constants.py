"""Rules of tensors made from nothing."""

import math
from typing import Any

from torch._subclasses.fake_tensor import unset_fake_temporarily

from ..errors import NoRule
from ..values.nodes import Set
from ..values.sizes import expression
from ..values.tensors import Arr, Sym, numbers
from .registry import Call, rule, rules


def filled(c: Call, value: bool | int | float | Sym | Arr) -> Arr:
    """A tensor of the example's shape and type with one value everywhere."""
    c.seen_in_result("input", "size")
    dims, elem = c.ctx.sizes.dims(c.out), c.elem
    if isinstance(value, Sym | Arr):
        # of a number torch keeps no history
        v = c.ctx.values.stop(c.ctx.lift(value, elem).v)
        return c.ctx.expand(Arr([1] * len(dims), c.ctx.values.reshape(v, [1] * len(dims))), dims)
    return Arr(list(dims), c.ctx.values.const(value, elem, numbers(dims)))


rules(
    {
        "zeros zeros_like new_zeros": lambda c: filled(c, 0),
        "empty empty_like new_empty": lambda c: filled(c, 0),  # no numbers are defined
        "ones ones_like new_ones": lambda c: filled(c, 1),
        "full full_like new_full": lambda c: filled(c, c.arg("fill_value")),
        "scalar_tensor": lambda c: filled(c, c.arg("s")),
    }
)


@rule("tensor", "as_tensor")
def _tensor(c: Call) -> Arr:
    data, elem = c.arg("data"), c.elem
    if isinstance(data, Arr):
        copy = c.ctx.cast(data, elem)
        return c.ctx.flat(copy) if c.op == "tensor" else copy
    if isinstance(data, bool | int | float | Sym):
        return filled(c, data)
    if _has_symbols(data):
        raise NoRule("a tensor written out with symbolic numbers")
    shape = [int(d) for d in c.out.shape]
    return Arr(list(shape), c.ctx.values.literal(_frozen(data), shape, elem))


def _has_symbols(data: Any) -> bool:
    if isinstance(data, tuple | list):
        return any(_has_symbols(d) for d in data)
    return isinstance(data, Sym | Arr)


def _frozen(data: Any) -> Any:
    return tuple(_frozen(d) for d in data) if isinstance(data, tuple | list) else data


@rule("linspace", "logspace", "eye", "tril_indices", "triu_indices")
def _known_now(c: Call) -> Arr:
    """What torch makes of constants alone, while the program is made."""
    node, shape = c.node, c.out.shape
    if node.all_input_nodes or not all(type(d) is int for d in shape):
        raise NoRule(f"{c.op} of numbers that are no constants")
    if not 0 < math.prod(shape) <= _WRITTEN_OUT or not callable(node.target):
        raise NoRule(f"{c.op} of {math.prod(shape)} numbers")
    c.seen_in_result(*c.arguments)
    with unset_fake_temporarily():
        data = node.target(*node.args, **node.kwargs).tolist()
    return Arr(list(shape), c.ctx.values.literal(_frozen(data), tuple(shape), c.elem))


_WRITTEN_OUT = 4096
"""So many numbers are written out in a program."""


@rule("arange")
def _arange(c: Call) -> Arr:
    start, step = c.arg("start", 0), c.arg("step", 1)
    c.seen_in_result("end")
    if not (isinstance(start, int) and isinstance(step, int)):
        raise NoRule("arange that does not start at a whole constant, or with such a step")
    (dim,) = c.ctx.sizes.dims(c.out)
    elem = c.elem
    values = c.ctx.values
    if isinstance(dim, Set):
        count = Arr([dim], values.make("iota", [], dim, (), "i64"))
    else:
        count = Arr([dim], values.count_up(dim))
    if step != 1:
        count = c.ctx.binary("mul", count, step)
    if start != 0:
        count = c.ctx.binary("add", count, start)
    return c.ctx.cast(count, elem)


@rule("one_hot")
def _one_hot(c: Call) -> Arr:
    c.seen_in_result("num_classes")
    n = c.out.shape[-1]
    if expression(n).free_symbols:
        raise NoRule("one_hot without num_classes")
    if c.x.elem != "i64":
        raise NoRule(f"one_hot of {c.x.elem}, which torch refuses")
    c.ctx.require_below(c.x, int(n))
    x = c.ctx.unsqueeze(c.x, c.x.rank)
    classes = Arr([int(n)], c.ctx.values.count_up(int(n), c.x.elem))
    return c.ctx.cast(c.ctx.compare("eq", x, classes), "i64")
