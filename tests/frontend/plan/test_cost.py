"""Predicted steps: the closed form and the simulation agree where ranks are alike, and what crosses
is what the partition says."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnnc.frontend.plan import cost
from gnnc.frontend.plan.constants import Constants
from gnnc.frontend.plan.layers import KINDS, model
from gnnc.frontend.plan.loads import Numbers, alone, of_partition
from gnnc.frontend.plan.stages import CALL_BYTES, LOSS_NUMBERS, step_stages
from gnnc.frontend.tools.datasets import power_law_edges
from gnnc.runtime.partition import edges

WIDTHS = (24, 16, 8)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(KINDS),
    st.integers(1, 9),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.sampled_from([1e5, 1e8, 1e11]),
    st.sampled_from([0.0, 1e-5, 1e-2]),
    st.sampled_from([None, 0.02, 0.5]),
)
def test_both_agree_where_ranks_are_alike(
    kind: str, ranks: int, overlap: float, bandwidth: float, alpha: float, across: float | None
):
    constants = Constants(overlap=overlap, bandwidth=bandwidth, alpha=alpha)
    numbers = Numbers(20_000, 200_000, across=across)
    layers = model(kind, WIDTHS, numbers.nodes, numbers.edges)
    # each rank then sends something to all others
    found = cost.predict(layers, numbers.loads(ranks), constants)
    assert found.simulated == pytest.approx(found.seconds, rel=1e-9)
    assert found.seconds == pytest.approx(found.work_seconds + found.message_seconds)


def test_one_rank_only_works():
    layers = model("gcn", WIDTHS, 100, 800)
    slow = Constants(alpha=1.0, bandwidth=1.0, exchange=1.0)
    found = cost.predict(layers, alone(100, 800), slow)
    assert found.message_seconds == found.sent_bytes == found.sent_messages == found.halo_rows == 0
    assert found.seconds == found.work_seconds == pytest.approx(found.simulated, rel=1e-12)
    quick = cost.predict(layers, alone(100, 800), Constants())
    assert quick.seconds == found.seconds


def test_work_is_linear_in_its_constants():
    """Each of them counts for itself: what calibration fits."""
    layers, loads = model("gat", (24, 16, 8), 100, 800), alone(100, 800)
    small = replace(Constants(), cache_bytes=1000.0)
    names = ("edge_number", "far_number", "node_number", "multiply_add", "score", "fixed")
    nothing = replace(small, **dict.fromkeys(names, 0.0))
    assert cost.predict(layers, loads, nothing).seconds == 0
    parts = {n: getattr(Constants(), n) for n in names}
    each = [cost.predict(layers, loads, replace(nothing, **{n: v})) for n, v in parts.items()]
    assert all(p.seconds > 0 for p in each)
    whole = cost.predict(layers, loads, small).seconds
    assert sum(p.seconds for p in each) == pytest.approx(whole)


@pytest.mark.parametrize("ranks", [2, 5])
def test_what_crosses_is_what_the_partition_says(ranks: int):
    index = power_law_edges(300, 2000)
    owner = np.random.default_rng(1).integers(0, ranks, 300).astype(np.int32)
    loads = of_partition(edges.in_memory(index[0], index[1], 300), owner, ranks)
    layers = model("sage", WIDTHS, 300, 2000)
    found = cost.predict(layers, loads, Constants())
    first, second = found.layers
    assert first.forward_bytes == loads.volume * 4 * 24
    assert first.backward_rows == first.backward_bytes == 0
    assert second.forward_bytes == second.backward_bytes == loads.volume * 4 * 8
    size, messages = cost.sent(layers, loads)
    parameters = sum(layer.parameters for layer in layers)
    reduced = ranks * (ranks - 1) * (CALL_BYTES + 4 * (parameters + 1))
    assert size.sum() == found.halo_bytes + reduced
    run = cost.simulation(cost.step_stages(layers, loads, Constants()), loads, Constants())
    assert run.sent.tolist() == pytest.approx(size.tolist())
    assert run.messages.tolist() == messages.tolist()


def test_slow_ranks_are_waited_for():
    """Where ranks differ, none is done before the one with the most work; all wait in between."""
    index = power_law_edges(300, 2000)
    owner = (np.arange(300) > 200).astype(np.int32)
    loads = of_partition(edges.in_memory(index[0], index[1], 300), owner, 2)
    working = Constants(alpha=0.0, fixed=0.0, exchange=0.0)
    found = cost.predict(model("gcn", WIDTHS, 300, 2000), loads, working)
    assert found.imbalance > 1.2
    assert found.simulated is not None and found.simulated >= found.work_seconds


def test_constants_change_what_they_say():
    layers, loads = model("gcn", WIDTHS, 8_000, 80_000), Numbers(8_000, 80_000).loads(4)

    def seconds(**changed: float) -> float:
        return cost.predict(layers, loads, replace(Constants(), **changed)).seconds

    plain, others = Constants(), 3
    exchanges = 2 + 2 + 1  # all-reduces; a layer both ways; features forward
    assert seconds(exchange=0.0) == pytest.approx(seconds() - exchanges * plain.exchange)
    assert seconds(alpha=0.0) == pytest.approx(seconds() - exchanges * others * plain.alpha)
    assert seconds(bandwidth=1e6) > seconds() > seconds(shared=1.0) > seconds(overlap=1.0, shared=1)


def test_rows_that_are_in_no_cache_take_longer():
    """On one rank, whose rows are more than those of each of four."""
    layers, numbers = model("gcn", WIDTHS, 8_000, 80_000), Numbers(8_000, 80_000, across=0.0)

    def times(cache: float) -> float:
        constants = replace(Constants(), cache_bytes=cache, fixed=0.0, exchange=0.0, alpha=0.0)
        one, four = (cost.predict(layers, numbers.loads(p), constants) for p in (1, 4))
        return one.work_seconds / four.work_seconds

    in_caches, between, in_memory = times(1e9), times(8_000 / 4 * 8 * 4), times(0.0)
    assert between > in_caches * 1.05
    assert in_memory == pytest.approx(in_caches, rel=0.01)


def test_attention_scores_ghosts_too():
    """Where work on nodes alone takes time: forward a ghost's row is read once and its scores are
    written, backward the row, its gradient and the scores; what arrives is copied, as of any
    layer."""
    numbers = Numbers(8_000, 80_000, across=0.2)
    nothing = dict.fromkeys(
        ("edge_number", "far_number", "multiply_add", "score", "fixed", "exchange"), 0.0
    )
    constants = replace(Constants(**nothing), node_number=1.0, shared=1.0)
    loads = numbers.loads(2)
    (layer,) = model("gat", (16, 8), numbers.nodes, numbers.edges)
    forward, backward = step_stages((layer,), loads, constants)[1:3]
    copied = sum(layer.forward_widths)
    assert forward.after == pytest.approx(loads.ghosts * (2 * copied + layer.outputs + 1))
    assert backward.before == pytest.approx(
        loads.ghosts * (copied + 2 * layer.outputs + 1) + loads.owned * LOSS_NUMBERS * layer.outputs
    )


def test_many_ranks_are_not_simulated():
    layers, loads = model("gcn", WIDTHS, 1e9, 1e11), Numbers(10**9, 10**11).loads(1024)
    found = cost.predict(layers, loads, Constants())
    assert found.simulated is None
    assert 0 < found.seconds < cost.predict(layers, alone(1e9, 1e11), Constants()).seconds
    assert found.halo_rows == pytest.approx(1024 * float(loads.ghosts[0]) * 2)


def test_memory_grows_with_what_a_rank_has():
    layers = model("gcn", WIDTHS, 1e6, 1e7)
    plain = Constants()
    of = {p: cost.memory(layers, Numbers(10**6, 10**7).loads(p), plain) for p in (1, 4)}
    least = plain.fixed_bytes + plain.edge_bytes * 1e7 / 4 + 4 * 24 * 1e6 / 4
    assert least < of[4][0] < of[1][0]
    wide = cost.memory(model("gcn", (24, 64, 8), 1e6, 1e7), alone(1e6, 1e7), plain)
    assert wide[0] > of[1][0]
