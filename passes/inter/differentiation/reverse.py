"""Reverse mode on values: how the cotangents of a value's reads become the value's own.

A value of domain `D` is one row per stored row of `D`; its cotangent says, for each of these, how
much the loss moves with it. The cotangent may live on a coarser domain than the value: it is then
the same for several of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from ....dialects.inter.builder import Builder
from ....dialects.inter.sets import SetEnv
from ....dialects.inter.types import ONE, Dom, rows
from ...analysis.value_facts import Facts

Sums = dict[SSAValue, SSAValue]


@dataclass
class Reverse:
    """The state of one backward sweep.

    `b` appends ops to the function; `need` are the values that an argument with a wanted gradient
    flows into. A value without a cotangent has cotangent 0, which is never built.

    A value on a single key, `rows<g[src], ..>`, is stored as rows of the codomain N. What
    reductions add to its cotangent is kept there, on N (`_below`), apart from what lives on g
    (`_here`): most such values are reads of rows of N, and want it back there.
    """

    b: Builder
    env: SetEnv
    need: set[SSAValue]
    facts: Facts = field(default_factory=Facts)
    _here: Sums = field(default_factory=Sums)
    _below: Sums = field(default_factory=Sums)

    def rows_of_read(self, cotangent: SSAValue, over: Dom, a: SSAValue) -> Dom:
        """The rows that a read of `a` is summed over: those at which the reader was computed, never
        those that the cotangent happens to be stored on. (The tests put wrong rules here.)"""
        return over

    # ------------------------------------------------------------ collecting

    def put(self, a: SSAValue, cotangent: Callable[[], SSAValue | None], over: Dom) -> None:
        """Adds to the cotangent of `a` what comes from a read of it at every row of `over`.

        `cotangent` builds the cotangent of that read, in the rows of `a` (it may be coarser than
        `over`); it is not called where nobody needs it, and gives None for 0.
        """
        if a not in self.need:
            return
        c = cotangent()
        if c is None:
            return
        home = rows(a).dom
        over = self.rows_of_read(c, over, a)
        if over == home:
            self._add(self._here, a, self.settle(c, home))
        else:
            self.put_groups(a, self.b.reduce("sum", self.settle(c, over), over, home.keys))

    def put_groups(self, a: SSAValue, c: SSAValue) -> None:
        """Adds `c`, the result of a reduction along the keys of `a`, to its cotangent."""
        single = len(rows(a).dom.keys) == 1
        self._add(self._below if single else self._here, a, c)

    def put_result(self, a: SSAValue, c: SSAValue) -> None:
        """Adds `c`, of the type of `a`, to its cotangent."""
        if a in self.need:
            self._add(self._here, a, c)

    def _add(self, sums: Sums, a: SSAValue, c: SSAValue) -> None:
        if a in sums:
            c = self.b.add(sums[a], c)
            c = self.settle(c, rows(a).dom) if sums is self._here else c
        sums[a] = c

    def has(self, a: SSAValue) -> bool:
        """Whether the cotangent of `a` is anything but 0."""
        return a in self._here or a in self._below

    def cotangent(self, a: SSAValue) -> SSAValue:
        """The sum of what was put, on the domain of `a` or a coarser one. `a` must have some."""
        if a in self._below:
            d = rows(a).dom
            self._add(self._here, a, self.lift(d.set, d.keys, self._below.pop(a)))
        return self._here[a]

    def parts(self, a: SSAValue) -> tuple[SSAValue | None, SSAValue | None]:
        """The cotangent of `a`, on a single key, as two terms: on its own set, and as rows of the
        key's codomain."""
        return self._here.get(a), self._below.get(a)

    # ------------------------------------------------------------ moving between domains

    def lift(
        self, name: str, along: Sequence[str], v: SSAValue, otherwise: SSAValue | None = None
    ) -> SSAValue:
        """A value per group of `reduce .. along` as it is read from the rows that were reduced;
        `otherwise` (None: 0) at a row that is in no group, where a map is partial."""
        if len(along) != 1:  # unit or pairs: within the set
            return v
        path, t = along[0], rows(v)
        if self.env.is_partial(name, path):
            return self.b.at(name, path, v, otherwise or self.zero(v, t.dims))
        return v if t.dom == ONE else self.b.at(name, path, v)

    def settle(self, c: SSAValue, home: Dom) -> SSAValue:
        """`c` on `home` or coarser. It is constant where `home` is; only its type may be finer,
        after an op that cannot be computed on rows that nothing reads."""
        d = rows(c).dom
        if self.env.le(d, home):
            return c
        return self.lift(home.set, home.keys, self.b.reduce("max", c, d, home.keys))

    # ------------------------------------------------------------ rows

    def fit(self, c: SSAValue, dims: tuple[int, ...]) -> SSAValue:
        """Sums `c` over the row dimensions along which rows of shape `dims` were broadcast."""
        have = rows(c).dims
        padded = (1,) * (len(have) - len(dims)) + dims
        gone = [i for i, n in enumerate(have) if n != padded[i]]
        return self.b.reshape(self.b.row_reduce("sum", c, gone), dims)

    def spread(self, c: SSAValue, dims: tuple[int, ...], axes: Sequence[int]) -> SSAValue:
        """The inverse of dropping the dimensions `axes` of rows of shape `dims`: repeats them."""
        thin = tuple(1 if i in axes else n for i, n in enumerate(dims))
        return self.b.broadcast(self.b.reshape(c, thin), dims)

    def zero(self, like: SSAValue, dims: tuple[int, ...] = ()) -> SSAValue:
        """A row of zeros with the elements of `like`."""
        return self.b.const(0.0, dims, rows(like).elem)
