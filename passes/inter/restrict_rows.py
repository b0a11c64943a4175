"""restrict-rows: a loss on some rows restricts every layer to the rows that it needs.

Where all that a program reads of a value are the rows of a subset, `at %M[parent], %v`, the value
is computed at these:

- row by row ops, of operands read there;
- a sum over edges along dst, over the edges that lead to such a row, `filter %g` by a mask, with a
  map to the rows of the subset attached;
- what such edges read at their other end is needed at these ends only: the next subset.

A choice between rows of a value and zeros, `where(mask, %v, 0)` or a factor of 0 and 1, is written
by a subset where it keeps few (restricting/choices.py), so losses may leave rows out in any way.

So layer by layer, as long as it pays: `share` of the rows of a set and more are taken for all, by
the sizes of `inter.stats`, where the front end notes how many rows a mask keeps
(analysis/costs.py); a subset of unknown size is taken to have `fraction` of the rows. Where a sum
is restricted, what it reads on edges follows it in any case. A value with another user (statistics
over all nodes, a result) stays whole. What depends on the graph alone stays too, @prepare has it
done. The new sets are made there: a subset that a call computes from floats restricts nothing.

Dropout draws by the numbers that rows have in the whole set, so its masks are the same. As in
widen-domains, an op whose slope may be infinite is done for rows that nobody reads, whose gradient
is then no number.

In a program over the rows of ranks the needs go back through messages: `inter.move` brings the rows
that are needed, and who sends them learns which by a mask that is moved the other way. Local and
remote edges together, a union, are restricted part by part.

Comes before autodiff, which makes the backward half of what is left, and before infer-domains: it
looks at values that are stored on whole sets.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.attributes import KEPT
from ...dialects.inter.builder import Builder
from ...dialects.inter.sets import SetEnv
from ...dialects.inter.types import sets_of
from ...dialects.inter.values import AtOp
from ...dialects.signature import body_ops, return_of
from ..analysis.costs import SHARE, Sizes
from ..analysis.dependence import has_backward
from ..function_pass import FunctionPass
from .restricting import choices
from .restricting.needs import Needs
from .restricting.subsets import Subsets
from .verify_sets import verify_sets


def restrict_rows(func: FuncOp, share: float = SHARE, fraction: float = 1.0) -> int:
    """Restricts values of `func` to the rows that are read; returns how many. Linear in ops, but
    for the depth of layers."""
    env = verify_sets(func)
    if has_backward(func):
        return 0
    written = choices.Subsets(func, env, share).written()
    needs = Needs(func, env, Sizes.of(func, env), share, fraction)
    if vain := [w for w in written if needs.of(w.x) is None]:
        for w in vain:
            w.undo()
        needs = Needs(func, env, Sizes.of(func, env), share, fraction)
    for op in body_ops(func):
        op.attributes.pop(KEPT, None)
    restricted = needs.restricted()
    if not restricted:
        return 0
    reads = [op for op in needs.ops if isinstance(op, AtOp)]
    vanilla = any(r.type.dom != r.infer(env) for r in reads)
    subsets = Subsets(needs, Builder(env, InsertPoint.before(return_of(func)), vanilla))
    inner = {op.results[0] for op in restricted}
    ends = [r for r in reads if r.x in inner and r.results[0] not in inner]
    for op in (*restricted, *ends):
        subsets.plan(op)
    for op in (*restricted, *ends):
        subsets.compute(op)
    for op in ends:
        op.results[0].replace_all_uses_with(subsets.new[op.results[0]])
    for op in reversed((*restricted, *ends)):
        if op.results[0].first_use is None:
            Rewriter.erase_op(op)
    _sort(func, env)
    return len(restricted)


def _sort(func: FuncOp, env: SetEnv) -> None:
    """Puts ops behind those that make their operands and the sets of their types, and otherwise
    leaves them where they are."""
    last, done = return_of(func), set[Operation]()
    for op in body_ops(func):
        todo = [op]
        while todo:
            x = todo[-1]
            if x in done:
                todo.pop()
            elif new := [y for y in _before(x, env) if y not in done]:
                todo += new
            else:
                x.detach()
                Rewriter.insert_op(x, InsertPoint.before(last))
                done.add(x)


def _before(op: Operation, env: SetEnv) -> Iterable[Operation]:
    named = (env.value(n) for r in op.results for n in sets_of(r.type))
    owners = (v.owner for v in (*op.operands, *named))
    return [o for o in owners if isinstance(o, Operation) and o is not op]


@dataclass(frozen=True)
class RestrictRowsPass(FunctionPass):
    """Computes values at the rows that a subset reads, if these are less than `share` of all."""

    name = "restrict-rows"

    share: float = SHARE
    fraction: float = 1.0

    def on(self, func: FuncOp) -> None:
        restrict_rows(func, self.share, self.fraction)
