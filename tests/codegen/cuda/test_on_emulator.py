"""Programs for CUDA compute on the emulator what the interpreter computes, in every order of blocks
and threads, with no race and no access outside of their buffers."""

from __future__ import annotations

from typing import Any

import pytest

from gnnc.dialects.intra.rows import TraverseOp
from gnnc.dialects.intra.schedule import GridAttr

from ..compiled import INFER, TRAIN, Case, after
from ..random_rows import random_program
from ..shared import LAYERS, SMALL
from ..test_programs import FILES, GRAPHS
from ..test_random import GRAPHS as RANDOM_GRAPHS
from .emulated import check_orders, emulated, plan

PROGRAMS = {**LAYERS, **FILES}
HUBS = {"N": 12, "g": 90, "g0": 90}
LONG = pytest.mark.long


def with_hubs(case: Case, seed: int) -> dict[str, Any]:
    """Values on a graph in which most edges end at one node, and many start at another."""
    values = case.values(seed, HUBS)
    for name in ("g", "g0"):
        if name in values:
            values[name].maps["dst"][:60] = 3
            values[name].maps["src"][50:80] = 7
    return values


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_layers(name: str) -> None:
    case = emulated(PROGRAMS[name])
    for seed, sizes in GRAPHS[:-1]:
        case.check(case.values(seed, sizes))
    check_orders(case, case.values(*GRAPHS[-1]))
    check_orders(case, with_hubs(case, 5))


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if k % 6 == 0 else LONG) for k, n in enumerate(SMALL)]
)
def test_small_programs(name: str) -> None:
    case = emulated(SMALL[name], INFER if "key" in SMALL[name] else TRAIN)
    for seed, sizes in GRAPHS:
        case.check(case.values(seed, sizes))


@pytest.mark.parametrize("lanes", [1, 4, 32])
@pytest.mark.parametrize(
    "name",
    ["rgat", *(pytest.param(n, marks=LONG) for n in ("gcn", "sage_gin", "readout", "dropout"))],
)
def test_any_number_of_lanes(name: str, lanes: int) -> None:
    """As many threads as one likes compute a row, whatever its width."""
    forced = after(PROGRAMS[name], f"{TRAIN},lower-to-intra,schedule-grid{{lanes={lanes}}}")
    grids = [op.schedule for op in forced.walk() if isinstance(op, TraverseOp)]
    assert any(isinstance(g, GridAttr) and g.lanes.data == lanes for g in grids)
    case = emulated(PROGRAMS[name], schedule=plan(lanes))
    check_orders(case, case.values(1))
    check_orders(case, with_hubs(case, 6))


@pytest.mark.parametrize("threads", [32, pytest.param(1024, marks=LONG)])
def test_any_number_of_threads(threads: int) -> None:
    """A block of one warp, and the largest."""
    case = emulated(PROGRAMS["rgat"], schedule=plan(threads=threads))
    check_orders(case, with_hubs(case, 7))


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    "seed", [pytest.param(s, marks=[] if s < 40 or s == 143 else [LONG]) for s in range(500)]
)
def test_random_programs(seed: int) -> None:
    elem = "f32" if seed % 4 == 3 else "f64"
    close = 1e-2 if elem == "f32" else 1e-6
    schedule = plan((0, 1, 4, 32, 0)[seed % 5], (64, 32, 128)[seed % 3])
    case = emulated(random_program(seed, elem), schedule=schedule)
    for graph, sizes in RANDOM_GRAPHS[::2]:
        case.check(case.values(graph, sizes), tolerance=close)
    check_orders(case, case.values(*RANDOM_GRAPHS[1]), tolerance=close)


def test_a_product_that_one_lane_sums_over_a_group() -> None:
    """It is laid in memory by the lane, inside of the loop over the group."""
    case = emulated(random_program(357, "f64"), schedule=plan(1, 64))
    case.check(case.values(1, {"N": 30, "g": 200}), tolerance=1e-6)
