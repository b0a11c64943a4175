"""reorder-linear, aggregation: a product with a weight stands before or after a sum, by cost.

`contract(reduce sum (at src x), W)` and `reduce sum (at src contract(x, W))` are equal: for sums
and means, with scalars per edge or node in between, and for `scalar * x + reduce ..` (GIN). A bias
inside becomes the bias times the same aggregation of 1 (a count). A matrix whose gradient is taken
goes behind a sum only where the cotangent there is finite (slopes.py). Nothing moves through max or
a nonlinearity, and nothing that other ops use as well is done twice.

The costs are those of order_costs.py, backward included when training. After autodiff a product
that is still before its aggregation moves behind it where the forward alone gains: backward follows
the order that was there when it was made. An aggregation of `inter.constant` inputs counts nothing
where that saves enough of the rest, as hoist-invariants will move it to @prepare. Ties leave the
program alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from ....dialects.inter.base import ValueOp
from ....dialects.inter.builder import Builder
from ....dialects.inter.pointwise import PointwiseOp
from ....dialects.inter.reduce import ReduceOp
from ....dialects.inter.shapes import ContractOp
from ....dialects.inter.types import rows
from ...analysis.costs import FEW, element_bytes
from ...analysis.dependence import dependants, to_differentiate
from .function import (
    LinearFunction,
    at_of,
    is_unit,
    linear_reduce,
    plain_at,
    pointwise,
    weight_of,
    width,
)
from .order_costs import OrderCosts

MARGIN = 0.98
"""What the other order must cost at most, relative to the one that is there."""

HOISTED = 0.6
"""The same with an aggregation that is done once for all calls: it takes memory for ever, and rows
that lie in a cache are gathered for less than these costs say."""

MANY = 50
"""Terms of a sum beyond which no aggregation is looked for in it."""

Step = Callable[[Builder, SSAValue], SSAValue]
"""A linear op that keeps the row's shape, applied to another value."""


@dataclass
class Aggregation:
    """A linear function of one value (reads, scalars, sums); `apply` does it to another. `made_of`
    are values that its sums are the same for all calls with: themselves, or what they would be of
    without a product inside. Of a root that takes no gradient, one of `scaled` takes one where the
    aggregation would: a scalar in it, or what has all of them. With `beside` the root itself is
    added."""

    root: SSAValue
    top: SSAValue
    apply: Step
    reduces: list[ReduceOp]
    made_of: list[SSAValue]
    scaled: list[SSAValue]
    beside: bool = False


def move_product(fn: LinearFunction, op: ValueOp) -> bool:
    """Moves a product with a single matrix to the cheaper side of an aggregation."""
    if not isinstance(op, ContractOp) or (w := weight_of(op)) is None:
        return False
    x = op.operands[1 - w]
    if len(rows(x).dims) != 1 or not op.letters()[2]:
        return False
    inside = None if fn.joint else aggregated(x, op)
    return _product_last(fn, op, w) if inside is None else _product_first(fn, op, w, inside)


# ---------------------------------------------------------------- the linear functions


def scalar_product(v: SSAValue) -> tuple[SSAValue, SSAValue] | None:
    """(scalar, carrier) where `v` is a row times one number."""
    if (product := pointwise(v, "mul")) is not None:
        a, b = product.operands
        if width(a) == 1 and rows(b).dims == rows(v).dims:
            return a, b
        if width(b) == 1 and rows(a).dims == rows(v).dims:
            return b, a
    return None


def _multiple(v: SSAValue) -> tuple[SSAValue, Step] | None:
    """(carrier, step) where `v` is a row times one number, or its negative."""
    if (product := scalar_product(v)) is not None:
        scalar, carrier = product
        return carrier, lambda b, x: b.mul(b.reshape(scalar, ()), x)
    neg = pointwise(v, "neg")
    return None if neg is None else (neg.operands[0], Builder.neg)


def _again(reduce: ReduceOp) -> Step:
    over, along, kind = reduce.over, reduce.along_keys, reduce.kind.data
    return lambda b, x: b.reduce(kind, x, over, along)


def _then(first: Step, second: Step) -> Step:
    return lambda b, x: second(b, first(b, x))


def _same(b: Builder, x: SSAValue) -> SSAValue:
    return x


