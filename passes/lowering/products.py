"""Contractions: a row times a matrix, a sum of outer products, or plain loops over one row's
numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from ...dialects.inter.shapes import ContractOp
from ...dialects.inter.types import ONE, Dom, rows
from ...dialects.intra.rows import MatmulOp, OuterOp
from ...dialects.intra.syntax import buffer_dims, element, row_type
from .nests import Host, Nest


@dataclass(frozen=True)
class Roles:
    """The letters of a contraction x . W by their part in a product, in x's (W's) order.

    lead (l): rows that share a matrix, in x and the result; batch (b): one matrix each, in all
    three; summed (k): in x and W; columns (f): in W and the result.
    """

    lead: str
    batch: str
    summed: str
    columns: str

    @staticmethod
    def of(x: str, w: str, out: str) -> Roles:
        return Roles(
            lead="".join(c for c in x if c not in w),
            batch="".join(c for c in x if c in w and c in out),
            summed="".join(c for c in x if c in w and c not in out),
            columns="".join(c for c in w if c not in x),
        )


def permutation(have: str, want: str) -> list[int]:
    return [have.index(c) for c in want]


def merged(letters: str, groups: Sequence[str]) -> str | None:
    """`letters` with each group as one letter (lbkf), None where a group is not contiguous and in
    order.
    """
    out, rest = "", letters
    while rest:
        for name, g in zip("lbkf", groups, strict=True):
            if g and rest.startswith(g):
                out, rest = out + name, rest[len(g) :]
                break
        else:
            return None
    return out


@dataclass(frozen=True)
class Product:
    """A contraction with a single row in the normal form of `intra.matmul`."""

    spec: str
    roles: Roles
    weight: SSAValue
    order: str
    size: dict[str, int]

    @staticmethod
    def of(host: Host, spec: str, x_dims: Sequence[int], w: SSAValue, dom: Dom = ONE) -> Product:
        """Bring the matrix (or those of the rows of `dom`) into normal form; call this before the
        nest is opened.
        """
        ins, out = spec.split("->")
        lx, lw = ins.split(",")
        r = Roles.of(lx, lw, out)
        size = dict(zip(lx, x_dims, strict=True)) | dict(zip(lw, buffer_dims(w), strict=True))
        groups = (r.lead, r.batch, r.summed, r.columns)
        order = merged(lw, groups)
        if order is None:
            want = r.batch + r.summed + r.columns
            w, lw = transposed(host, w, lw, want, dom), want
            order = merged(lw, groups)
            assert order is not None
        by_name = dict(zip("lbkf", groups, strict=True))
        weight = host.view(w, dom, [extent(size, by_name[c]) for c in order])
        return Product(spec, r, weight, order, size)

    def emit(self, nest: Nest, x: SSAValue, index: SSAValue | None = None) -> SSAValue:
        """The product of one row, with the matrix of row `index` where there are several."""
        r, size = self.roles, self.size
        ins, out = self.spec.split("->")
        lx = ins.split(",")[0]
        row = nest.transpose(x, permutation(lx, r.lead + r.batch + r.summed))
        heads = [extent(size, g) for g in (r.lead, r.batch) if g]
        row = nest.reshape(row, [*heads, extent(size, r.summed)])
        lead = ("l" if r.lead else "") + ("b" if r.batch else "")
        t = row_type([*heads, extent(size, r.columns)], element(x.type))
        spec = StringAttr(f"{lead}k,{self.order}->{lead}f")
        y = nest.emit(MatmulOp.make([row, self.weight, index], [t], spec=spec))
        have = r.lead + r.batch + r.columns
        return nest.transpose(nest.reshape(y, [size[c] for c in have]), permutation(have, out))


def extent(size: dict[str, int], letters: str) -> int:
    return math.prod(size[c] for c in letters)


def transposed(host: Host, buffer: SSAValue, have: str, want: str, dom: Dom = ONE) -> SSAValue:
    """Rows over `dom` with their dimensions permuted, in a buffer of their own."""
    dims = buffer_dims(buffer)
    perm = permutation(have, want)
    out = host.buffer(dom, [dims[p] for p in perm], element(buffer.type))
    nest = host.nest(dom)
    row = nest.first() if dom == ONE else nest.row
    nest.store(nest.transpose(nest.load(buffer, row), perm), out)
    return out


def is_matmul(spec: str) -> bool:
    """Whether the contraction with a single row is a product of matrices (sums, and makes
    columns).
    """
    ins, out = spec.split("->")
    x, w = ins.split(",")
    r = Roles.of(x, w, out)
    return bool(r.summed and r.columns)


def outer_roles(op: ContractOp) -> Roles | None:
    """Letters of a contraction whose sum over rows is a sum of outer products: a (l, b, k), b (l,
    b, f).
    """
    la, lb, out = op.letters()
    r = Roles(
        lead="".join(c for c in la if c in lb and c not in out),
        batch="".join(c for c in la if c in lb and c in out),
        summed="".join(c for c in la if c not in lb),
        columns="".join(c for c in lb if c not in la),
    )
    return r if r.summed and r.columns else None


def sum_of_outer(
    host: Host,
    op: ContractOp,
    over: Dom,
    read: Callable[[Nest, SSAValue], SSAValue],
    key: str | None = None,
) -> SSAValue:
    """The buffer of the sum over the rows of `over` of a contraction that `outer_roles` accepts; a
    sum for each row that `key` leads to, where there is one.
    """
    la, lb, out = op.letters()
    r = outer_roles(op)
    assert r is not None
    size = dict(zip(la, rows(op.a).dims, strict=True)) | dict(zip(lb, rows(op.b).dims, strict=True))
    order = merged(out, ("", r.batch, r.summed, r.columns))
    letters = out if order is not None else r.batch + r.summed + r.columns
    order = order or ("b" if r.batch else "") + "kf"
    by_name = {"b": r.batch, "k": r.summed, "f": r.columns}
    groups = ONE if key is None else host.storage(Dom(over.set, (key,)))
    result = host.buffer(groups, [size[c] for c in letters], rows(op.results[0]).elem)
    view = host.view(result, groups, [extent(size, by_name[c]) for c in order])
    if key is None:
        nest, at = host.nest(over), list[SSAValue]()
    else:
        count = host.size(groups)
        nest, index = host.grouped_nest(over, key)
        at = [index, count]
    a, b = read(nest, op.a), read(nest, op.b)
    heads = [extent(size, g) for g in (r.lead, r.batch) if g]
    ra = nest.transpose(a, permutation(la, r.lead + r.batch + r.summed))
    rb = nest.transpose(b, permutation(lb, r.lead + r.batch + r.columns))
    ra = nest.reshape(ra, [*heads, extent(size, r.summed)])
    rb = nest.reshape(rb, [*heads, extent(size, r.columns)])
    lead = ("l" if r.lead else "") + ("b" if r.batch else "")
    nest.do(OuterOp.make([ra, rb, view, at], spec=StringAttr(f"{lead}k,{lead}f->{order}")))
    return result if letters == out else transposed(host, result, letters, out, groups)
