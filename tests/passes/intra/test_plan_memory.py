"""plan-memory lets temporaries share slots whose lives do not meet, and only those."""

import pytest

from gnnc.dialects.intra.bindings import AllocOp
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
    """The interpreter forgets what lies in a slot as soon as another buffer of it is written."""
    module = after(LAYERS[name], before)
    same_meaning(module, after(module, "plan-memory"), seeds=SEEDS)


def slots(module, name="forward"):
    """(domain, slot) of each temporary."""
    return [
        (str(op.domain) if op.domain is not None else "unit", op.slot.data)
        for op in phase(module, name).body.block.ops
        if isinstance(op, AllocOp)
    ]


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


def test_a_chain_needs_two_slots():
    """A nest reads one and writes the other."""
    module = after(CHAIN, f"{INFER},lower-to-intra,plan-memory")
    assert slots(module) == [("N", 0), ("N", 1), ("N", 0), ("N", 1)]


def test_other_domains_have_other_slots():
    text = program(
        X,
        "%y : !inter.rows<g, f64>",
        """
%a = inter.exp %x : !inter.rows<N, 3xf64>
%b = inter.row_reduce sum %a [0] : !inter.rows<N, f64>
%s = inter.at %g[src], %b : !inter.rows<g, f64>
%d = inter.at %g[dst], %b : !inter.rows<g, f64>
%m = inter.mul %s, %d : !inter.rows<g, f64>
%y = inter.tanh %m : !inter.rows<g, f64>
""",
    )
    found = slots(after(text, f"{INFER},lower-to-intra,fuse-traversals,plan-memory"))
    by_slot = {}
    for domain, slot in found:
        assert by_slot.setdefault(slot, domain) == domain


def test_a_plan_that_shares_too_much_is_seen():
    """The check notices a buffer that is overwritten while it is needed."""
    module = after(CHAIN, f"{INFER},lower-to-intra")
    planned = after(module, "plan-memory")
    first = next(op for op in planned.walk() if isinstance(op, AllocOp))
    for op in planned.walk():
        if isinstance(op, AllocOp):
            op.properties["slot"] = first.properties["slot"]
    with pytest.raises(MeaningChanged, match="e differs"):
        same_meaning(module, planned)
