"""Compiled layers and models equal PyG's, in outputs, gradients and running statistics."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gnnc
from gnnc.runtime.cpu import toolchain

from .equality import FIXED, Edges, assert_interchangeable, graphs, random_edges
from .models import CASES, Case

WIDTHS = (1, 3, 16, 33, 100)
DTYPES = (torch.float32, torch.float64)


def spread() -> list[Any]:
    """Every case once, with widths and dtypes taken in turn; the other combinations take long."""
    chosen = []
    for k, case in enumerate(CASES):
        quick = (WIDTHS[k % 5], WIDTHS[(k // 5 + 2 * k + 1) % 5], DTYPES[k % 3 == 2])
        for a, b, dtype in itertools.product(WIDTHS, WIDTHS, DTYPES):
            late = (a, b, dtype) != quick
            if (late and a != b and a != 16) or is_sign(case, a, b):
                continue
            marks = [pytest.mark.long] if late else []
            name = f"{case.name}-{a}-{b}-{str(dtype).removeprefix('torch.')}"
            chosen.append(pytest.param(case, a, b, dtype, id=name, marks=marks))
    return chosen


def is_sign(case: Case, a: int, b: int) -> bool:
    """Whether a single number is normalised: what is left is its sign, gradients are rounding."""
    return b == 1 and ("normalize" in case.name or ("gin" in case.name and a == 1))


def legal(case: Case, g: Edges) -> bool:
    """BatchNorm refuses to train on one row, and makes signs of two, so gradients are rounding."""
    normalised = "batchnorm" in case.name or "gin" in case.name
    return case.evaluate or not normalised or g.sources > 3


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("case", "a", "b", "dtype"), spread())
def test_equal_to_pyg(case: Case, a: int, b: int, dtype: torch.dtype) -> None:
    eager = case.model(a, b, dtype)
    compiled = gnnc.compile(copy.deepcopy(eager))

    def bipartite(g: Edges) -> Edges:
        return random_edges(g.count, g.sources, 5, g.count, "hub") if case.bipartite else g

    first, empty = bipartite(FIXED[0]), bipartite(FIXED[-1])
    for g in (first, empty):  # Dynamo sees another layout of memory where there are no edges
        assert_interchangeable(eager, compiled, case.arguments(g, a, dtype))
    report, before = gnnc.explain(compiled), toolchain.stats().compiled
    assert report.fallbacks == []
    graphs_before = report.graphs
    smooth = 0
    for k, g in enumerate(FIXED):
        if legal(case, g):
            args = case.arguments(bipartite(g), a, dtype, seed=k)
            smooth += assert_interchangeable(eager, compiled, args, seed=k)
    assert smooth

    @settings(
        max_examples=15,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(g=graphs(case.bipartite), seed=st.integers(0, 2**16))
    def others(g: Edges, seed: int) -> None:
        if legal(case, g):
            assert_interchangeable(eager, compiled, case.arguments(g, a, dtype, seed), seed)

    others()
    assert toolchain.stats().compiled == before, "a new graph was compiled for"
    assert report.graphs == graphs_before
    assert report.fallbacks == []
