"""Rules of dense layers: products and dropout."""

import string
from collections.abc import Sequence
from typing import Any

from ..errors import NoRule
from ..values.products import einsum, linear, matmul
from ..values.tensors import Arr
from .registry import Call, rule, rules

rules(
    {
        "linear": lambda c: linear(c.ctx, c.x, c.tensor("weight"), c.optional("bias")),
        "matmul mm mv dot bmm": lambda c: matmul(c.ctx, c.x, c.tensor("other")),
        "outer": lambda c: einsum(c.ctx, "a,b->ab", c.x, c.tensor("other")),
    }
)


_PRODUCTS = {
    "addmm": ("mat1", "mat2"),
    "addmv": ("mat", "vec"),
    "addr": ("vec1", "vec2"),
    "baddbmm": ("batch1", "batch2"),
    "addbmm": ("batch1", "batch2"),
}


@rule(*_PRODUCTS)
def _addmm(c: Call) -> Arr:
    """`beta * x + alpha * (mat1 @ mat2)`; a beta of 0 keeps what is not finite in x out."""
    a, b = (c.tensor(name) for name in _PRODUCTS[c.op])
    y = einsum(c.ctx, "a,b->ab", a, b) if c.op == "addr" else matmul(c.ctx, a, b)
    if c.op == "addbmm":
        y = c.ctx.total("sum", y, 0)
    alpha, beta = c.arg("alpha"), c.arg("beta")
    if alpha != 1:
        y = c.ctx.binary("mul", y, alpha)
    if beta == 0:
        c.seen_in_result("input")
        return y
    return c.ctx.binary("add", c.x if beta == 1 else c.ctx.binary("mul", c.x, beta), y)


@rule("inner")
def _inner(c: Call) -> Arr:
    """The products of the last dimensions, of each with each."""
    a, b = c.x, c.tensor("other")
    if not a.rank or not b.rank:
        return c.ctx.binary("mul", a, b)
    letters = string.ascii_lowercase
    left, right = letters[: a.rank - 1], letters[a.rank - 1 : a.rank + b.rank - 2]
    return einsum(c.ctx, f"{left}z,{right}z->{left}{right}", a, b)


@rule("tensordot")
def _tensordot(c: Call) -> Arr:
    """The last dimensions of one times the first of the other, or those that are listed."""
    a, b, dims = c.tensor("a"), c.tensor("b"), c.arg("dims")
    if isinstance(dims, int):
        dims = (range(a.rank - dims, a.rank), range(dims))
    mine, theirs = ([dims_of] if isinstance(dims_of, int) else dims_of for dims_of in dims)
    p = list(string.ascii_lowercase[: a.rank])
    q = list(string.ascii_lowercase[a.rank : a.rank + b.rank])
    for i, j in zip(mine, theirs, strict=True):
        q[b.wrap(j)] = p[a.wrap(i)]
    out = "".join(x for x in p + q if (x in p) != (x in q))
    return einsum(c.ctx, f"{''.join(p)},{''.join(q)}->{out}", a, b)


@rule("bilinear")
def _bilinear(c: Call) -> Arr:
    """`a^T W_z b` for each output z."""
    a, b, w, bias = c.tensor("input1"), c.tensor("input2"), c.tensor("weight"), c.optional("bias")
    if len({a.elem, b.elem, w.elem}) > 1:
        raise NoRule("a product of values of several types")
    lead = string.ascii_lowercase[: a.rank - 1]
    y = einsum(c.ctx, f"{lead}x,zxy->{lead}zy", a, w)
    y = einsum(c.ctx, f"{lead}zy,{lead}y->{lead}z", y, b)
    return y if bias is None else c.ctx.binary("add", y, bias)


@rule("einsum")
def _einsum(c: Call) -> Arr:
    """Products from left to right; a letter is summed as soon as nobody else has it."""
    spec, xs = _equation(c.arg("args"))
    if "." in spec:
        raise NoRule(f"einsum {spec!r} with an ellipsis")
    left, arrow, out = spec.partition("->")
    if not arrow:  # in the order of the alphabet what occurs once
        out = "".join(a for a in sorted({*left} - {","}) if left.count(a) == 1)
    mine, *others = left.split(",")
    x, *rest = xs
    if not others:
        return _summed(c, x, mine, out)
    for k, (letters, y) in enumerate(zip(others, rest, strict=True)):
        later = {*out, *"".join(others[k + 1 :])}
        kept = "".join(a for a in dict.fromkeys(mine + letters) if a in later)
        last = k == len(others) - 1
        x = einsum(c.ctx, f"{mine},{letters}->{out if last else kept}", x, y)
        mine = kept
    return x


def _summed(c: Call, x: Arr, letters: str, out: str) -> Arr:
    """The einsum of one tensor: sums over the letters that are not in the result, which has its own
    order."""
    if len({*letters}) < len(letters):
        raise NoRule("a diagonal in einsum")
    gone = [i for i, letter in enumerate(letters) if letter not in out]
    x = c.ctx.total("sum", x, gone, False) if gone else x
    kept = [letter for letter in letters if letter in out]
    return c.ctx.permute(x, [kept.index(letter) for letter in out])


def _equation(args: Sequence[Any]) -> tuple[str, Sequence[Arr]]:
    """The letters and the tensors of `einsum("ij,jk", a, b)`, `einsum("ij,jk", [a, b])` and
    `einsum(a, [0, 1], b, [1, 2], [0, 2])`, whose numbers are letters in their order."""
    if isinstance(args[0], str):
        listed = len(args) == 2 and isinstance(args[1], tuple | list)
        return args[0].replace(" ", ""), args[1] if listed else args[1:]
    pairs = len(args) // 2
    lists = [*args[1 : 2 * pairs : 2], *args[2 * pairs :]]
    used = sorted({n for numbers in lists for n in numbers if n is not Ellipsis})
    if any(Ellipsis in numbers for numbers in lists) or len(used) > 26:
        raise NoRule("einsum with an ellipsis, or of more than 26 dimensions")
    words = ["".join(string.ascii_lowercase[used.index(n)] for n in w) for w in lists]
    spec = "->".join([",".join(words[:pairs]), *words[pairs:]])
    return spec, args[0 : 2 * pairs : 2]


@rule("dropout", "dropout1d", "feature_dropout")
def _dropout(c: Call) -> Arr:
    p, training = c.number("p"), c.arg("training")
    if not training or p == 0:
        return c.x
    if c.op != "dropout":
        raise NoRule("dropout of whole columns")
    return dropout(c, c.x, float(p))


def dropout(c: Call, x: Arr, p: float, place: Sequence[Arr] = ()) -> Arr:
    """A dropout site: its own stream of random bits, keyed by the row and the column. `place` has
    these for numbers that are entries of other rows."""
    if p == 1:
        return c.ctx.binary("mul", x, 0.0)
    over = x.home
    operands = [x.v, c.key().v, *(n.v for n in place)]
    v = c.ctx.values.make(
        "dropout", operands, over, x.v.shape, x.elem, p=p, site=c.new_site(), over=over
    )
    return Arr(x.dims, v)
