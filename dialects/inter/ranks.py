"""Rows that several ranks have: sets cut among them, and messages between them.

A program for ranks is written as one over the rows of all of them together. A set that is cut has a
map `rank` into the set of ranks, or maps to sets that have; other sets have the same rows on every
rank. Each rank runs the same program on its own rows: a path of maps leads to rows at hand when it
stays on the rank, which equations of types say, `eq src.rank = dst.rank`. Rows of other ranks come
by `inter.move` alone, and what is reduced over rows of all ranks is reduced on each first, and then
by `inter.all_reduce` over them.
"""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.irdl import operand_def, prop_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..assembly import TYPED, op_definition
from .base import FixedOp, Row, ValueOp, row_of
from .sets import SetEnv, Total
from .types import UNIT, Dom, RowsType, SetType, is_bool, rows, set_name, set_type

RANK = "rank"
"""The map of a row to the rank that has it."""
PEER = "peer"
"""The map of a message, or of a rank, to the number of a rank."""
ALL_REDUCED = ("sum", "max", "min", "mul")
"""What a reduction over all ranks may be."""


@op_definition
class MoveOp(FixedOp):
    """`inter.move %x from %S to %H`: the rows of messages where they arrive.

    Both sets have maps `rank`, to the rank that has the row, and `peer`, to the number of the rank
    at the other end; the numbers of ranks are `rank.peer`. What rank a has for peer b in one set is
    what rank b has of peer a in the other, as many rows and in the same order, so that either set
    may be the one that rows come from: the adjoint is the move back.
    """

    name = "inter.move"
    x = operand_def(RowsType)
    source = operand_def(SetType)
    target = operand_def(SetType)
    traits = traits_def(Pure(), Total())
    assembly_format = f"$x `from` $source `to` $target {TYPED}"

    @property
    def plan(self) -> str:
        """Names which rows go where, for those who carry them: both sets."""
        return f"{set_name(self.source)} to {set_name(self.target)}"

    def infer(self, env: SetEnv) -> Dom:
        env.readable(rows(self.x).dom, Dom(set_name(self.source)))
        ends = [env.codomain(set_name(s), f"{RANK}.{PEER}") for s in (self.source, self.target)]
        peers = [env.codomain(set_name(s), PEER) for s in (self.source, self.target)]
        if len({*ends, *peers}) > 1:
            raise VerifyException(
                f"{RANK}.{PEER} and {PEER} of both sets are numbers of ranks, one set: they go to "
                f"{', '.join(dict.fromkeys((*ends, *peers)))}"
            )
        return Dom(set_name(self.target))

    def row(self) -> Row:
        for s in (self.source, self.target):
            maps = set_type(s).map_dict()
            if missing := [k for k in (RANK, PEER) if k not in maps]:
                raise VerifyException(
                    f"set {set_name(s)} holds no messages: it has no map {missing[0]}"
                )
        return row_of(self.x)


@op_definition
class AllReduceOp(ValueOp):
    """`inter.all_reduce sum %x`: the sum (max, min, mul) over all ranks of what each has where
    a number is. The rows are those of a set that is not cut.

    In a program over the rows of all ranks together this is `%x`, which is reduced over all of them
    already.
    """

    name = "inter.all_reduce"
    x = operand_def(RowsType)
    kind = prop_def(StringAttr)
    traits = traits_def(Pure(), Total())
    assembly_format = f"custom<Name>($kind) $x {TYPED}"

    def infer(self, env: SetEnv) -> Dom:
        d = rows(self.x).dom
        if len(d.keys) > 1 or is_cut(env, stored_set(env, d)):
            raise VerifyException(f"ranks have other rows of {d}: only those of all are reduced")
        return d

    def cap(self, env: SetEnv) -> Dom | None:
        return None

    def row(self) -> Row:
        if self.kind.data not in ALL_REDUCED:
            raise VerifyException(f"kind {self.kind.data!r} is none of {', '.join(ALL_REDUCED)}")
        if is_bool(rows(self.x).elem):
            raise VerifyException("an all_reduce of i1: insert inter.cast to a number type")
        return row_of(self.x)


def stored_set(env: SetEnv, d: Dom) -> str:
    """The set whose rows are stored for a domain of at most one key."""
    return env.codomain(d.set, d.keys[0]) if d.keys else d.set


def is_cut(env: SetEnv, name: str) -> bool:
    """Whether ranks have different rows of a set: a path of maps says which."""
    found: set[str] = set()
    todo = [name]
    while todo:
        s = todo.pop()
        if s == UNIT or s in found:
            continue
        found.add(s)
        maps = env.info(s).maps
        if RANK in maps:
            return True
        todo += [m.codomain for m in maps.values()]
    return False


EXCHANGES = frozenset(op.name for op in (MoveOp, AllReduceOp))
"""Ops that need other ranks: none is done twice."""

RANK_OPS = [MoveOp, AllReduceOp]
