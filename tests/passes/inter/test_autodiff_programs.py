"""autodiff on whole layers, before and after other passes; rules that look right and are wrong."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException, VerifyException

from gnnc.dialects.inter.reduce import SoftmaxOp
from gnnc.dialects.inter.types import Dom, rows
from gnnc.passes.inter.differentiation import derivatives
from gnnc.passes.inter.differentiation.reverse import Reverse
from gnnc.passes.inter.infer_domains import infer_domains
from gnnc.passes.inter.unify_sets import unify_sets

from ..gradients import GRAPHS, agree, slopes
from ..programs import PROGRAMS

BEFORE = {"whole": (), "least": (unify_sets, infer_domains)}


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(name, before, graph):
    found = slopes(PROGRAMS[name], graph, 5, BEFORE[before])
    assert agree(found), found


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.sampled_from(sorted(PROGRAMS)), st.sampled_from(GRAPHS), st.integers(0, 10**6))
def test_gradients_on_drawn_graphs(name, graph, seed):
    found = slopes(PROGRAMS[name], graph, seed, BEFORE["least"])
    assert agree(found), found


class OverCotangent(Reverse):
    """Sums a read over the rows that the cotangent is stored on."""

    def rows_of_read(self, cotangent: SSAValue, over: Dom, a: SSAValue) -> Dom:
        return rows(cotangent).dom


class OverJoin(Reverse):
    """The same, mended so that it is always well typed."""

    def rows_of_read(self, cotangent: SSAValue, over: Dom, a: SSAValue) -> Dom:
        return self.env.join([rows(cotangent).dom, rows(a).dom])


def wrong(name: str, reverse: type[Reverse], before: str = "least") -> bool:
    """Whether a verifier or the numbers of some graph find the fault."""
    try:
        graphs = (slopes(PROGRAMS[name], "random", s, BEFORE[before], reverse) for s in range(4))
        return not all(agree(found) for found in graphs)
    except (VerifyException, PassFailedException):
        return True


def test_sum_over_the_domain_of_the_cotangent_is_wrong():
    assert wrong("readout", OverCotangent)


@pytest.mark.parametrize("name,found", [("gcn", False), ("rgat", False), ("readout", True)])
def test_sum_over_the_join_is_wrong_but_only_a_readout_shows_it(name, found):
    assert wrong(name, OverJoin) == found


def test_join_mutant_is_well_typed():
    slopes(PROGRAMS["readout"], "random", 5, BEFORE["least"], OverJoin)


def _naive_softmax(r: Reverse, op: SoftmaxOp) -> None:
    """p * (d - sum(p * d)) with the sum over `over`."""
    b, p, d = r.b, op.results[0], r.cotangent(op.results[0])
    total = b.reduce("sum", b.mul(p, d), op.over, op.along_keys)
    inner = r.lift(op.over.set, op.along_keys, total)
    r.put(op.x, lambda: b.mul(p, b.sub(d, inner)), op.type.dom)


@pytest.mark.parametrize("before,right", [("whole", True), ("least", False)])
def test_the_rule_of_softmax_depends_on_where_it_is_stored(monkeypatch, before, right):
    monkeypatch.setitem(derivatives.RULES, SoftmaxOp, _naive_softmax)
    assert wrong("readout", Reverse, before) != right
