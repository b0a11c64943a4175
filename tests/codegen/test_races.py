"""No two threads of a compiled phase touch the same memory without waiting for each other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from gnnc.runtime.sets.sets import kernels

from .compiled import INFER, TRAIN, Case
from .generate import reductions
from .races import FOLDER, Recorder, build, replay, report
from .random_rows import random_program
from .shared import LAYERS, SMALL
from .test_shared_sums import PHASES, SHAPES
from .test_shared_sums import text as layer

pytestmark = [pytest.mark.sanitize, pytest.mark.usefixtures("openmp")]

SPLIT = "unify-sets,split-phases"
PROGRAMS = {
    **{name: (text, TRAIN) for name, text in LAYERS.items()},
    **{name: (text, INFER if "key" in text else TRAIN) for name, text in SMALL.items()},
    "reductions": (reductions("3", "f32"), SPLIT),
    "sums of rounds": (layer(*SHAPES["tall"], "f64"), PHASES),
}
QUICK = ("gcn", "rgat", "stack and part", "sums of rounds")
SIZES = {"N": 40, "g": 300, "g0": 300}
"""Cut into several chunks, with rows that are longer than a chunk."""
LOOP = re.compile(r"#pragma omp for schedule\(\w+(?:, 1)?\)")


def recorded(text: str, phases: str, sizes: Mapping[str, int] = SIZES) -> tuple[Case, Recorder]:
    case, calls = Case.of(text, phases), Recorder()
    values = case.values(4, sizes)
    if "g" in values:
        lengthen_a_row(values["g"].maps)
    case.run(values, call=calls)
    return case, calls


def lengthen_a_row(maps: dict[str, np.ndarray]) -> None:
    """Many edges end at node 3, and none is a loop or no loop that was not before."""
    src, dst = maps["src"][:120], maps["dst"][:120]
    dst[(src != 3) & (src != dst)] = 3


def check(folder: Path, text: str, phases: str, sizes: Mapping[str, int] = SIZES) -> None:
    case, calls = recorded(text, phases, sizes)
    assert not replay(folder, case.program.source, calls)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.long) for n in PROGRAMS]
)
def test_no_races(name, tmp_path):
    check(tmp_path, *PROGRAMS[name])


def test_no_races_of_one_round_with_the_next(tmp_path):
    """Rows that no whole vectors make: the last load of a round ends behind its last row."""
    check(tmp_path, layer(*SHAPES["rows"], "f64"), PHASES, {"N": 160, "g": 400})


@pytest.mark.long
@pytest.mark.parametrize("seed", range(40))
def test_no_races_in_random_programs(seed, tmp_path):
    check(tmp_path, random_program(seed, "f64"), TRAIN)


def test_a_barrier_taken_out_is_reported(tmp_path):
    """Partial sums that are added up before all threads have written theirs."""
    case, calls = recorded(*PROGRAMS["gcn"])
    source = LOOP.sub(lambda m: f"{m[0]} nowait", case.program.source)
    assert "data race" in replay(tmp_path, source, calls)


def structure(folder: Path, edit: tuple[str, str] = ("", "")) -> str:
    """What the sanitizer reports of the kernels on graph structure."""
    text = kernels.source()
    assert edit[0] in text
    sources = {
        "structure.c": "#define GRAIN 1\n" + text.replace(*edit),
        "calls.c": (FOLDER / "structure_calls.c").read_text(),
    }
    return report(build(folder, sources))


def test_no_races_in_structure_kernels(tmp_path):
    assert not structure(tmp_path)


def test_a_barrier_taken_out_of_structure_kernels_is_reported(tmp_path):
    assert structure(tmp_path, ("#pragma omp barrier\n", ""))
