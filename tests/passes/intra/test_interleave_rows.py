"""interleave-rows keeps the meaning, and lays beside each other what attention gathers."""

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from gnnc.dialects.intra.bindings import AllocOp, ColumnsOp, pitch
from gnnc.dialects.intra.loops import nests
from gnnc.dialects.intra.memory import LoadOp, StoreOp
from gnnc.dialects.intra.rows import LookupOp
from gnnc.dialects.intra.steps import phases, steps
from gnnc.dialects.meaning.check import same_meaning
from gnnc.passes.intra.interleave_rows import Memory, row_bytes

from ..lowered import INFER, TRAIN, after, phase
from ..programs import PROGRAMS
from ..small_programs import PROGRAMS as SMALL

CUT = "lower-to-intra,stack-in-place,fuse-traversals,update-in-place,schedule,cut-stages"

HEADS = """
func.func @main(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>,
    %h : !inter.rows<N, 4x6xf64> {inter.needs_grad}, %a : !inter.rows<unit, 4x6xf64>,
    %b : !inter.rows<unit, 4x6xf64> {inter.needs_grad}) -> !inter.rows<N, 4x6xf64> {
  %f = inter.exp %h : !inter.rows<N, 4x6xf64>
  %as = inter.contract "af,af->a" %f, %a : !inter.rows<N, 4xf64>
  %bs = inter.contract "af,af->a" %f, %b : !inter.rows<N, 4xf64>
  %s = inter.at %g[src], %as : !inter.rows<g, 4xf64>
  %d = inter.at %g[dst], %bs : !inter.rows<g, 4xf64>
  %z = inter.add %s, %d : !inter.rows<g, 4xf64>
  %l = inter.leaky_relu %z {slope = 0.2} : !inter.rows<g, 4xf64>
  %p = inter.softmax %l over %g along dst : !inter.rows<g, 4xf64>
  %q = inter.reshape %p : !inter.rows<g, 4x1xf64>
  %m = inter.at %g[src], %f : !inter.rows<g, 4x6xf64>
  %w = inter.mul %q, %m : !inter.rows<g, 4x6xf64>
  %r = inter.reduce sum %w over %g along dst : !inter.rows<N, 4x6xf64>
  func.return %r : !inter.rows<N, 4x6xf64>
}
"""
"""Attention of four heads over rows that the program computes."""
ALL = {**SMALL, **PROGRAMS, "heads": HEADS}


def columns(module: ModuleOp) -> list[ColumnsOp]:
    return [op for op in module.walk() if isinstance(op, ColumnsOp)]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("training", [True, False], ids=["train", "infer"])
@pytest.mark.parametrize("name", ALL)
def test_programs(name: str, training: bool) -> None:
    """And memory is planned for them as for other rows."""
    stages = f"{TRAIN},expand-softmax" if training else f"{INFER},expand-softmax"
    before = after(ALL[name], f"{stages},{CUT}")
    laid = after(before, "interleave-rows,plan-memory")
    same_meaning(before, laid, seeds=range(2))


def test_attention_gathers_one_row() -> None:
    module = after(HEADS, f"{INFER},expand-softmax,{CUT},interleave-rows")
    found = columns(module)
    assert {pitch(op.result) for op in found} == {24 + 4}
    assert sorted(op.first.data for op in found) == [0, 24]


def test_columns_are_apart_and_read_at_tables() -> None:
    """No two columns of a row share a number, and each is read by a look-up somewhere."""
    for name in ALL:
        module = after(ALL[name], f"{TRAIN},expand-softmax,{CUT},interleave-rows")
        for func in phases(module):
            check(func)


def check(func: FuncOp) -> None:
    looked_up = {
        op.buffer
        for nest in nests(func)
        for op in nest.walk()
        if isinstance(op, LoadOp) and isinstance(op.row.owner, LookupOp)
    }
    for rows in func.body.block.ops:
        if not isinstance(rows, AllocOp):
            continue
        parts = [u.operation for u in rows.result.uses if isinstance(u.operation, ColumnsOp)]
        taken = [n for part in parts for n in range(part.first.data, part.first.data + size(part))]
        assert len(set(taken)) == len(taken)
        assert all(part.result in looked_up for part in parts)
        users = (u.operation for part in parts for u in part.result.uses)
        assert all(isinstance(op, LoadOp | StoreOp) for op in users)


def size(part: ColumnsOp) -> int:
    total = 1
    for n in part.result.type.get_shape()[1:]:  # pyright: ignore[reportAttributeAccessIssue]
        total *= n
    return total


def test_what_is_in_use_from_step_to_step() -> None:
    """As lives say; a group that lives as long as any of it takes all of it for so long."""
    module = after(HEADS, f"{TRAIN},expand-softmax,{CUT}")
    func = phase(module)
    memory = Memory(func, steps(func))
    allocs = [op for op in func.body.block.ops if isinstance(op, AllocOp)]
    for domain, found in memory.in_use.items():
        mine = [op for op in allocs if op.domain == domain]
        for step, bytes_in_use in enumerate(found):
            lives = [(op, memory.lives[op.result]) for op in mine]
            want = sum(row_bytes(op) for op, life in lives if life.first <= step <= life.last)
            assert bytes_in_use == want
        joined = memory.joined(mine)
        assert joined.max() == sum(map(row_bytes, mine))
        assert memory.has_room(mine[:1])
