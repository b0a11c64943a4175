"""Rules of lengths of vectors, of distances between them, and of what is divided by lengths."""

import math
from typing import Any

from ..errors import NoRule
from ..values import pieces
from ..values.context import Context
from ..values.elements import FLOATS
from ..values.tensors import Arr
from .reductions import require_rows, which_dims
from .registry import Call, rule


@rule("norm", "linalg_vector_norm")
def _norm(c: Call) -> Arr:
    dim, keep = which_dims(c)
    p = c.arg("p" if c.op == "norm" else "ord")
    return norm(c, c.ctx.cast(c.x, c.elem), p, dim, keep)


def norm(c: Call, x: Arr, p: Any, dim: Any, keep: bool) -> Arr:
    ctx = c.ctx
    if p in (2, 2.0, "fro", None):
        return pieces.root(ctx, ctx.total("sum", ctx.binary("mul", x, x), dim, keep))
    if p in (1, 1.0):
        return ctx.total("sum", ctx.unary("abs", x), dim, keep)
    if p in (math.inf, -math.inf):
        if x.axis in ctx.which(x, dim):
            require_rows(c, dim, RuntimeError)
        reduce = pieces.greatest if c.out.requires_grad else Context.total
        return reduce(ctx, "max" if p > 0 else "min", ctx.unary("abs", x), dim, keep)
    if isinstance(p, int | float) and p > 1 and x.elem in FLOATS:
        return _of_power(ctx, x, float(p), dim, keep)
    raise NoRule(f"the norm of order {p}")


def _of_power(ctx: Context, x: Arr, p: float, dim: Any, keep: bool) -> Arr:
    """The norm of an order above 1, whose gradient at 0 is 0: the root is taken of no 0."""
    total = ctx.total("sum", ctx.binary("pow", ctx.unary("abs", x), p), dim, keep)
    zero = ctx.compare("eq", total, 0)
    root = ctx.binary("pow", ctx.where(zero, 1.0, total, elem=x.elem), 1 / p)
    return ctx.where(zero, 0.0, root, elem=x.elem)


@rule("linalg_norm")
def _linalg_norm(c: Call) -> Arr:
    """Of vectors, or of all numbers where no order is given."""
    p, (dim, keep) = c.arg("ord"), which_dims(c)
    one = isinstance(dim, int) or c.x.rank < 2
    if p is not None and not one and not (isinstance(dim, tuple | list) and len(dim) == 1):
        raise NoRule(f"the norm of order {p} of matrices")
    return norm(c, c.ctx.cast(c.x, c.elem), p, dim, keep)


@rule("linalg_matrix_norm")
def _matrix_norm(c: Call) -> Arr:
    p, (dim, keep) = c.arg("ord"), which_dims(c)
    if p != "fro":
        raise NoRule(f"the norm of order {p} of matrices")
    return norm(c, c.ctx.cast(c.x, c.elem), p, dim, keep)


@rule("dist")
def _dist(c: Call) -> Arr:
    return norm(c, c.ctx.binary("sub", c.x, c.tensor("other")), c.arg("p"), None, False)


def distance(c: Call, a: Arr, b: Arr, p: Any, eps: float, keep: bool = False) -> Arr:
    """The norm of the differences of two vectors each, to which torch adds a little."""
    if "i1" in (a.elem, b.elem):
        raise NoRule("a difference of booleans, which torch refuses")
    apart = c.ctx.binary("add", c.ctx.binary("sub", a, b), eps)
    return norm(c, apart, p, apart.rank - 1, keep)


@rule("pairwise_distance")
def _pairwise_distance(c: Call) -> Arr:
    p, eps, keep = c.arg("p"), float(c.number("eps")), bool(c.arg("keepdim"))
    return distance(c, c.tensor("x1"), c.tensor("x2"), p, eps, keep)


@rule("cdist")
def _cdist(c: Call) -> Arr:
    """The distances of each row of one tensor from each of another, one of them of constant size.
    Those of order inf are torch's: their gradient goes to all of several largest differences."""
    a, b, p = c.tensor("x1"), c.tensor("x2"), c.number("p")
    c.arg("compute_mode")  # how torch computes them; the distances are the same
    if p == math.inf:
        raise NoRule("the distances of order inf")
    apart = c.ctx.binary("sub", c.ctx.unsqueeze(a, a.rank - 1), c.ctx.unsqueeze(b, b.rank - 2))
    return norm(c, apart, p, apart.rank - 1, False)


@rule("linalg_vecdot")
def _vecdot(c: Call) -> Arr:
    product = c.ctx.binary("mul", c.tensor("x"), c.tensor("y"))
    if product.elem not in FLOATS:
        raise NoRule("a product of integers")
    return c.ctx.total("sum", product, c.arg("dim"), False)


@rule("normalize")
def _normalize(c: Call) -> Arr:
    p, dim, eps = c.arg("p"), c.dim(), c.number("eps")
    length = pieces.limited(c.ctx, norm(c, c.x, p, dim, True), float(eps))
    return c.ctx.binary("div", c.x, length)


@rule("cosine_similarity")
def _cosine(c: Call) -> Arr:
    a, b, ctx = c.tensor("x1"), c.tensor("x2"), c.ctx
    dim, eps = a.wrap(c.arg("dim")), float(c.number("eps"))
    if a.rank != b.rank or (a.dims[dim] == 1) != (b.dims[dim] == 1):
        raise NoRule("cosine_similarity of tensors that are broadcast along the dimension")
    dot = ctx.total("sum", ctx.binary("mul", a, b), dim, False)
    lengths = (_floored(ctx, norm(c, x, 2, dim, False), eps) for x in (a, b))
    return ctx.binary("div", dot, ctx.binary("mul", *lengths))


def _floored(ctx: Context, length: Arr, least: float) -> Arr:
    """A length, or the least one; torch takes the gradient of the length there too."""
    still = ctx.flat(length)
    moved = ctx.binary("sub", length, still)
    return ctx.binary("add", moved, pieces.limited(ctx, still, least))


@rule("_weight_norm")
def _weight_norm(c: Call) -> Arr:
    """The direction of v, at each place of a dimension (all of v where it is -1), times g."""
    v, dim = c.tensor("v"), c.arg("dim")
    if v.rank < 2 and dim != -1:
        raise NoRule("the length of each number of a vector")
    others = None if dim == -1 else [k for k in range(v.rank) if k != v.wrap(dim)]
    return c.ctx.binary("mul", v, c.ctx.binary("div", c.tensor("g"), norm(c, v, 2, others, True)))
