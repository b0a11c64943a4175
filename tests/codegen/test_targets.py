"""Every target computes what the interpreter computes, each with the passes of its own."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest
from xdsl.utils.exceptions import PassFailedException

from gnnc.frontend.compiler import artifact_of
from gnnc.frontend.targets import printed
from gnnc.passes import get_all_passes
from gnnc.passes.driver.pipelines import pipeline
from gnnc.passes.targets import TARGETS
from gnnc.passes.targets.cuda import CUDA
from gnnc.passes.targets.openmp import OPENMP
from gnnc.passes.targets.reference import REFERENCE
from gnnc.runtime.cpu import toolchain
from gnnc.runtime.program import ON_HOST, Program

from .compiled import TRAIN, Case, after
from .shared import LAYERS
from .test_programs import FILES, GRAPHS

MODELS = ("dropout", "gcn", "readout", "rgat", "sage_gin", "gat")


RUN_HERE = [name for name, record in TARGETS.items() if record.runtime in ON_HOST]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("target", RUN_HERE)
@pytest.mark.parametrize("name", MODELS)
def test_every_target_gives_the_same(name: str, target: str):
    record = TARGETS[target].on(toolchain.vector_bytes())
    split = after(FILES.get(name) or LAYERS[name], TRAIN)
    lowered = after(split, f"lower-to-intra{{target={target}}}")
    final = after(lowered, ",".join(record.tail_passes()))
    case = Case(split, lowered, Program(artifact_of(final, record)))
    assert case.program.target == target
    for seed, sizes in GRAPHS:
        case.check(case.values(seed, sizes))


@pytest.mark.parametrize("name", [*FILES, *LAYERS])
def test_targets_of_equal_costs_differ_in_their_own_passes_only(
    name: str, monkeypatch: pytest.MonkeyPatch
):
    """Both dialects up to there: a target is asked for its speeds, and for nothing else."""
    text = FILES.get(name) or LAYERS[name]
    equal = replace(CUDA, speeds=OPENMP.speeds, caches=OPENMP.caches)
    monkeypatch.setitem(TARGETS, CUDA.name, equal)
    shared = [pipeline(True, replace(t, tail=())) for t in (OPENMP, equal)]
    assert shared[0] != shared[1]
    texts = [str(after(text, passes.rstrip(","))) for passes in shared]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("tail", ["", "fuse-traversals", "fuse-traversals,schedule,plan-memory"])
def test_reference_is_plain_c(tail: str, tmp_path):
    """It prints what no pass of a target has seen, and what those of another have made, in C99."""
    module = after(FILES["rgat"], TRAIN + ",lower-to-intra" + (tail and f",{tail}"))
    source = printed(module, REFERENCE).source
    (tmp_path / "program.c").write_text(source)
    strict = ["-std=c99", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    for profile in ([], ["-DGNNC_PROFILE"]):
        command = [*toolchain.compiler().command, *strict, *profile, str(tmp_path / "program.c")]
        subprocess.run(command, check=True)
    assert "omp" not in source and "__attribute__" not in source


ASKING = [name for name, load in get_all_passes().items() if hasattr(load(), "target")]


@pytest.mark.parametrize("name", ASKING)
def test_a_pass_refuses_a_target_that_is_not_there(name: str):
    with pytest.raises(PassFailedException, match=f"{name}: there is no target 'abacus'"):
        after(FILES["gcn"], f"split-phases,{name}{{target=abacus}}")
