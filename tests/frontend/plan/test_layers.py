"""Layers as the compiler would have them. That ranks send what these say is tested where bytes are
counted (tests/bench/test_plan.py)."""

import pytest

from gnnc.frontend.plan.layers import HEADS, KINDS, STAYING, lines, model


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_are_those_of_pyg(kind: str):
    models = pytest.importorskip("gnnc.frontend.tools.models")
    widths = (12, 16, 8, 5)
    net = models.Net(kind, widths)
    count = sum(p.numel() for p in net.parameters())
    assert sum(layer.parameters for layer in model(kind, widths, 100, 500)) == count


def test_bounds_are_those_of_the_compiler():
    constants = pytest.importorskip("gnnc.frontend.torch.constant_inputs")
    models = pytest.importorskip("gnnc.frontend.tools.models")
    assert constants.LEAST == STAYING
    assert models.GAT_HEADS == HEADS
    assert tuple(models.CONVOLUTIONS) == KINDS


@pytest.mark.parametrize("kind", ["gcn", "sage", "gin"])
def test_features_are_summed_where_that_sends_nothing_back(kind: str):
    """16 numbers there and none back, rather than 8 both ways; then what is narrower."""
    first, second = model(kind, (16, 8, 4), 1000, 8000)
    assert (first.forward_widths, first.backward_widths) == ((16,), ())
    assert (second.forward_widths, second.backward_widths) == ((4,), (4,))


@pytest.mark.parametrize("kind", ["gcn", "sage", "gin"])
def test_wide_features_are_multiplied_first(kind: str):
    first, _ = model(kind, (128, 16, 4), 1000, 8000)
    assert (first.forward_widths, first.backward_widths) == ((16,), (16,))


@pytest.mark.parametrize("kind", ["gcn", "sage", "gin"])
def test_a_wider_second_layer_sums_its_inputs(kind: str):
    _, second = model(kind, (4, 16, 32), 1000, 8000)
    assert (second.forward_widths, second.backward_widths) == ((16,), (16,))


def test_large_features_are_summed_once():
    nodes = STAYING // 64
    first, second = model("gcn", (64, 32, 16), nodes, 8 * nodes)
    assert first.once and first.forward_widths == first.backward_widths == ()
    assert not second.once
    assert not model("gcn", (64, 32, 16), nodes - 1, 8 * nodes)[0].once


def test_a_gin_reads_a_kept_sum_beside_its_own_rows():
    small, large = (model("gin", (64, 32, 16), n, 8 * n)[0] for n in (1_000, 100_000))
    assert not small.once and large.once
    assert large.forward_numbers - small.forward_numbers == 64
    assert large.backward_numbers - small.backward_numbers == 64


def test_attention_sends_products_and_reads_scores_too():
    first, second = model("gat", (16, 64, 32, 4), 1000, 8000)[::2]
    assert first.forward_widths == first.backward_widths == (64,)
    assert first.read_widths == (8, 64)
    assert (second.forward_widths, second.read_widths) == ((4,), (1, 4))


def test_attention_keeps_numbers_of_nodes_and_reads_four_of_each_head():
    for layer in model("gat", (16, 64, 32, 4), 1000, 8000):
        assert layer.read_back_widths == (4 * layer.heads, layer.width)
        kept = 4 * layer.outputs + 6 * layer.heads
        assert layer.forward_numbers == layer.inputs + layer.outputs + kept
    assert all(m.read_back_widths == m.read_widths for m in model("sage", (8, 8, 4), 1000, 8000))


def test_products_are_of_whole_vectors():
    first, second = model("gcn", (20, 8, 40), 1000, 8000)
    assert (first.product, first.product_back) == (20 * 16, 20 * 16)
    assert (second.product, second.product_back) == (8 * 48, 8 * 48 + 40 * 16)
    (only,) = model("gin", (20, 8), 1000, 8000)
    # weights of both products, and what the outer one's gradient is made of
    assert (only.product, only.product_back) == (20 * 16 + 8 * 16, 20 * 16 + 2 * 8 * 16)


def test_numbers_of_nodes_are_what_products_read_and_write():
    first, second = model("sage", (20, 8, 40), 1000, 8000)
    assert (first.forward_numbers, first.backward_numbers) == (2 * 20 + 8, 2 * 20 + 8)
    assert (second.forward_numbers, second.backward_numbers) == (2 * 8 + 40, 2 * 8 + 40 + 8)
    (only,) = model("gin", (20, 8), 1000, 8000)
    assert (only.forward_numbers, only.backward_numbers) == (20 + 3 * 8, 20 + 5 * 8)


def test_rows_are_read_by_cache_lines():
    # 80 bytes take 64 + 64 on average over their places, less what divides both
    assert lines(20) == (80 + 64 - 16) // 4
    assert (lines(4), lines(16)) == (4, 16)


@pytest.mark.parametrize(
    ("kind", "widths", "text"),
    [
        ("gcm", (3, 4), "model: there is no 'gcm'"),
        ("gcn", (3,), "widths: "),
        ("gcn", (3, 0), "widths: "),
        ("gat", (3, 12, 4), "hidden: 8 heads cannot share 12"),
    ],
)
def test_refused(kind: str, widths: tuple[int, ...], text: str):
    with pytest.raises(ValueError, match=text):
        model(kind, widths, 10, 10)
