"""Rules of copies and of casts, and of numbers that are written over others."""

from typing import Any

from ..values.tensors import Arr
from .registry import Call, rule, rules

rules({"detach": lambda c: c.ctx.flat(c.x), "contiguous clone alias to_dense": lambda c: c.x})


@rule("to", "float", "double", "long", "int", "bool", "type", "type_as", "_to_copy")
def _to(c: Call) -> Arr:
    c.seen_in_result("other")
    elem = c.elem
    if elem == "i1" and c.x.elem != "i1":
        return c.ctx.compare("ne", c.x, 0)
    return c.ctx.cast(c.x, elem)


@rule("copy")
def _copy(c: Call) -> Arr:
    y = c.ctx.cast(c.ctx.lift(c.arg("src")), c.x.elem)
    return c.ctx.expand(y, c.x.dims)


@rule("fill", "zero")
def _fill(c: Call) -> Arr:
    value: Any = 0 if c.op == "zero" else c.arg("value")
    return c.ctx.expand(c.ctx.lift(value, c.x.elem), c.x.dims)
