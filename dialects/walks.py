"""A walk over the ops inside an op."""

from __future__ import annotations

from xdsl.ir import Operation


def ops_within(op: Operation) -> list[Operation]:
    """The ops in the regions of an op, in order, each in front of those in its own regions. xDSL's
    `walk` gives them one by one, through a generator for each op and block above."""
    found: list[Operation] = []
    for region in op.regions:
        for block in region.blocks:
            inner = block.first_op
            while inner is not None:
                found.append(inner)
                if inner.regions:
                    found += ops_within(inner)
                inner = inner.next_op
    return found
