"""Ops that nothing needs: those without effects whose results nobody reads.

As xDSL's `region_dce` for what the dialects here have, blocks in which each value is defined above
its uses: one walk from the end sees every reader before what it reads. (`region_dce` takes several
where a loop that is dead reads what is computed outside of it.)
"""

from __future__ import annotations

import functools

from xdsl.ir import Block, Operation, Region
from xdsl.pattern_rewriter import PatternRewriterListener
from xdsl.traits import IsTerminator, NoMemoryEffect, SymbolOpInterface


@functools.cache
def has_no_effect(kind: type[Operation]) -> bool:
    """Whether ops of a class do nothing but give their results."""
    decisive = (IsTerminator, SymbolOpInterface)
    return kind.has_trait(NoMemoryEffect) and not any(kind.has_trait(t) for t in decisive)


def is_dead(op: Operation) -> bool:
    """Whether the program is the same without the op."""
    return has_no_effect(type(op)) and all(r.first_use is None for r in op.results)


def erase_dead(block: Block, listener: PatternRewriterListener | None = None) -> bool:
    """Erase what is dead in a block, and in the blocks of its ops; whether anything was."""
    erased = False
    for op in reversed(list(block.ops)):
        if is_dead(op):
            if listener is not None:
                listener.handle_operation_removal(op)
            block.erase_op(op, safe_erase=False)
            erased = True
        else:
            for region in op.regions:
                erased |= erase_dead_in(region, listener)
    return erased


def erase_dead_in(region: Region, listener: PatternRewriterListener | None = None) -> bool:
    """The same of all blocks of a region."""
    return any([erase_dead(block, listener) for block in region.blocks])