@dataclass
class _Finder:
    """Reads an expression downwards from the operand of a product."""

    reduces: list[ReduceOp] = field(default_factory=list[ReduceOp])
    roots: list[SSAValue] = field(default_factory=list[SSAValue])
    beside: bool = False

    def has_reduce(self, v: SSAValue) -> bool:
        """Whether a sum over rows is found through scalars and additions."""
        todo, seen = [v], {v}
        while todo and len(seen) <= MANY:
            x = todo.pop()
            if linear_reduce(x) is not None:
                return True
            new = [t for t in _terms(x) if t not in seen]
            seen.update(new)
            todo += new
        return False

    def read(self, v: SSAValue, user: Operation | None) -> Step | None:
        """How `v` follows from the root; None where it does not."""
        if not self.has_reduce(v):
            return self._from_root(v)
        if user is not None and any(use.operation is not user for use in v.uses):
            return None  # someone else needs it as it is
        owner = v.owner
        assert isinstance(owner, Operation)
        if (reduce := linear_reduce(v)) is not None:
            self.reduces.append(reduce)
            inner = self._inside(reduce.x)
            return inner and _then(inner, _again(reduce))
        if (multiple := _multiple(v)) is not None:
            inner = self.read(multiple[0], owner)
            return inner and _then(inner, multiple[1])
        assert isinstance(owner, PointwiseOp)
        name = owner.SPEC.name
        left, right = owner.operands
        # the branch with the sum first: it says what the root is
        first = [x for x in (left, right) if self.has_reduce(x)]
        steps = {x: self.read(x, owner) for x in first}
        for x in (left, right):
            if x not in steps:
                steps[x] = self.read(x, owner)
        a, b2 = steps[left], steps[right]
        if a is None or b2 is None:
            return None
        return lambda b, x: b.pointwise(name, a(b, x), b2(b, x))

    def _inside(self, v: SSAValue) -> Step | None:
        """What a sum adds up: scalars times a read of the root (or times the root itself)."""
        if (multiple := _multiple(v)) is not None:
            inner = self._inside(multiple[0])
            return inner and _then(inner, multiple[1])
        read = plain_at(v)
        self.roots.append(v if read is None else read.x)
        return _same if read is None else (lambda b, x: at_of(b, read, x))

    def _from_root(self, v: SSAValue) -> Step | None:
        """The root itself, or scalars times it."""
        if not self.roots:
            return None
        if v is self.roots[0]:
            self.beside = True
            return _same
        if (multiple := _multiple(v)) is not None:
            inner = self._from_root(multiple[0])
            return inner and _then(inner, multiple[1])
        return None


def _terms(v: SSAValue) -> list[SSAValue]:
    """What a sum, difference or scalar product is made of, scalars aside."""
    if (multiple := _multiple(v)) is not None:
        return [multiple[0]]
    owner = v.owner
    if isinstance(owner, PointwiseOp) and owner.SPEC.name in ("add", "sub"):
        same = all(rows(x).dims == rows(v).dims for x in owner.operands)
        return list(owner.operands) if same else []
    return []


def aggregated(v: SSAValue, user: Operation) -> Aggregation | None:
    """`v` as an aggregation of one value, where nobody but `user` needs it."""
    finder = _Finder()
    if not finder.has_reduce(v):
        return None
    step = finder.read(v, user)
    if step is None or len(set(finder.roots)) != 1:
        return None
    sums: list[SSAValue] = [r.results[0] for r in finder.reduces]
    return Aggregation(finder.roots[0], v, step, finder.reduces, sums, [v], finder.beside)


# ---------------------------------------------------------------- costs


def _costs(fn: LinearFunction, op: ContractOp, w: int, a: Aggregation) -> OrderCosts:
    k = width(op.operands[1 - w]) if rows(op.operands[1 - w]).dims else 1
    need = to_differentiate(fn.func)
    root_grad = a.root in need
    sources, edges = fn.sizes.rows(rows(a.root).dom), sum(fn.sizes.rows(r.over) for r in a.reduces)
    costs = OrderCosts(
        fn.target,
        n=edges if FEW * edges <= sources else sources,  # as widen-domains would have it
        m=fn.sizes.rows(rows(a.top).dom),
        edges=edges,
        k=k,
        f=width(op.operands[w]) // k,
        number_bytes=element_bytes(rows(a.root)),
        stored=isinstance(a.root, BlockArgument) or _outlives(fn, a),
        training=root_grad or op.operands[w] in need,
        root_grad=root_grad,
        learnt=not root_grad and any(x in need for x in a.scaled),
    )
    products = (use.operation for use in a.root.uses if isinstance(use.operation, ContractOp))
    hoisted = replace(costs, hoisted=True, beside=a.beside or any(p is not op for p in products))
    pays = hoisted.last() < HOISTED * min(costs.first(), costs.last())
    return hoisted if pays and fn.constant_inputs().issuperset(a.made_of) else costs


