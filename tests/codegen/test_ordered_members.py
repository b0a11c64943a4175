"""Rows that lie in the order of their groups: kernels read no table of members, and compute the
same."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from gnnc.dialects.meaning import SetVal
from gnnc.runtime.program import PhaseOnGraph
from gnnc.runtime.sets.tables import Tables

from .compiled import COARSE, FINE, INFER, Case, call_together

PROGRAM = """
func.func @f(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>,
             %x : !inter.rows<N, 19xf64>, %e : !inter.rows<g, 3xf64>, %w : !inter.rows<g, f64>)
    -> (!inter.rows<N, 3xf64>, !inter.rows<N, 3xf64>, !inter.rows<N, 19xf64>) {
  %a = inter.reduce sum %e over %g along dst : !inter.rows<N, 3xf64>
  %b = inter.reduce max %e over %g along dst : !inter.rows<N, 3xf64>
  %s = inter.at %g[src], %x : !inter.rows<g, 19xf64>
  %m = inter.mul %w, %s : !inter.rows<g, 19xf64>
  %c = inter.reduce sum %m over %g along dst : !inter.rows<N, 19xf64>
  func.return %a, %b, %c : !inter.rows<N, 3xf64>, !inter.rows<N, 3xf64>, !inter.rows<N, 19xf64>
}
"""
SIZES = ({"N": 60, "g": 900}, {"N": 2, "g": 90}, {"N": 30, "g": 0}, {"N": 1, "g": 1})


def members_read(case: Case, values: Mapping[str, Any]) -> list[bool]:
    """Whether each table of members is given to the kernels, which compute the right numbers."""
    seen: list[bool] = []

    def call(phase: PhaseOnGraph, tables: Tables, arrays: Mapping[int, Any]) -> None:
        kinds = [b["kind"] for b in phase.phase.buffers]
        seen.extend(
            bool(p) for kind, p in zip(kinds, phase.fixed, strict=True) if kind == "members"
        )
        call_together(phase, tables, arrays)

    case.check(values, call=call)
    return seen


def with_ends(values: Mapping[str, Any], ends: Any) -> dict[str, Any]:
    g: SetVal = values["g"]
    return {**values, "g": dataclasses.replace(g, maps={**g.maps, "dst": ends})}


@pytest.mark.parametrize("target", ["openmp", "reference"])
@pytest.mark.parametrize("schedule", [FINE, COARSE], ids=["fine", "coarse"])
def test_order_of_groups(target: str, schedule: str) -> None:
    case = Case.of(PROGRAM, INFER, target=target, schedule=schedule)
    for seed, sizes in enumerate(SIZES):
        values = case.values(seed, sizes)
        ends = np.sort(values["g"].maps["dst"])
        in_order = members_read(case, with_ends(values, ends))
        assert in_order and not any(in_order)
        if len(set(ends)) > 1:
            backwards = members_read(case, with_ends(values, ends[::-1].copy()))
            assert all(backwards)


def test_members_that_begin_and_end_in_order_are_read() -> None:
    case = Case.of(PROGRAM, INFER)
    values = case.values(0, {"N": 3, "g": 5})
    assert all(members_read(case, with_ends(values, np.array([0, 1, 0, 1, 2]))))
