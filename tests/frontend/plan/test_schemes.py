"""Ways to spread a layer, against numbers worked out by hand and against each other."""

import pytest

from gnnc.frontend.plan.constants import Constants
from gnnc.frontend.plan.layers import model
from gnnc.frontend.plan.loads import Numbers, alone
from gnnc.frontend.plan.schemes import COLUMNS, HALO, REPLICATED, compared, copies

NODES, EDGES = 64_000, 640_000
FEATURES, HIDDEN, CLASSES = 96, 32, 16


def layer(place: int = 1):
    return model("gcn", (FEATURES, HIDDEN, CLASSES), 1000, 10_000)[place]


def schemes(ranks: int, constants: Constants | None = None, **numbers: float):
    loads = Numbers(NODES, EDGES, **numbers).loads(ranks)  # type: ignore[arg-type]
    return {s.name: s for s in compared(layer(), loads, constants or Constants())}


def test_copies_are_those_whose_square_divides():
    assert copies(16) == [2, 4]
    assert copies(36) == [2, 3, 6]
    assert copies(7) == copies(1) == []
    assert 32 in copies(1024)


def test_bytes_of_each():
    found = schemes(16, Constants(alpha=0.0))
    width, both = CLASSES * 4, 2
    loads = Numbers(NODES, EDGES).loads(16)
    assert found[HALO].bytes == pytest.approx(float(loads.ghosts[0]) * width * both)
    # 2 n f / c + 4 (c - 1) n f / P: n f / c broadcast, and summed up over c, forward and backward
    c = found[REPLICATED].copies
    rows = NODES / c + 2 * (c - 1) / c * NODES * c / 16
    assert found[REPLICATED].bytes == pytest.approx(rows * width * both)
    assert found[COLUMNS].bytes == pytest.approx(2 * NODES / 16 * 15 / 16 * width * both)


def test_the_first_is_the_fastest():
    loads = Numbers(NODES, EDGES).loads(64)
    seconds = [s.seconds for s in compared(layer(), loads, Constants())]
    assert seconds == sorted(seconds) and len(seconds) == 3


def test_of_copies_the_best_is_taken():
    """With free messages no copy pays its products; with dear bytes many do."""
    free = Constants(alpha=0.0, bandwidth=1e30)
    dear = Constants(alpha=0.0, bandwidth=1e3)
    assert schemes(64, free)[REPLICATED].copies == 2
    assert schemes(64, dear)[REPLICATED].copies > 2


def test_a_good_cut_makes_halos_win_and_a_bad_one_does_not():
    dear = Constants(bandwidth=1e7, alpha=0.0)
    loads = Numbers(NODES, EDGES, across=0.01, border=0.05).loads(16)
    assert compared(layer(), loads, dear)[0].name == HALO
    assert compared(layer(), Numbers(NODES, EDGES).loads(16), dear)[0].name != HALO


def test_columns_read_all_edges():
    """Work that does not shrink with ranks: the place of each row."""
    free = Constants(alpha=0.0, bandwidth=1e30)
    few, many = schemes(16, free), schemes(256, free)
    assert many[COLUMNS].work_seconds > few[COLUMNS].work_seconds / 4
    assert many[HALO].work_seconds < few[HALO].work_seconds / 4


def test_layers_that_exchange_nothing():
    once = model("gcn", (FEATURES, HIDDEN, CLASSES), NODES, EDGES)[0]
    assert once.once
    (found,) = compared(once, Numbers(NODES, EDGES).loads(4), Constants())
    assert found.name == HALO and found.bytes == found.messages == 0
    (single,) = compared(layer(), alone(NODES, EDGES), Constants())
    assert single.message_seconds == 0
