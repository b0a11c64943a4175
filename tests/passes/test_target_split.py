"""Up to lower-to-intra a program is the same for all targets: both levels of the IR know a target
by what its work costs, and by nothing else."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from gnnc.passes.driver.pipelines import pipeline
from gnnc.passes.targets import TARGETS, Target
from gnnc.passes.targets.openmp import OPENMP

from .lowered import after
from .programs import PROGRAMS

FOLDER = Path(__file__).parents[1] / "codegen" / "programs"
TEXTS = {**PROGRAMS, **{p.stem: p.read_text() for p in sorted(FOLDER.glob("*.mlir"))}}
COSTS = ("vector_bytes", "speeds", "caches", "nests")


def before_the_split(text: str, target: Target, training: bool) -> str:
    """The program after the passes that all targets share."""
    shared = pipeline(training, target).removesuffix("," + ",".join(target.tail_passes()))
    assert shared.endswith(("lower-to-intra", f"lower-to-intra{{target={target.name}}}"))
    return str(after(text, shared))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("training", [True, False], ids=["training", "inference"])
@pytest.mark.parametrize("name", TEXTS)
def test_equal_costs_give_equal_programs(
    name: str, training: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    want = before_the_split(TEXTS[name], OPENMP, training)
    record = replace(TARGETS["cuda"], **{k: getattr(OPENMP, k) for k in COSTS})
    monkeypatch.setitem(TARGETS, "cuda", record)
    assert before_the_split(TEXTS[name], record, training) == want


def test_costs_are_all_but_names_and_passes_of_its_own() -> None:
    own = {"name", "about", "printer", "remote_reads", "runtime", "steps", "tail"}
    assert {f.name for f in fields(Target)} == own | set(COSTS)


def test_other_costs_give_other_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What decides is the record: with sums that stay in registers whatever their size, the
    gradient of a weight is another nest."""
    few, many = (
        replace(TARGETS["cuda"], nests=replace(OPENMP.nests, register_sums=n)) for n in (1, 10**9)
    )
    found: list[str] = []
    for record in (few, many):
        monkeypatch.setitem(TARGETS, "cuda", record)
        found.append(before_the_split(TEXTS["rgat"], record, True))
    assert found[0] != found[1]
