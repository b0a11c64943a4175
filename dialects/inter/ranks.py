"""Rows that several ranks have: sets cut among them, and messages between them.

A program for ranks is written as one over the rows of all of them together. A set that is cut has a
map `rank` into the set of ranks, or maps to sets that have. Each rank runs the same program on its
own rows: a path of maps leads to rows at hand when it stays on the rank, which equations of types
say, `eq src.rank = dst.rank`. Rows of other ranks come by `inter.move` alone (verify-ranks).
"""

from __future__ import annotations

from xdsl.irdl import operand_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..assembly import TYPED, op_definition
from .base import FixedOp, Row, row_of
from .sets import SetEnv, Total
from .types import Dom, RowsType, SetType, rows, set_name, set_type

RANK = "rank"
"""The map of a row to the rank that has it."""
PEER = "peer"
"""The map of a message, or of a rank, to the number of a rank."""


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


RANK_OPS = [MoveOp]
