"""canonicalize: ops in their normal forms, dead ones erased; again and again until nothing changes.

It does what xDSL's pass of this name does. What that finds out of each op anew, the traits that its
class has, is known of the class of an op here.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
)
from xdsl.transforms.canonicalize import CanonicalizationRewritePattern

from ..dialects.assembly import FormattedOp
from ..dialects.inter.canonicalize import patterns_of
from .dead_ops import erase_dead_in, is_dead


@dataclass(frozen=True)
class CanonicalizePass(ModulePass):
    """Bring ops into their normal forms, and erase those that nothing needs."""

    name = "canonicalize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        PatternRewriteWalker(Canonical(ctx), post_walk_func=erase_dead_in).rewrite_module(op)


class Canonical(RewritePattern):
    """Erases an op that is dead, else tries the patterns of its class."""

    def __init__(self, ctx: Context) -> None:
        self.foreign = GreedyRewritePatternApplier(
            [CanonicalizationRewritePattern()], ctx=ctx, folding_enabled=True
        )

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not isinstance(op, FormattedOp):
            self.foreign.match_and_rewrite(op, rewriter)
        elif is_dead(op):
            rewriter.erase(op)
        else:
            for pattern in patterns_of(type(op)):
                pattern.match_and_rewrite(op, rewriter)
