"""What nests read and write."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ...dialects.intra.bindings import root
from ...dialects.intra.rows import LoadOp, MatmulOp, OuterOp, StoreOp, TotalOp, TraverseOp


def nests(func: FuncOp) -> list[TraverseOp]:
    return [op for op in func.body.block.ops if isinstance(op, TraverseOp)]


def written(nest: TraverseOp) -> set[SSAValue]:
    """Roots of the buffers a nest writes."""
    return {root(op.buffer) for op in nest.walk() if isinstance(op, StoreOp | TotalOp | OuterOp)}


def read(nest: TraverseOp) -> set[SSAValue]:
    """Roots of the buffers a nest reads."""
    out: set[SSAValue] = set()
    for op in nest.walk():
        if isinstance(op, LoadOp):
            out.add(root(op.buffer))
        elif isinstance(op, MatmulOp):
            out.add(root(op.weight))
    return out
