"""infer-domains keeps values, lowers every value to the join of its operands, and no further."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnnc.dialects.inter.types import rows
from gnnc.dialects.meaning.check import parse_module, same_meaning
from gnnc.passes.inter.autodiff import autodiff
from gnnc.passes.inter.infer_domains import infer_domains
from gnnc.passes.inter.unify_sets import unify_sets
from gnnc.passes.inter.verify_sets import verify_sets

from ..gradients import parse
from ..programs import PROGRAMS


@pytest.mark.parametrize("name", PROGRAMS)
def test_meaning(name):
    before, after = parse_module(PROGRAMS[name]), parse_module(PROGRAMS[name])
    infer_domains(after.body.block.first_op)
    after.verify()
    verify_sets(after.body.block.first_op)
    same_meaning(before, after)


@pytest.mark.parametrize("name", PROGRAMS)
def test_meaning_of_a_backward(name):
    """Gradients of the vanilla program, compacted afterwards."""
    before, (after, func) = parse_module(PROGRAMS[name]), parse(PROGRAMS[name])
    for module in (before, after):
        autodiff(module.body.block.first_op)
    infer_domains(func)
    verify_sets(func)
    unify_sets(func)
    verify_sets(func)
    same_meaning(before, after, seeds=range(2))


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.sampled_from(sorted(PROGRAMS)), st.integers(0, 10**6))
def test_meaning_on_drawn_graphs(name, seed):
    before, after = parse_module(PROGRAMS[name]), parse_module(PROGRAMS[name])
    infer_domains(after.body.block.first_op)
    same_meaning(before, after, seeds=[seed])


def test_domains_of_rgat():
    _, func = parse(PROGRAMS["rgat"])
    assert infer_domains(func) > 0
    domains = {
        op.results[0].name_hint: str(rows(op.results[0]).dom)
        for op in func.body.block.ops
        if op.results
    }
    assert domains == {
        "xs": "g[src]", "xd": "g[dst]", "Wr": "g[rel]", "wr": "g[rel]", "v": "R", "vr": "g[rel]",
        "hs": "g[rel, src]", "as": "g[rel, src]", "at": "g[dst, rel]", "z": "g", "a": "g",
        "p": "g", "pc": "g", "m": "g", "o": "N",
    }  # fmt: skip
    assert infer_domains(func) == 0
