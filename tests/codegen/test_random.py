"""Random programs, forward and backward: the same numbers after every pass, and from C."""

import pytest

from gnnc.dialects.meaning.check import same_meaning

from .compiled import INFER, TRAIN, Case, after
from .random_rows import random_program
from .test_pointwise import FORMATS

VANILLA = "canonicalize,cse,unify-sets,autodiff,canonicalize,cse,dce,split-phases"
PHASES = (TRAIN, INFER, VANILLA)
GRAPHS = ((0, None), (1, {"N": 30, "g": 200}), (2, {"g": 0}))
MORE = pytest.mark.long


@pytest.mark.parametrize(
    "seed", [*range(20), *(pytest.param(s, marks=MORE) for s in range(20, 400))]
)
def test_passes_keep_the_meaning(seed):
    module = after(random_program(seed), PHASES[seed % len(PHASES)])
    for step in ("lower-to-intra", "fuse-traversals", "schedule,cut-stages,plan-memory"):
        new = after(module, step)
        same_meaning(module, new, seeds=range(2), tolerance=1e-7)
        module = new


# 143: rows of pairs grouped by these pairs
@pytest.mark.parametrize(
    "seed",
    [*range(6), 143, *(pytest.param(s, marks=MORE) for s in range(6, 200) if s != 143)],
)
def test_c_and_interpreter_agree(seed):
    elem = "f32" if seed % 4 == 3 else "f64"
    vector_bytes, march = FORMATS[("native", "avx", "sse")[seed % 3]]
    case = Case.of(random_program(seed, elem), TRAIN, vector_bytes=vector_bytes, march=march)
    for graph, sizes in GRAPHS:
        close = 1e-2 if elem == "f32" else 1e-6
        case.check(case.values(graph, sizes), tolerance=close)
