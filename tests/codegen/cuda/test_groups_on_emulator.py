"""Groups of rows in CUDA: long ones in pieces, those that blocks share, typed products and their
sums, tables of members that are not read, the parts of a cut graph, sets without rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gnnc.dialects.intra.products import MatmulOp, OuterOp

from ..compiled import INFER, TRAIN
from ..generate import reductions
from ..shared import program
from ..test_global_rows import PROGRAM as GLOBAL
from ..test_global_rows import part, whole
from ..test_grouped_products import GRAPHS, PHASES, SHAPES, text
from ..test_ordered_members import PROGRAM as ORDERED
from ..test_ordered_members import members_read, with_ends
from .emulated import check_orders, emulated, plan

LONG = pytest.mark.long


def hub_program(row: str) -> str:
    """Reductions of each kind along one map, and of what is read through an index; with softmax and
    its gradient."""
    t, m = (f"!inter.rows<{d}, {row}xf64>" for d in ("g", "N"))
    return program(
        f"%x : {m} {{inter.needs_grad}}, %e : {t} {{inter.needs_grad}}",
        "; ".join(f"%{name} : {m}" for name in ("sum", "mean", "max", "min", "attended")),
        f"""%s = inter.at %g[src], %x : {t}
        %y = inter.mul %s, %e : {t}
        %sum = inter.reduce sum %y over %g along dst : {m}
        %mean = inter.reduce mean %y over %g along src : {m}
        %max = inter.reduce max %y over %g along dst : {m}
        %min = inter.reduce min %e over %g along dst : {m}
        %w = inter.softmax %y over %g along dst : {t}
        %z = inter.mul %w, %s : {t}
        %attended = inter.reduce sum %z over %g along dst : {m}""",
    )


@pytest.mark.parametrize(
    ("row", "lanes"),
    [
        ("5", 0),
        ("40", 0),
        ("1030", 0),
        *(pytest.param(*c, marks=LONG) for c in (("5", 1), ("5", 32), ("2x3", 4), ("600", 0))),
    ],
)
def test_long_groups(row: str, lanes: int) -> None:
    """Lengths around one, two and several pieces: a group of two is not cut."""
    case = emulated(hub_program(row), schedule=plan(lanes, piece=3))
    assert "_pieces" in case.program.data["device"]
    lengths = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 40)
    count = sum(lengths)
    values = case.values(0, {"N": len(lengths), "g": count})
    rng = np.random.default_rng(1)
    values["g"].maps["dst"][:] = rng.permutation(np.repeat(np.arange(len(lengths)), lengths))
    values["g"].maps["src"][: count // 2] = 4
    check_orders(case, values, tolerance=1e-8)


def test_a_long_group_is_reduced_in_pieces() -> None:
    """Other pieces round otherwise: the pieces are used."""
    sums: list[Any] = []
    for piece in (3, 1000):
        case = emulated(hub_program("5"), schedule=plan(piece=piece))
        values = case.values(0, {"N": 3, "g": 900})
        sums.append(case.run(values)["sum"])
    np.testing.assert_allclose(*sums, rtol=1e-9, atol=1e-9)
    assert not np.array_equal(*sums)


@pytest.mark.parametrize(
    ("shape", "on"),
    [
        ("plain", "g"),
        ("heads", "g[rel, src]"),
        *(
            pytest.param(s, on, marks=LONG)
            for s in SHAPES
            for on in ("g", "g[rel, src]")
            if (s, on) not in (("plain", "g"), ("heads", "g[rel, src]"))
        ),
    ],
)
def test_products_and_sums_by_group(shape: str, on: str) -> None:
    """Wherever blocks and tiles of rows cut the groups."""
    case = emulated(text(*SHAPES[shape], on, "f64"), PHASES)
    grouped = {type(op) for op in case.lowered.walk() if getattr(op, "index", None) is not None}
    assert {MatmulOp, OuterOp} <= grouped
    for seed, sizes in enumerate(GRAPHS):
        check_orders(case, case.values(seed, sizes))


def test_rows_in_the_order_of_their_groups() -> None:
    """No table of members is read."""
    case = emulated(ORDERED, INFER)
    for sizes in ({"N": 60, "g": 300}, {"N": 2, "g": 40}, {"N": 5, "g": 0}):
        values = case.values(0, sizes)
        ends = np.sort(values["g"].maps["dst"])
        in_order = members_read(case, with_ends(values, ends))
        assert in_order and not any(in_order)
        if len(ends):
            assert all(members_read(case, with_ends(values, ends[::-1].copy())))


def test_parts_of_a_cut_graph() -> None:
    rng = np.random.default_rng(0)
    values = whole(rng, {"M": 20, "N": 12, "g": 90})
    case = emulated(GLOBAL, f"global-rows,{TRAIN}")
    for nodes in (np.arange(12), np.array([7, 2, 5]), np.array([], np.int64)):
        given, _ = part(rng, values, nodes)
        check_orders(case, given)


EMPTY = ({"N": 0, "g": 0, "R": 0}, {"N": 0, "g": 0}, {"N": 4, "g": 0, "R": 0})


def test_sets_without_rows() -> None:
    """No kernel of a nest has a block, and sums over all rows are written all the same."""
    case = emulated(reductions("5", "f64"), "unify-sets,split-phases")
    for sizes in EMPTY:
        case.check(case.values(0, sizes))


def test_short_rows_of_a_group_by_a_whole_block() -> None:
    """Each thread of the block takes other edges; several results meet in the same memory."""
    t = "!inter.rows<N, 1030xf64>"
    text_ = program(
        f"%x : {t}, %e : !inter.rows<g, 3xf64>",
        f"%y : {t}",
        f"""%s = inter.reduce sum %e over %g along dst : !inter.rows<N, 3xf64>
        %m = inter.row_reduce max %s [0] : !inter.rows<N, f64>
        %y = inter.mul %x, %m : {t}""",
    )
    case = emulated(text_, INFER)
    check_orders(case, case.values(0, {"N": 4, "g": 50}))
