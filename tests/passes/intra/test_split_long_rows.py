"""split-long-rows keeps the meaning, and every number is stored once."""

import pytest

from gnnc.dialects.intra.bindings import PiecesOp
from gnnc.dialects.intra.rows import LoadOp
from gnnc.dialects.intra.syntax import length
from gnnc.dialects.meaning.check import same_meaning
from gnnc.passes.intra.split_long_rows import piece_length
from gnnc.passes.targets.openmp import OPENMP

from ..lowered import TRAIN, after, nests

PENALTY = """
func.func @main(%N : !inter.set<N>, %x : !inter.rows<N, 256xf32>,
    %W : !inter.rows<unit, 256x{width}xf32> {{inter.needs_grad}})
    -> (!inter.rows<unit, f32>, !inter.rows<unit, 256x{width}xf32>) {{
  %y = inter.contract "k,kf->f" %x, %W : !inter.rows<N, {width}xf32>
  %s = inter.row_reduce sum %y [0] : !inter.rows<N, f32>
  %l = inter.reduce sum %s over %N along () : !inter.rows<unit, f32>
  %q = inter.mul %W, %W : !inter.rows<unit, 256x{width}xf32>
  %t = inter.tanh %q : !inter.rows<unit, 256x{width}xf32>
  %r = inter.row_reduce sum %t [0, 1] : !inter.rows<unit, f32>
  %o = inter.add %l, %r : !inter.rows<unit, f32>
  %e = inter.reshape %l : !inter.rows<unit, 1x1xf32>
  %z = inter.mul %q, %e : !inter.rows<unit, 256x{width}xf32>
  func.return %o, %z : !inter.rows<unit, f32>, !inter.rows<unit, 256x{width}xf32>
}}
"""
"""Long rows that are stored, differentiated and reduced."""


@pytest.mark.parametrize("width", [8, 64, 67])
def test_keeps_values(width: int) -> None:
    before = after(PENALTY.format(width=width), f"{TRAIN},lower-to-intra,fuse-traversals")
    spread = after(before, "split-long-rows")
    same_meaning(before, spread, seeds=range(2))
    cut = [op for op in spread.walk() if isinstance(op, PiecesOp)]
    assert bool(cut) == (256 * width >= OPENMP.nests.long_row)


def test_pieces_hold_no_long_row() -> None:
    before = after(PENALTY.format(width=64), f"{TRAIN},lower-to-intra,fuse-traversals")
    spread = after(before, "split-long-rows")
    for name in ("forward", "backward"):
        for nest in nests(spread, name):
            if isinstance(nest.size.owner, PiecesOp):
                loads = [op for op in nest.walk() if isinstance(op, LoadOp)]
                assert loads
                assert all(length(op.result) <= OPENMP.nests.piece for op in loads)


def test_spreading_twice_changes_nothing() -> None:
    lowered = f"{TRAIN},lower-to-intra,fuse-traversals,split-long-rows"
    once = after(PENALTY.format(width=64), lowered)
    assert str(after(once, "split-long-rows")) == str(once)


@pytest.mark.parametrize(
    ("count", "piece"), [(4096, 4096), (90 * 4096, 4096), (602 * 41, 3526), (16411, 0)]
)
def test_pieces_divide_the_row(count: int, piece: int) -> None:
    """16411 is a prime."""
    assert piece_length(count, 4096) == piece
