"""plan-memory knows when buffers are in use."""

import pytest
from xdsl.dialects.builtin import IntAttr

from gnnc.dialects.intra.bindings import AllocOp, InputOp, OutputOp
from gnnc.dialects.meaning.check import MeaningChanged, same_meaning

from ..lowered import INFER, TRAIN, VANILLA, after, phase
from ..programs import PROGRAMS as LAYERS
from ..small_programs import X, program

SEEDS = range(2)


@pytest.mark.parametrize(
    "before",
    [f"{TRAIN},lower-to-intra,fuse-traversals", f"{VANILLA},lower-to-intra"],
    ids=["fused", "unfused"],
)
@pytest.mark.parametrize("name", LAYERS)
def test_layers_keep_their_meaning(name, before):
    """The interpreter forgets what is not in use."""
    module = after(LAYERS[name], before)
    same_meaning(module, after(module, "plan-memory"), seeds=SEEDS)


def lives(module, kind, name="forward"):
    ops = phase(module, name).body.block.ops
    return [tuple(op.lives) for op in ops if isinstance(op, kind)]


CHAIN = program(
    X,
    "%e : !inter.rows<N, 3xf64>",
    """
%a = inter.exp %x : !inter.rows<N, 3xf64>
%b = inter.neg %a : !inter.rows<N, 3xf64>
%c = inter.tanh %b : !inter.rows<N, 3xf64>
%d = inter.sin %c : !inter.rows<N, 3xf64>
%e = inter.cos %d : !inter.rows<N, 3xf64>
""",
)


def test_a_chain_needs_each_result_for_one_more_step():
    module = after(CHAIN, f"{INFER},lower-to-intra,plan-memory")
    assert sorted(lives(module, AllocOp)) == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_arguments_are_there_before_and_results_afterwards():
    module = after(CHAIN, f"{INFER},lower-to-intra,plan-memory")
    assert lives(module, InputOp) == [(0, 0)]
    assert lives(module, OutputOp) == [(4, 4)]


@pytest.mark.parametrize("kind, step", [("last", 0), ("first", 1)])
def test_a_life_that_is_too_short_is_seen(kind, step):
    """The check notices a buffer that may be overwritten while it is needed."""
    module = after(CHAIN, f"{INFER},lower-to-intra")
    planned = after(module, "plan-memory")
    first = next(op for op in planned.walk() if isinstance(op, AllocOp) and op.lives == (0, 1))
    same_meaning(module, planned)
    first.properties[kind] = IntAttr(step)
    with pytest.raises(MeaningChanged, match="e differs"):
        same_meaning(module, planned)
