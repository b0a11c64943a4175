"""Rules of products, and of running sums and products along columns."""

from ..errors import NoRule
from ..values.tensors import Arr
from .reductions import which_dims
from .registry import Call, rule

_ONE_BY_ONE = 64
"""So many columns are taken one by one."""


def _columns(c: Call, x: Arr, dim: int) -> list[Arr]:
    size = x.dims[dim]
    if not isinstance(size, int):
        raise NoRule(f"{c.op} along the rows of a set")
    if not 0 < size <= _ONE_BY_ONE:
        raise NoRule(f"{c.op} of {size} columns (1 to {_ONE_BY_ONE})")
    return [c.ctx.narrow(x, dim, k, k + 1) for k in range(size)]


@rule("cumsum", "cumprod")
def _running(c: Call) -> Arr:
    x, name = c.ctx.cast(c.x, c.elem), "add" if c.op == "cumsum" else "mul"
    if x.rank == 0:
        c.seen_in_result("dim")
        return x
    dim = c.dim()
    first, *rest = _columns(c, x, dim)
    found = [first]
    for y in rest:
        found.append(c.ctx.binary(name, found[-1], y))
    return c.ctx.concat(found, dim)


@rule("prod")
def _prod(c: Call) -> Arr:
    """A chain of products: its gradient is that of each factor also where others are 0."""
    (dim, keep), x = which_dims(c), c.ctx.cast(c.x, c.elem)
    dims = c.ctx.which(x, dim)
    if x.axis in dims:
        raise NoRule("a product of the rows of a set (prod along columns, or scatter by mul)")
    for d in dims:
        y, *rest = _columns(c, x, d)
        for z in rest:
            y = c.ctx.binary("mul", y, z)
        x = y
    return x if keep or not dims else _without(c, x, dims)


def _without(c: Call, x: Arr, dims: list[int]) -> Arr:
    for d in sorted(dims, reverse=True):
        x = c.ctx.select(x, d, 0)
    return x
