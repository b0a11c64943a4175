"""Reads by index, rows that a mask keeps, and reductions into groups of rows."""

from __future__ import annotations

import math

import sympy

from ..errors import NoRule
from .arithmetic import Arithmetic
from .nodes import Filter, Node, Set, depends_on_floats
from .tensors import Arr, Merge, Sym, numbers

_EACH = 64
"""So many numbers of each row are read by one after the other."""


class Indexing(Arithmetic):
    """Rows of one set by those of another."""

    def rows_of(self, x: Arr, dim: int = 0) -> tuple[Node, Set]:
        """A tensor as rows over one of its dimensions; a constant dimension becomes a set."""
        d = x.dims[dim]
        if isinstance(d, Set):
            return x.v, d.find()
        if isinstance(d, Merge) or x.axis is not None:
            raise NoRule("an index into a column dimension of rows")
        rows = self.sizes.set_of(sympy.Integer(d))
        order = [dim] + [i for i in range(x.rank) if i != dim]
        v = self.values.transpose(x.v, order)
        return self.values.as_rows(v, rows), rows

    def as_set(self, x: Arr, dim: int = 0) -> Arr:
        """A tensor whose dimension `dim`, of constant size, is the rows of a set."""
        node, rows = self.rows_of(x, dim)
        return Arr([*x.dims[:dim], rows, *x.dims[dim + 1 :]], node)

    def gather(self, x: Arr, dim: int, i: Arr) -> Arr:
        """`x[.., i, ..]` with an index at one dimension: `x.index_select(dim, i)` for a 1-d i."""
        dim = x.wrap(dim)
        if i.home is None and (i.rank != 1 or i.v.op == "table"):
            return self._take_columns(x, dim, i)
        if i.home is None:
            i = self.as_set(i)
        if i.grouping is not None:
            return self.gather(x, dim, i.apart).joined(dim + i.axis, i.grouping[1])
        if i.rank != 1 or not isinstance(i.dims[0], Set):
            return self._gather_each(x, dim, i)
        self.require_given(i)
        v, codomain = self.rows_of(x, dim)
        rest = [d for k, d in enumerate(x.dims) if k != dim]
        over = i.home
        if self.are_kept_rows(i.v, codomain):
            return Arr([*rest[:dim], over, *rest[dim:]], self.values.parent(v, over))
        return Arr([*rest[:dim], over, *rest[dim:]], self.values.at(v, i.v, over, codomain))

    def require_given(self, index: Arr) -> None:
        """
        Raises:
            NoRule: an index is computed of floats: maps are made before a call computes anything.
        """
        if not self.float_masks and depends_on_floats(index.v):
            raise NoRule(
                "an index that depends on float values: which rows are read has to follow from "
                "integers and booleans"
            )

    def _gather_each(self, x: Arr, dim: int, i: Arr) -> Arr:
        """With several numbers for each row of a set: the rows that the first tells, then those
        that the second tells, and so on. The index is in the place of the dimension."""
        several = numbers(i.dims)
        count = math.prod(several)
        if not 0 < count <= _EACH:
            raise NoRule(f"an index tensor with {count} numbers for each row")
        columns = self.values.reshape(i.v, (count,))
        found: list[Node] = []
        for k in range(count):
            one = self.values.reshape(self.values.slice(columns, 0, k, k + 1), ())
            y = self.gather(x, dim, Arr([i.rows], one))
            # the row shape is that of x without the dimension, and becomes one of the front
            found.append(self.values.reshape(y.v, (1, *y.v.shape)))
        v = self.values.concat(found, 0)
        before = len(numbers(x.dims[:dim]))
        order = [*range(1, 1 + before), 0, *range(1 + before, len(v.shape))]
        dims = [*x.dims[:dim], *i.dims, *x.dims[dim + 1 :]]
        return Arr(dims, self.values.reshape(self.values.transpose(v, order), numbers(dims)))

    @staticmethod
    def are_kept_rows(i: Node, rows: Set) -> bool:
        """Whether i are the numbers of the rows that a filter keeps, as nonzero gives them."""
        return (
            i.op == "parent"
            and i.args[0].op == "iota"
            and i.args[0].home is rows.find()
            and i.home is not None
            and isinstance(i.home.origin, Filter)
            and i.home.origin.set.find() is rows.find()
        )

    def _take_columns(self, x: Arr, dim: int, i: Arr) -> Arr:
        """A column dimension at constant positions."""
        data = i.v.attrs.get("data") if i.v.op == "table" else None
        if data is None or i.rank != 1 or not isinstance(x.dims[dim], int):
            raise NoRule("an index of constant size that is no literal")
        c = x.column(dim)
        size = x.dims[dim]
        if not data or not all(-size <= j < size for j in data):
            raise NoRule(f"no position, or one that is outside of a dimension of size {size}")
        vs = [self.values.slice(x.v, c, j % size, j % size + 1) for j in data]
        return Arr([*x.dims[:dim], len(vs), *x.dims[dim + 1 :]], self.values.concat(vs, c))

    def select(self, x: Arr, dim: int, k: int) -> Arr:
        """`x.select(dim, k)` on a column dimension."""
        dim = x.wrap(dim)
        size = x.dims[dim]
        if isinstance(size, Set):
            end = sympy.Integer(k + 1) if k != -1 else size.find().expr
            one = self.interval(x, sympy.Integer(k), end, sympy.Integer(1))
            return self.select(one, dim, 0)
        if not isinstance(size, int):
            raise NoRule("one of grouped rows by its number")
        k = k + size if k < 0 else k
        if not 0 <= k < size:
            raise NoRule(f"index {k} is outside of a dimension of size {size}")
        c = x.column(dim)
        v = self.values.slice(x.v, c, k, k + 1)
        v = self.values.reshape(v, v.shape[:c] + v.shape[c + 1 :])
        return Arr(x.dims[:dim] + x.dims[dim + 1 :], v)

    def narrow(self, x: Arr, dim: int, lo: int, hi: int, step: int = 1) -> Arr:
        """`x[.., lo:hi:step]` on a column dimension."""
        v = self.values.slice(x.v, x.column(dim), lo, hi, step)
        return Arr([*x.dims[:dim], v.shape[x.column(dim)], *x.dims[dim + 1 :]], v)

    def unsqueeze(self, x: Arr, dim: int) -> Arr:
        dims = [*x.dims[:dim], 1, *x.dims[dim:]]
        return Arr(dims, self.values.reshape(x.v, numbers(dims)))

    def keep(self, x: Arr, mask: Arr, size: sympy.Expr) -> Arr:
        """`x[mask]` along the row axis: the rows of a filter."""
        if x.home is None or mask.rank != 1 or x.merged:
            raise NoRule("a mask over a dimension that is not the rows of a set")
        if not self.float_masks and depends_on_floats(mask.v):
            raise NoRule(
                "a mask that depends on float values: which rows there are has to follow from "
                "integers and booleans (multiply by the mask to keep all rows)"
            )
        home = self.sizes.unify(x.home, mask.rows)
        kept = self.sizes.born(Filter(home, mask.v), size)
        dims = [kept if isinstance(d, Set) else d for d in x.dims]
        return Arr(dims, self.values.parent(x.v, kept))

    def interval(self, x: Arr, lo: sympy.Expr, hi: sympy.Expr, size: sympy.Expr) -> Arr:
        """`x[lo:hi]` along the row axis, `size` rows: as columns where that is a constant."""
        if x.home is None or x.merged:
            raise NoRule("a slice over a dimension that is not the rows of a set")
        constant = self.sizes.canonical(size).is_Integer
        kept = self.rows_between(x.home, lo, hi, None if constant else size)
        v = self.values.parent(x.v, kept)
        if not constant:
            return Arr([kept if isinstance(d, Set) else d for d in x.dims], v)
        axis = x.axis
        order = list(range(1, len(v.shape) + 1))
        order.insert(axis, 0)
        v = self.values.transpose(self.values.as_unit(v, kept, int(size)), order)
        return Arr(list(v.shape), v)

    def rows_between(
        self, rows: Set, lo: sympy.Expr, hi: sympy.Expr, size: sympy.Expr | None = None
    ) -> Set:
        """The rows lo .. hi - 1 of a set, as a slice of Python has them; `size` is their number
        where that has a name."""
        bounds = [self.values.cast(self.scalar(b), "i64") for b in (lo, hi)]
        mask = self.values.make("interval", bounds, rows, (), "i1")
        if size is None:
            size = sympy.Symbol(f"_interval{mask.number}")
        return self.sizes.born(Filter(rows, mask), size)

    def are_between(self, rows: Set, lo: sympy.Expr, hi: sympy.Expr) -> Arr:
        """Whether each row of a set is one of lo .. hi - 1."""
        number = Arr([rows], self.values.make("iota", [], rows, (), "i64"))
        ends = []
        for bound in (lo, hi):
            b = Arr([], self.values.cast(self.scalar(bound), "i64"))
            from_end = self.binary("add", b, Sym(rows.expr))
            ends.append(self.where(self.compare("lt", b, 0), from_end, b, elem="i64"))
        inside = [self.compare("ge", number, ends[0]), self.compare("lt", number, ends[1])]
        return self.raw("logical_and", inside, "i1")

    def numbers_along(self, x: Arr, dim: int) -> Arr:
        """The number of each row of the set that a dimension of x is, to be computed with x."""
        rows = self.values.make("iota", [], x.rows, (), "i64")
        shape = [1] * (x.rank - dim - 1)
        return Arr([x.rows, *shape], self.values.reshape(rows, shape))

    def row_numbers(self, flags: Arr, size: sympy.Expr) -> Arr:
        """The numbers of the rows where flags are true, of which there are `size`."""
        mask = flags if flags.elem == "i1" else self.compare("ne", flags, 0)
        if mask.rank != 1 or mask.home is None:
            raise NoRule("the positions in a tensor that is not one number a row")
        numbers = Arr([mask.home], self.values.make("iota", [], mask.home, (), "i64"))
        return self.keep(numbers, mask, size)

    def group(self, index: Arr, x: Arr, dim: int) -> tuple[Set, Node]:
        """The set that a 1-d index and a tensor's dimension share."""
        if index.rank == 1 and index.home is None and x.axis == dim and index.v.op != "table":
            index = self.as_set(index)  # as many as the rows of a set
        if index.rank != 1 or not isinstance(index.dims[0], Set):
            raise NoRule("a reduction by an index that is not one number a row")
        self.require_given(index)
        d = x.dims[dim]
        if isinstance(d, Merge):
            raise NoRule("a reduction over grouped rows")
        if isinstance(d, int):
            raise NoRule("a reduction over a column dimension by an index")
        return self.sizes.unify(d, index.home), index.v

    def segment(
        self, x: Arr, index: Arr, dim: int, size: sympy.Expr, kind: str, zero_ties: bool = False
    ) -> Arr:
        """Reduces the row axis of x into `size` groups."""
        dim = x.wrap(dim)
        over, i = self.group(index, x, dim)
        codomain = self.sizes.set_of(size)
        v = self.values.reduce(kind, x.v, over, i, codomain, zero_ties)
        return Arr([*x.dims[:dim], codomain, *x.dims[dim + 1 :]], v)

    def scattered(
        self, base: Arr, x: Arr, index: Arr, dim: int, kind: str, zero_ties: bool = False
    ) -> Arr:
        """Reduces the row axis of x into the rows that a dimension of `base` has."""
        target = base.dims[dim]
        if isinstance(target, Set):
            return self.segment(x, index, dim, target.find().expr, kind, zero_ties)
        if not isinstance(target, int) or base.axis is not None:
            raise NoRule("a reduction into a column dimension")
        # into a dimension of constant size: over a set of that size, and back to columns
        over, i = self.group(index, x, dim)
        rows = self.sizes.set_of(sympy.Integer(target))
        v = self.values.reduce(kind, x.v, over, i, rows, zero_ties)
        v = self.values.as_unit(v, rows, target)
        order = list(range(1, len(v.shape)))
        order.insert(dim, 0)
        v = self.values.transpose(v, order)
        return Arr(list(v.shape), v)

    def counts(self, index: Arr, like: Arr) -> Arr:
        """How often an index names each row of `like`, to be compared with it."""
        ones = Arr([index.home], self.values.const(1.0, "f32"))
        rows = self.scattered(like, ones, index, 0, "sum")
        for k in range(1, like.rank):
            rows = self.unsqueeze(rows, k)
        return rows
