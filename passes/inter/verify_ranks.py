"""verify-ranks: what crosses between ranks crosses by `inter.move` or `inter.all_reduce` alone.

Each rank runs the program on its own rows, so

- a map leads from a row to one of the same rank: all paths from a set to ranks agree, by equations
  of its type (`eq src.rank = dst.rank`) or of how it is made. The rows of a union are those of its
  parts, those of a subset are rows of what it is of. Maps that a program computes are of the
  numbers that rows have on their rank;
- what a rank reduces over rows that are cut, without `inter.all_reduce`, is its own number: it
  reaches no result, and no row of a cut set, before it is reduced over all ranks.

Changes nothing. Comes after insert-all-reduce; a program that is not partitioned has nothing that
crosses.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...dialects.inter.base import ValueOp
from ...dialects.inter.ranks import RANK, AllReduceOp, is_cut, stored_set
from ...dialects.inter.reduce import OverAlong
from ...dialects.inter.sets import SetEnv
from ...dialects.inter.structure import OLD, AttachOp, FilterOp, IntervalOp, LoopsOp
from ...dialects.inter.types import UNIT, Dom, set_name
from ...dialects.inter.values import SizeOp
from ...dialects.signature import body_ops, results
from ..function_pass import FunctionPass
from .verify_sets import verify_sets


def verify_ranks(func: FuncOp) -> None:
    """Checks one function; linear in its sets and ops.

    Raises:
        PassFailedException: rows or numbers of one rank would reach another.
    """
    env = verify_sets(func)
    for name in env.sets:
        _check_maps(env, name)
    _Numbers(func, env).check()


# ---------------------------------------------------------------- maps


def _check_maps(env: SetEnv, name: str) -> None:
    info = env.info(name)
    if info.type.part_names or isinstance(info.value.owner, FilterOp | IntervalOp | AttachOp):
        return  # its rows are those of other sets, and lead where they do there
    paths = rank_paths(env, name)
    for path in paths[1:]:
        if path not in env.same(name, paths[0]):
            raise PassFailedException(
                f"verify-ranks: a row of {name} may lead to rows of two ranks, by {paths[0]} and "
                f"{path}: bring one to the other by inter.move, or declare that they are equal"
            )


def rank_paths(env: SetEnv, name: str) -> list[str]:
    """The paths of maps from a set to ranks, but for maps that an op finds among the rows at
    hand."""
    info = env.info(name)
    made = _found_maps(info.value.owner)
    found = [RANK] if RANK in info.maps else []
    for label, m in info.maps.items():
        if label != RANK and label not in made and is_cut(env, m.codomain):
            found += [f"{label}.{path}" for path in rank_paths(env, m.codomain)[:1]]
    return found


def _found_maps(owner: object) -> set[str]:
    if isinstance(owner, AttachOp):
        return {*owner.new_maps()}
    return {OLD} if isinstance(owner, LoopsOp) else set()


# ---------------------------------------------------------------- numbers


@dataclass
class _Numbers:
    """Values that are not of cut rows, and yet are other ones on each rank."""

    func: FuncOp
    env: SetEnv
    own: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    """Which they are, and the op that made the first of them."""

    def check(self) -> None:
        for op in body_ops(self.func):
            if isinstance(op, ValueOp) and not isinstance(op, AllReduceOp):
                self._op(op)
        for name, v, _ in results(self.func):
            if v in self.own:
                raise PassFailedException(
                    f"verify-ranks: the result {name} is the {self.own[v]} of one rank: reduce it "
                    "by inter.all_reduce"
                )

    def _op(self, op: ValueOp) -> None:
        made = self._made(op)
        if made is None:
            return
        if self._differs(op.type.dom):
            raise PassFailedException(
                f"verify-ranks: {op.name} on rows of {op.type.dom} reads the {made} of one rank: "
                "reduce it by inter.all_reduce"
            )
        self.own[op.results[0]] = made

    def _made(self, op: ValueOp) -> str | None:
        """What of one rank alone an op gives or reads, without rows of cut sets between."""
        if isinstance(op, SizeOp) and is_cut(self.env, set_name(op.set)):
            return op.name
        if isinstance(op, OverAlong) and self._differs(op.over):
            return None if self._differs(op.type.dom) else op.name
        return next((self.own[x] for x in op.operands if x in self.own), None)

    def _differs(self, d: Dom) -> bool:
        if d.set == UNIT:
            return False
        if len(d.keys) > 1:
            return any(is_cut(self.env, self.env.codomain(d.set, k)) for k in d.keys)
        return is_cut(self.env, stored_set(self.env, d))


@dataclass(frozen=True)
class VerifyRanksPass(FunctionPass):
    """Checks that rows and numbers cross between ranks by moves and reductions alone."""

    name = "verify-ranks"

    def on(self, func: FuncOp) -> None:
        verify_ranks(func)