def _outlives(fn: LinearFunction, a: Aggregation) -> bool:
    """Whether the root is read again by what follows from the aggregation: it is stored then."""
    later = dependants(fn.func.body.block.ops, {a.top})
    return any(r in later for use in a.root.uses for r in use.operation.results)


# ---------------------------------------------------------------- the two directions


def _contract(b: Builder, op: ContractOp, w: int, x: SSAValue) -> SSAValue:
    operands = [x, x]
    operands[w] = op.operands[w]
    return b.contract(op.spec.data, *operands)


def _builder(fn: LinearFunction, op: Operation, a: Aggregation) -> Builder:
    """A builder in front of `op`; what is summed over pairs has the least domain."""
    pairs = any(r.over.keys for r in a.reduces)
    return Builder(fn.env, InsertPoint.before(op)) if pairs else fn.before(op)


def _product_first(fn: LinearFunction, op: ContractOp, w: int, a: Aggregation) -> bool:
    costs = _costs(fn, op, w, a)
    if costs.first() >= MARGIN * costs.last():
        return False
    b = _builder(fn, op, a)
    fn.replace(op.results[0], a.apply(b, _contract(b, op, w, a.root)))
    return True


def _product_last(fn: LinearFunction, op: ContractOp, w: int) -> bool:
    chain = _upwards(op)
    if chain is None:
        return False
    bias, a = chain
    if bias is not None and not fn.facts.finite(bias):
        return False
    x = op.operands[1 - w]
    costs = _costs(fn, op, w, replace(a, root=x, made_of=[x, *a.made_of]))
    if costs.last() >= MARGIN * costs.first():
        return False
    moved = [op.operands[w], *([] if bias is None else [bias])]
    if not all(fn.may_leave(moved, r, a.top) for r in a.reduces):
        return False
    owner = a.top.owner
    assert isinstance(owner, Operation)
    b = _builder(fn, owner, a)
    new = _contract(b, op, w, a.apply(b, x))
    if bias is not None:
        ones = a.apply(b, b.const(1.0, (), rows(bias).elem))
        weights = b.reshape(ones, (1,) * len(op.letters()[2]))
        new = b.add(new, b.mul(weights, bias))
    fn.replace(a.top, new)
    return True


def _upwards(op: ContractOp) -> tuple[SSAValue | None, Aggregation] | None:
    """From a product through its only users to the sum that takes it, and the scalars behind:
    (bias that is added on the way, the aggregation)."""
    v, step, bias = op.results[0], _same, None
    reduces: list[ReduceOp] = []
    scalars: list[SSAValue] = []
    inside: list[SSAValue] = []
    while (user := _only_user(v)) is not None:
        result = user.results[0]
        if (multiple := _multiple(result)) is not None and multiple[0] is v:
            step = _then(step, multiple[1])
            scalars += [x for x in user.operands if x is not v]
        elif reduces:
            break
        elif (read := plain_at(result)) is not None and read.x is v:
            step = _then(step, lambda b, x, read=read: at_of(b, read, x))
        elif (reduce := linear_reduce(result)) is not None:
            step = _then(step, _again(reduce))
            reduces.append(reduce)
            inside = list(scalars)
        elif bias is None and step is _same and (added := _bias(user, v)) is not None:
            bias = added
        else:
            break
        v = result
    a = Aggregation(op.results[0], v, step, reduces, inside, scalars)
    return (bias, a) if reduces else None


def _only_user(v: SSAValue) -> ValueOp | None:
    users = {use.operation for use in v.uses}
    user = users.pop() if len(users) == 1 else None
    return user if isinstance(user, ValueOp) and list(user.operands).count(v) == 1 else None


def _bias(op: ValueOp, v: SSAValue) -> SSAValue | None:
    """The single row that `op` adds to `v`."""
    if pointwise(op.results[0], "add") is not None:
        (other,) = [x for x in op.operands if x is not v]
        if is_unit(other) and op.type.dims == rows(v).dims:
            return other
    return None
