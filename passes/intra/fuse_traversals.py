"""fuse-traversals: merge nests so that what one computes for another stays in registers.

Six rewrites, each in its own file: *inline* (fusion/inline.py) dissolves nests into those that
read them, *merge* (fusion/merge.py) joins nests over the same rows, *simplify* (fusion/simplify.py)
tidies look-ups, loops and stores, *quotients* (fusion/quotients.py) stores rows once that were
stored twice, *parts* (fusion/parts.py) stores of rows what is read, and *at hand*
(fusion/at_hand.py) lets readers make rows again. All are exact but for quotients, which may change
the last bit.

No nest is merged with one on the other side of a step that may not move, as a wait (`sections` in
dialects/intra/steps.py; tests/passes/test_steps.py). A cheap one dissolves into readers there too,
where these find what it reads: it would hide little of a message, and be stored for them.

Before: one nest a value, every value in a buffer. After: `gather -> sum -> bias, relu -> next
product` is one nest.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from ...dialects.intra.rows import TraverseOp, nests
from ...dialects.intra.steps import phases
from ..cse import share_equal
from ..dead_ops import erase_dead
from ..targets import DEFAULT, Nests, target_of
from .cut_stages import uncut
from .fusion.at_hand import make_again
from .fusion.inline import Inliner
from .fusion.merge import Merger
from .fusion.parts import keep_parts
from .fusion.quotients import keep_quotients
from .fusion.simplify import simplify


@dataclass(frozen=True)
class FuseTraversalsPass(ModulePass):
    """Merge nests so that intermediate rows stay in registers."""

    name = "fuse-traversals"

    target: str = DEFAULT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        limits = target_of(self.name, self.target).nests
        for func in phases(op):
            uncut(func, self.name)
            fuse(func, limits)
        share_equal(op)
        keep_quotients(op)
        for func in phases(op):
            simplify(func, nests(func))
            keep_parts(func)
            make_again(func)
            simplify(func, nests(func))
            erase_dead(func.body.block)


def fuse(func: FuncOp, limits: Nests) -> None:
    """Inline and merge until nothing changes. Inlining goes to its end each time: a merged nest
    does too much to be inlined.
    """
    inliner = Inliner(func, limits)
    changed = set(nests(func))
    while True:
        while readers := inliner.round():
            inliner.forget(simplify(func, changed | readers))
            changed = set[TraverseOp]()
        merged = Merger(func, limits).run()
        if not merged:
            return
        inliner.forget(simplify(func, changed | merged))
        changed = set[TraverseOp]()
