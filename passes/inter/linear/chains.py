"""reorder-linear, chains: `(x W) a` is `x (W a)` where that is less work.

`W` and `a` live on fewer rows than `x` (unit, or a row per relation), so their product costs next
to nothing. GAT's scores of edge features and RGAT's scores of destinations lose their projection; a
projection that is needed anyway (the messages) stays, and then the score only changes where it gets
narrower. A bias in between goes along: `(x W + b) a` is `x (W a) + b a`. Between the two products
may stand a reshape that splits a dimension of the weight (heads) or drops ones. Nothing passes a
nonlinearity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ....dialects.inter.base import ValueOp
from ....dialects.inter.builder import Builder
from ....dialects.inter.pointwise import PointwiseOp
from ....dialects.inter.shapes import ContractOp, ReshapeOp
from ....dialects.inter.types import rows
from .function import LinearFunction, is_product, is_unit

MARGIN = 0.95
"""What the other bracketing must cost at most, relative to the one that is there."""


@dataclass
class Term:
    """An operand with one letter per dimension."""

    value: SSAValue
    letters: tuple[str, ...]

    @property
    def dims(self) -> tuple[int, ...]:
        return rows(self.value).dims


@dataclass
class Chain:
    """`(x w) a`, with a bias added in between or not; all letters have one meaning."""

    x: Term
    w: Term
    a: Term
    out: tuple[str, ...]
    middle: tuple[str, ...]
    a_first: bool
    first: ContractOp
    bias: SSAValue | None
    dies: bool

    def sizes(self) -> dict[str, int]:
        """What the letters stand for."""
        terms = (self.x, self.w, self.a)
        return {c: n for t in terms for c, n in zip(t.letters, t.dims, strict=True)}


def rebracket(fn: LinearFunction, op: ValueOp) -> bool:
    """Multiplies the weights of two products first where that costs less."""
    if not isinstance(op, ContractOp) or not is_product(op):
        return False
    for side in (0, 1):
        for weight in (0, 1):
            chain = _chain(op, side, weight)
            if chain is not None and _pays(fn, op, chain):
                fn.replace(op.results[0], _build(fn.before(op), op, chain))
                return True
    return False


def _chain(op: ContractOp, side: int, weight: int) -> Chain | None:
    """The chain whose first product is operand `side` of `op`, with operand `weight` as its w."""
    v, dies, bias = op.operands[side], _once(op.operands[side]), None
    reshapes: list[ReshapeOp] = []
    while True:
        owner = v.owner
        if isinstance(owner, ReshapeOp):
            reshapes.append(owner)
            v = owner.x
        elif bias is None and (found := _product_and_bias(owner)) is not None:
            v, bias = found
        else:
            break
        dies = dies and _once(v)
    if not isinstance(owner, ContractOp) or op.operands[0] is op.operands[1]:
        return None
    left, right, mid = (tuple(t) for t in owner.letters())
    names = [left, right]
    x = Term(owner.operands[1 - weight], names[1 - weight])
    w = Term(owner.operands[weight], names[weight])
    letters = _after(reshapes, mid, rows(v).dims, x, w)
    if letters is None:
        return None
    middle, w_letters, w_dims = letters
    second = op.letters()
    rename = dict(zip(second[side], middle, strict=True))
    for c in "".join(second):
        rename.setdefault(c, f"{c}'")
    a = Term(op.operands[1 - side], tuple(rename[c] for c in second[1 - side]))
    out = tuple(rename[c] for c in second[2])
    chain = Chain(x, w, a, out, middle, side == 1, owner, bias, dies)
    if w_letters != w.letters:
        chain.w = _Reshaped(w.value, w_letters, w_dims)
    return chain


@dataclass
class _Reshaped(Term):
    """A weight with some dimension split; the reshape is made when the chain is built."""

    shape: tuple[int, ...]

    @property
    def dims(self) -> tuple[int, ...]:
        return self.shape


def _once(v: SSAValue) -> bool:
    """Whether one op uses a value; those of a value that hundreds use are not counted."""
    users = (use.operation for use in v.uses)
    first = next(users, None)
    return first is not None and all(op is first for op in users)


def _product_and_bias(op: object) -> tuple[SSAValue, SSAValue] | None:
    """(the rest, the bias) where a single row is added to rows of its shape."""
    if not isinstance(op, PointwiseOp) or op.SPEC.name != "add":
        return None
    a, b = op.operands
    for v, bias in ((a, b), (b, a)):
        if is_unit(bias) and rows(bias).dims == rows(v).dims and not is_unit(v):
            return v, bias
    return None


def _after(
    reshapes: Sequence[ReshapeOp],
    mid: tuple[str, ...],
    dims: tuple[int, ...],
    x: Term,
    w: Term,
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[int, ...]] | None:
    """The letters of the middle after reshapes, with the letters and dimensions of `w` then; None
    where a reshape does more than split dimensions of `w` or add and drop ones."""
    if not reshapes:
        return mid, w.letters, w.dims
    new = reshapes[0].type.dims
    groups = _groups(dims, new)
    if groups is None:
        return None
    middle: list[str] = []
    parts: dict[str, list[tuple[str, int]]] = {}
    for i, news in enumerate(groups):
        wide = [n for n in news if n != 1]
        if len(wide) > 1 and (mid[i] in x.letters or mid[i] not in w.letters):
            return None
        names = [mid[i]] if len(wide) < 2 else [f"{mid[i]}{k}" for k in range(len(wide))]
        if len(wide) > 1:
            parts[mid[i]] = list(zip(names, wide, strict=True))
        left = iter(names)
        for n in news:
            if n == 1 and dims[i] != 1:
                return None  # a one between the parts: rare, and the letters would need a name
            middle.append(next(left))
    w_letters: list[str] = []
    w_dims: list[int] = []
    for c, n in zip(w.letters, w.dims, strict=True):
        for name, size in parts.get(c, [(c, n)]):
            w_letters.append(name)
            w_dims.append(size)
    return tuple(middle), tuple(w_letters), tuple(w_dims)


def _groups(old: Sequence[int], new: Sequence[int]) -> list[list[int]] | None:
    """For each old dimension the new ones it becomes; None where old ones merge or ones appear."""
    out: list[list[int]] = []
    rest = list(new)
    for n in old:
        taken: list[int] = []
        if n == 1:
            if rest and rest[0] == 1:
                taken.append(rest.pop(0))
        else:
            while math.prod(taken) < n and rest:
                taken.append(rest.pop(0))
            if math.prod(taken) != n:
                return None
        out.append(taken)
    return None if rest else out


# ---------------------------------------------------------------- costs and the result


def _inner(chain: Chain) -> tuple[str, ...]:
    """The letters of `w a`: what the rest still needs."""
    kept = {*chain.x.letters, *chain.out}
    both = dict.fromkeys((*chain.w.letters, *chain.a.letters))
    return tuple(c for c in both if c in kept)


def _pays(fn: LinearFunction, op: ContractOp, chain: Chain) -> bool:
    few = fn.env.join([fn.least(chain.w.value), fn.least(chain.a.value)])
    m1, m2 = fn.sizes.rows(fn.least(chain.first.results[0])), fn.sizes.rows(fn.least(op.results[0]))
    mw = fn.sizes.rows(few)
    if mw >= min(m1, m2) or not _is_chain(chain):
        return False
    size = chain.sizes()

    def work(count: float, *terms: Sequence[str]) -> float:
        return count * math.prod(size[c] for c in {c for t in terms for c in t})

    inner = _inner(chain)
    old = work(m2, chain.middle, chain.a.letters, chain.out)
    if chain.dies:
        old += work(m1, chain.x.letters, chain.w.letters)
    new = work(mw, chain.w.letters, chain.a.letters)
    new += work(m2, chain.x.letters, inner, chain.out)
    if chain.bias is not None:
        new += work(fn.sizes.rows(fn.least(chain.a.value)), chain.middle, chain.a.letters)
    return new < MARGIN * old


def _is_chain(chain: Chain) -> bool:
    """Whether every letter of the two new products occurs in two of their terms."""
    inner, size = _inner(chain), chain.sizes()
    x = [c for c in chain.x.letters if size[c] != 1 or c in inner or c in chain.out]
    products = ((chain.w.letters, chain.a.letters, inner), (x, inner, chain.out))
    return all(
        sum(c in t for t in terms) >= 2
        for terms in products
        for c in {*terms[0], *terms[1], *terms[2]}
    )


def _build(b: Builder, op: ContractOp, chain: Chain) -> SSAValue:
    inner, size = _inner(chain), chain.sizes()
    letters = dict(zip(dict.fromkeys((*size, *inner)), "abcdefghijklmnopqrstuvwxyz", strict=False))

    def text(cs: Sequence[str]) -> str:
        return "".join(letters[c] for c in cs)

    w = b.reshape(chain.w.value, chain.w.dims)
    product = b.contract(
        f"{text(chain.w.letters)},{text(chain.a.letters)}->{text(inner)}", w, chain.a.value
    )
    kept = [c for c in chain.x.letters if size[c] != 1 or c in inner or c in chain.out]
    x = b.reshape(chain.x.value, [size[c] for c in kept])
    y = b.contract(f"{text(kept)},{text(inner)}->{text(chain.out)}", x, product)
    if chain.bias is not None:
        projection = op.operands[1 if chain.a_first else 0]
        operands = [b.reshape(chain.bias, rows(projection).dims), chain.a.value]
        if chain.a_first:
            operands.reverse()
        y = b.add(y, b.contract(op.spec.data, *operands))
    return y
