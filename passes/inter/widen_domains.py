"""widen-domains: what few rows read is computed where it is read.

A value once a node is what most graphs want, for edges are more than nodes. The relations of a
heterogeneous graph may have far fewer: `lin(x)` over all papers, for the few of them that a
relation joins. So may the nodes of a batch, of all nodes: `lin(x[n_id])`. Where a set has `few`
times fewer rows than the values that it reads,

- row-wise ops move behind the read, `at %g[src], f(x)` becomes `f(at %g[src], x)`;
- their results are stored once a row of the set, `rows<g, ..>`, not `rows<g[src], ..>`, which has
  a row for every node, and so is what follows from them.

The sizes are those of the first graph (`inter.stats`, see analysis/costs.py), so a program that was
compiled for a graph with many edges has nothing to widen. The other direction is infer-domains.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeGuard

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.inter.base import ValueOp
from ...dialects.inter.builder import Builder
from ...dialects.inter.reduce import OverAlong
from ...dialects.inter.sets import SetEnv
from ...dialects.inter.structure import AttachOp, FilterOp
from ...dialects.inter.types import UNIT, Dom, rows, set_name
from ...dialects.inter.values import AtOp
from ...dialects.signature import body_ops
from ..analysis.costs import FEW, Sizes
from ..analysis.dependence import to_differentiate
from ..analysis.value_facts import Facts
from ..function_pass import FunctionPass
from .linear.function import ROW_WISE, at_key
from .verify_sets import verify_sets


def widen_domains(func: FuncOp, few: float = FEW) -> int:
    """Moves row-wise values of `func` to the rows that read them where these are `few` times
    fewer; returns how many values moved."""
    env = verify_sets(func)
    widening = _Widening(env, Sizes.of(func, env), few, to_differentiate(func))
    moved = 0
    for op in reversed(body_ops(func)):  # users first: those of an op have moved before it
        if isinstance(op, ROW_WISE):
            moved += widening.behind_reads(op)
    for op in body_ops(func):
        if isinstance(op, ValueOp):
            moved += widening.retyped(op)
    return moved


def is_plain_read(op: Operation) -> TypeGuard[AtOp]:
    """Whether `op` reads rows through a map without exceptions."""
    return isinstance(op, AtOp) and op.otherwise is None


@dataclass
class _Widening:
    env: SetEnv
    sizes: Sizes
    few: float
    differentiated: set[SSAValue]
    facts: Facts = field(default_factory=Facts)

    def is_few(self, sets: Iterable[str], dom: Dom) -> bool:
        """Whether the rows of all `sets` are far fewer than those stored for a value on `dom`."""
        return self.few * sum(self.sizes.set(s) for s in sets) <= self.sizes.rows(dom)

    def least(self, op: ValueOp) -> Dom:
        """Where the result may be stored with the fewest rows: a batch's nodes read few of all."""
        v, dom = op.results[0], op.type.dom
        whole = Dom(dom.set)
        if len(dom.keys) != 1 or self.sizes.rows(whole) >= self.sizes.rows(dom):
            return dom
        return whole if self.may_widen(v, whole) else dom

    # ------------------------------------------------------------ behind reads

    def behind_reads(self, op: ValueOp) -> bool:
        """Does the work of `op` again at each of its reads, where they are all its users."""
        reads = self.reads_of(op.results[0])
        if not reads or op.type.dom.set == UNIT:
            return False
        if not self.facts.spares_rows(op, self.differentiated):
            return False
        ends = dict.fromkeys(at_key(self.env, r) for r in reads)
        if not self.is_few((name for name, _ in ends), self.least(op)):
            return False
        if not all(self.may_widen(r.results[0], Dom(set_name(r.set))) for r in reads):
            return False
        for read in reads:
            self.work_at(read, op)
        Rewriter.erase_op(op)
        return True

    def reads_of(self, v: SSAValue) -> list[AtOp]:
        """The users of `v`, if all of them read it through maps without exceptions."""
        users = list(dict.fromkeys(use.operation for use in v.uses))
        reads = [u for u in users if is_plain_read(u)]
        return reads if len(reads) == len(users) else []

    def work_at(self, read: AtOp, op: ValueOp) -> None:
        """Puts `op` of what is read in the place of the read of its result."""
        b = Builder(self.env, InsertPoint.before(read))
        path = read.path.data
        operands = [x if rows(x).dom.set == UNIT else b.at(read.set, path, x) for x in op.operands]
        new = op.clone()
        new.operands = operands
        b.insert(new)
        t = op.type.on(Dom(set_name(read.set)))
        result = Rewriter.replace_value_with_new_type(new.results[0], t)
        result.name_hint = read.results[0].name_hint
        Rewriter.replace_op(read, [], [result])

    # ------------------------------------------------------------ types

    def retyped(self, op: ValueOp) -> bool:
        """Moves a value to the whole set where it is work for more rows than the set has, and to
        what its operands say where these have moved."""
        v, dom = op.results[0], op.type.dom
        least = op.infer(self.env)
        if not self.env.le(least, dom):
            Rewriter.replace_value_with_new_type(v, op.type.on(least))
            return True
        whole = Dom(dom.set)
        if not isinstance(op, ROW_WISE) or len(dom.keys) != 1 or not self.is_few([dom.set], dom):
            return False
        if not self.may_widen(v, whole):
            return False
        Rewriter.replace_value_with_new_type(v, op.type.on(whole))
        return True

    def may_widen(self, v: SSAValue, dom: Dom) -> bool:
        """Whether `v` may be stored on `dom`, a whole set, and all that follows from it as far as
        it has to: row-wise ops and reads from other sets, up to those that are there already,
        reduce over all rows of the set, or make sets of them."""
        wide, todo = {v: dom}, [v]
        while todo:
            x = todo.pop()
            if self.env.le(wide[x], rows(x).dom):
                continue
            for use in x.uses:
                user = use.operation
                if isinstance(user, OverAlong):
                    if use.index != 0 or not self.env.le(wide[x], user.over):
                        return False
                    continue
                if isinstance(user, AttachOp | FilterOp):
                    continue
                if not isinstance(user, ROW_WISE) and not is_plain_read(user):
                    return False
                result = user.results[0]
                known = wide.get(result, rows(result).dom)
                found = self.env.join([known, self.seen_by(user, wide[x])])
                if wide.get(result) != found:
                    wide[result] = found
                    todo.append(result)
        return True

    def seen_by(self, user: Operation, dom: Dom) -> Dom:
        """Where an operand on `dom` is seen by its user."""
        if not isinstance(user, AtOp):
            return dom
        return self.env.at(set_name(user.set), user.path.data, dom)


@dataclass(frozen=True)
class WidenDomainsPass(FunctionPass):
    """Computes values where they are read, if `few` times fewer rows do so than have one."""

    name = "widen-domains"

    few: float = FEW

    def on(self, func: FuncOp) -> None:
        widen_domains(func, self.few)
