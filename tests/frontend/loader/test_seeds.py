"""The order of seeds."""

import itertools

import numpy as np
import pytest

from gnnc.frontend.torch.loader.seeds import Order
from gnnc.tests.runtime.sampling.checks import check_frequencies


def orders(seed: int, count: int, epochs: int) -> dict[tuple[int, ...], int]:
    order = Order(count, count, True, False, None)
    found: dict[tuple[int, ...], int] = {}
    for epoch in range(epochs):
        one = tuple(order.batches(seed, epoch)[0].tolist())
        found[one] = found.get(one, 0) + 1
    return found


def test_each_order_is_as_frequent():
    every = list(itertools.permutations(range(3)))
    check_frequencies({o: 1 / 6 for o in every}, lambda seed: orders(seed, 3, 300))


def test_orders_of_epochs_share_nothing():
    """Two orders of 20,000 have in the mean one seed at the same place."""
    order = Order(20_000, 20_000, True, False, None)
    drawn = [order.batches(0, epoch)[0] for epoch in range(4)] + [order.batches(1, 0)[0]]
    for a, b in itertools.combinations(drawn, 2):
        assert (a == b).sum() < 9
        shifted = max((a[i:] == b[: b.size - i]).sum() for i in range(1, 40))
        assert shifted < 12


def test_batches_are_cut_in_order():
    order = Order(7, 3, False, False, None)
    assert [b.tolist() for b in order.batches(0, 0)] == [[0, 1, 2], [3, 4, 5], [6]]
    assert len(order) == 3 and len(Order(7, 3, False, True, None)) == 2
    assert [b.tolist() for b in Order(7, 2, False, True, [6, 1, 3]).batches(0, 0)] == [[6, 1]]
    assert Order(0, 3, True, False, None).batches(0, 0) == []
    with pytest.raises(IndexError, match="none of 7 seeds"):
        Order(7, 3, False, False, [7]).batches(0, 0)
    assert np.array_equal(Order(5, 9, True, False, None).batches(3, 1)[0].sum(), 10)
