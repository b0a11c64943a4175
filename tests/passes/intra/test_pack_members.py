"""pack-members keeps the meaning, and lays each input once for each order."""

import pytest

from gnnc.dialects.intra.bindings import InputOp, MembersOp, OutputOp
from gnnc.dialects.meaning.check import same_meaning

from ..lowered import TRAIN, VANILLA, after, phase

ENTRIES = """
func.func @main(%N: !inter.set<N>, %C: !inter.set<C>, %z: !inter.set<z, row: N, col: C>,
                %v: !inter.rows<z, f32> {inter.name = "v", inter.constant},
                %w: !inter.rows<C, 4xf32> {inter.name = "w", inter.needs_grad},
                %s: !inter.rows<N, f32> {inter.name = "s", inter.needs_grad})
    -> !inter.rows<N, 4xf32> {
  %1 = inter.reshape %v : !inter.rows<z, 1xf32>
  %2 = inter.at %z[col], %w : !inter.rows<z, 4xf32>
  %3 = inter.mul %1, %2 : !inter.rows<z, 4xf32>
  %4 = inter.reduce sum %3 over %z along row : !inter.rows<N, 4xf32>
  %5 = inter.at %z[row], %s : !inter.rows<z, f32>
  %6 = inter.mul %v, %5 : !inter.rows<z, f32>
  %7 = inter.reduce max %6 over %z along row : !inter.rows<N, f32>
  %8 = inter.reshape %7 : !inter.rows<N, 1xf32>
  %9 = inter.add %4, %8 : !inter.rows<N, 4xf32>
  func.return %9 : !inter.rows<N, 4xf32>
}
"""
"""A sparse matrix times a dense one, and the largest scaled entry of each row."""


@pytest.mark.parametrize("phases", [TRAIN, VANILLA], ids=["train", "vanilla"])
def test_programs_keep_their_meaning(phases):
    lowered = after(ENTRIES, f"{phases},lower-to-intra,fuse-traversals")
    packed = after(lowered, "pack-members")
    assert any(isinstance(op, InputOp) and op.along is not None for op in packed.walk())
    same_meaning(lowered, packed, seeds=range(2))


def test_each_order_is_laid_once():
    module = after(ENTRIES, f"{TRAIN},lower-to-intra,fuse-traversals,pack-members")
    laid = [op.buffer.data for op in phase(module, "prepare").walk() if isinstance(op, OutputOp)]
    assert sorted(laid) == ["v_by_col", "v_by_row"]
    ops = [op for name in ("forward", "backward") for op in phase(module, name).walk()]
    assert "v" not in [op.buffer.data for op in ops if isinstance(op, InputOp)]


NORMALISED = """
func.func @main(%N: !inter.set<N>, %g: !inter.set<g, src: N, dst: N>,
                %w: !inter.rows<g, f32> {inter.name = "w", inter.constant},
                %x: !inter.rows<N, 4xf32> {inter.name = "x", inter.needs_grad})
    -> !inter.rows<N, 4xf32> {
  %d = inter.reduce sum %w over %g along dst : !inter.rows<N, f32>
  %e = inter.at %g[dst], %d : !inter.rows<g, f32>
  %n = inter.div %w, %e : !inter.rows<g, f32>
  %1 = inter.reshape %n : !inter.rows<g, 1xf32>
  %2 = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %3 = inter.mul %1, %2 : !inter.rows<g, 4xf32>
  %4 = inter.reduce sum %3 over %g along dst : !inter.rows<N, 4xf32>
  func.return %4 : !inter.rows<N, 4xf32>
}
"""
"""A sum with weights of edges that are normalised."""


def test_what_follows_from_constants_is_prepared_in_order():
    """The normalised weights are kept, and read in the order of either end."""
    lowered = after(NORMALISED, f"{TRAIN},lower-to-intra,fuse-traversals")
    packed = after(lowered, "pack-members")
    same_meaning(lowered, packed, seeds=range(2))
    read = [op for name in ("forward", "backward") for op in phase(packed, name).walk()]
    ordered = [op.buffer.data for op in read if isinstance(op, InputOp) and op.along is not None]
    assert sorted(ordered) == ["n_by_dst", "n_by_src"]
    assert not any(isinstance(op, MembersOp) for op in read)
