"""Passes on nests do work in proportion to a program: twice the parameters, twice the steps."""

from collections.abc import Callable

import pytest

from gnnc.dialects.intra.loops import TraverseOp
from gnnc.passes.driver.pipelines import pipeline
from gnnc.passes.inter.optimizers import RULES
from gnnc.passes.intra.fusion import simplify
from gnnc.passes.targets.openmp import OPENMP

from ..lowered import after

BEFORE, _ = pipeline(True, OPENMP).split(",fuse-traversals")
AFTER = "fuse-traversals,update-in-place"


def layers(count: int) -> str:
    """A loss of as many parameters, each with a gradient and a step of Adam of its own."""
    row, one = "!inter.rows<unit, 3xf64>", "!inter.rows<unit, f64>"
    arguments, body = ["%N : !inter.set<N>", "%x : !inter.rows<N, 3xf64>"], ["%y0 = inter.neg %x"]
    for i in range(count):
        arguments.append(f'%W{i} : {row} {{inter.needs_grad, inter.optimizer = "adam"}}')
        for name in RULES["adam"].state:
            kind = one if name == "step" else row
            arguments.append(f'%{name}{i} : {kind} {{inter.state_of = "W{i}"}}')
        numbers = f"!inter.rows<unit, {len(RULES['adam'].numbers)}xf64>"
        arguments.append(f'%n{i} : {numbers} {{inter.state_of = "W{i}"}}')
        body.append(f"%y{i + 1} = inter.mul %y{i}, %W{i}")
    lines = "\n  ".join(f"{line} : !inter.rows<N, 3xf64>" for line in body)
    return f"""
func.func @main({", ".join(arguments)}) -> ({one}) {{
  {lines}
  %s = inter.row_reduce sum %y{count} [0] : !inter.rows<N, f64>
  %l = inter.reduce sum %s over %N along () : {one}
  func.return %l : {one}
}}
"""


def test_walks_of_nests(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a pass looks at nest by nest it looks at a fixed number of times for each nest."""
    seen = 0

    def counted(of: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object) -> object:
            nonlocal seen
            seen += 1
            return of(*args)

        return call

    programs = [after(layers(n), BEFORE) for n in (6, 12)]
    monkeypatch.setattr(TraverseOp, "reads", counted(TraverseOp.reads))
    monkeypatch.setattr(TraverseOp, "writes", counted(TraverseOp.writes))
    monkeypatch.setattr(simplify, "erase_dead", counted(simplify.erase_dead))
    found: list[int] = []
    for program in programs:
        seen = 0
        after(program, AFTER)
        found.append(seen)
    assert found[1] <= 2.3 * found[0], found
