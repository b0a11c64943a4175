"""cse: of ops that compute the same only the first is left.

It does what xDSL's pass of this name does to ops without effects. What tells an op from others is
found once an op, and a block knows the ops of the blocks around it without a copy of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import IsolatedFromAbove

from .dead_ops import has_no_effect, is_dead

Known = dict[object, list[Operation]]
"""Ops that others may be equal to, by all that decides it but what their regions hold."""


@dataclass(frozen=True)
class CsePass(ModulePass):
    """Compute once what is computed twice."""

    name = "cse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        share_equal(op)


def share_equal(module: ModuleOp) -> None:
    """Let readers of an op read an equal one above it, in all functions of a module."""
    spare: list[Operation] = []
    _share_in(module, {}, spare)
    for op in spare:
        Rewriter.erase_op(op)


def _share_in(op: Operation, known: Known, spare: list[Operation]) -> None:
    inner: Known = {} if op.has_trait(IsolatedFromAbove) else known
    for region in op.regions:
        if len(region.blocks) == 1:
            _share_in_block(region.block, inner, spare)


def _share_in_block(block: Block, known: Known, spare: list[Operation]) -> None:
    added: list[list[Operation]] = []
    for op in block.ops:
        if op.regions:
            _share_in(op, known, spare)
        if not has_no_effect(type(op)):
            continue
        if is_dead(op):
            spare.append(op)
            continue
        alike = known.setdefault(_what_decides(op), [])
        first = next((other for other in alike if _hold_the_same(op, other)), None)
        if first is None:
            alike.append(op)
            added.append(alike)
        else:
            for old, new in zip(op.results, first.results, strict=True):
                old.replace_all_uses_with(new)
            spare.append(op)
    for alike in added:  # below the block they are not defined
        alike.pop()


def _what_decides(op: Operation) -> object:
    properties, attributes = frozenset(op.properties.items()), frozenset(op.attributes.items())
    return op.name, tuple(op.operands), properties, attributes, op.result_types


def _hold_the_same(op: Operation, other: Operation) -> bool:
    pairs = zip(op.regions, other.regions, strict=True)
    return all(mine.is_structurally_equivalent(theirs) for mine, theirs in pairs)
