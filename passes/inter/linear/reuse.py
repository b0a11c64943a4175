"""reorder-linear, reuse: a sum over edges that follows from one that is there already.

The backward of softmax sums `p * dp` per destination, and where the messages are `p * z`, dp is
`G . z` with the gradient G read at the destination. G leaves the sum, `sum(p * (G . z))` is
`G . sum(p * z)`, and that sum is the layer's output: no pass over the edges is left for it. Dropout
on p may stand in between: `p * dropout(G . z)` is `dropout(p) * (G . z)` for one key and site.

Done only where the wider sum is there: computing it for this would cost more.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ....dialects.inter.base import ValueOp
from ....dialects.inter.reduce import DropoutOp, ReduceOp
from ....dialects.inter.shapes import ContractOp
from ....dialects.inter.types import rows
from .factors import Factor, Place, factorise, without_ones
from .function import LinearFunction, at_key, is_product, linear_reduce, plain_at

Placed = tuple[object, tuple[str, ...], bool]
"""A factor for comparison: what it reads, its wide dimensions' letters, whether it divides."""


def reuse_sum(fn: LinearFunction, op: ValueOp) -> bool:
    """Rewrites one reduction by an earlier one; says whether it did."""
    reduce = linear_reduce(op.results[0])
    if reduce is None or not reduce.along_keys:
        return False
    product = factorise(reduce.x)
    if product.negative:
        return False
    for f in product.factors:
        rest = [g for g in product.factors if g is not f]
        found = _product_of(f, rest)
        if found is None:
            continue
        contract, rest = found
        for side in (0, 1):
            if _rewrite(fn, reduce, contract, side, f.place, rest):
                return True
    return False


def _product_of(f: Factor, rest: list[Factor]) -> tuple[ContractOp, list[Factor]] | None:
    """The factor as a product over numbers of the row, and the other factors; a dropout on it goes
    to the only other factor, where that is dropped alike somewhere."""
    value, owner = f.value, f.value.owner
    if f.inverse:
        return None
    if isinstance(owner, DropoutOp) and len(rest) == 1 and not rest[0].inverse:
        if rows(owner.x).dims != rows(rest[0].value).dims:
            return None
        for use in rest[0].value.uses:
            if _same_dropout(use.operation, owner) and use.operation is not owner:
                rest, value = [rest[0].of(use.operation.results[0])], owner.x
                break
    owner = without_ones(value).owner
    if isinstance(owner, ContractOp) and is_product(owner):
        return owner, rest
    return None


def _same_dropout(op: Operation, other: DropoutOp) -> bool:
    return (
        isinstance(op, DropoutOp)
        and op.operands[1:] == other.operands[1:]
        and op.properties == other.properties
    )


def _wide(v: SSAValue) -> list[int]:
    """The dimensions of a row that are not 1."""
    return [n for n in rows(v).dims if n != 1]


def _wide_letters(term: str, v: SSAValue) -> str:
    """The letters of those."""
    return "".join(c for c, n in zip(term, rows(v).dims, strict=True) if n != 1)


@dataclass
class Wanted:
    """A sum of products to look for: its factors, and the one that tells letters from places."""

    factors: Counter[Placed]
    key: object
    letters: str


def _rewrite(
    fn: LinearFunction,
    reduce: ReduceOp,
    contract: ContractOp,
    side: int,
    place: Place,
    rest: list[Factor],
) -> bool:
    """With operand `side` of the product the same in each group."""
    read = plain_at(contract.operands[side])
    if len(reduce.along_keys) != 1 or read is None or not fn.facts.finite(read.x):
        return False
    name, path = at_key(fn.env, read)
    if name != reduce.over.set or path not in fn.env.same(name, reduce.along_keys[0]):
        return False
    inner = contract.operands[1 - side]
    terms = contract.letters()
    outside, inside = (_wide_letters(terms[i], contract.operands[i]) for i in (side, 1 - side))
    out = _wide_letters(terms[2], contract.results[0])
    letter = dict(zip((p for p in place if p is not None), out, strict=True))
    if [i for i, n in enumerate(reduce.type.dims) if n != 1] != sorted(letter):
        return False
    key = (_identity(fn, inner), tuple(inside), False)
    factors = Counter([*(_placed(fn, g, letter) for g in rest), key])
    for earlier in _earlier(fn, reduce):
        order = _matches(fn, earlier, Wanted(factors, key[0], inside))
        if order is None or not _is_spec(outside, order, out):
            continue
        b = fn.before(reduce)
        operands = [b.reshape(v, _wide(v)) for v in (read.x, earlier.results[0])]
        new = b.contract(f"{outside},{order}->{out}", *operands)
        fn.replace(reduce.results[0], b.reshape(new, reduce.type.dims))
        return True
    return False


def _is_spec(*terms: str) -> bool:
    return all(sum(c in t for t in terms) >= 2 for c in {*"".join(terms)})


def _identity(fn: LinearFunction, v: SSAValue) -> object:
    """Equal for reads of one value through one map, dimensions of 1 aside."""
    v = without_ones(v)
    read = plain_at(v)
    return v if read is None else (*at_key(fn.env, read), without_ones(read.x))


def _placed(fn: LinearFunction, f: Factor, letter: dict[int, str]) -> Placed:
    places = tuple(letter.get(p, "?") for p in f.place if p is not None)
    return _identity(fn, f.value), places, f.inverse


def _earlier(fn: LinearFunction, reduce: ReduceOp) -> list[ReduceOp]:
    """The reductions of the same rows in the same groups that are done before."""
    out: list[ReduceOp] = []
    for op in fn.func.body.block.ops:
        if op is reduce:
            break
        if (
            isinstance(op, ReduceOp)
            and op.set is reduce.set
            and (op.kind, op.over_keys, op.along) == (reduce.kind, reduce.over_keys, reduce.along)
        ):
            out.append(op)
    return out


def _matches(fn: LinearFunction, reduce: ReduceOp, wanted: Wanted) -> str | None:
    """The letters of the result's wide dimensions, where `reduce` sums the wanted product."""
    product = factorise(reduce.x)
    if product.negative or len(product.factors) != sum(wanted.factors.values()):
        return None
    wide = [i for i, n in enumerate(product.dims) if n != 1]
    for f in product.factors:
        places = [p for p in f.place if p is not None]
        if f.inverse or _identity(fn, f.value) != wanted.key or sorted(places) != wide:
            continue
        letter = dict(zip(places, wanted.letters, strict=True))
        if Counter(_placed(fn, g, letter) for g in product.factors) == wanted.factors:
            return "".join(letter[i] for i in wide)
    return None
