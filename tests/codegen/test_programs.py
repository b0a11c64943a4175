"""Programs compiled to C compute what the interpreter computes, in every phase, on multigraphs."""

from __future__ import annotations

from pathlib import Path

import pytest

from gnnc.runtime.cpu import threads

from .compiled import COARSE, INFER, TRAIN, Case
from .shared import LAYERS, SMALL

FILES = {p.stem: p.read_text() for p in sorted((Path(__file__).parent / "programs").glob("*.mlir"))}
GRAPHS = (
    (0, None),
    (1, None),
    (2, {"g": 0}),
    (3, {"N": 1, "g": 9}),
    (4, {"N": 40, "g": 400}),
)
"""Seeds and sizes: small graphs with parallel edges, loops and isolated nodes, one without edges,
one of loops only, and one that is cut into chunks."""


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", SMALL)
def test_small_programs(name):
    case = Case.of(SMALL[name], INFER if "key" in SMALL[name] else TRAIN)
    for seed, sizes in GRAPHS:
        case.check(case.values(seed, sizes))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", [*FILES, *(n for n in LAYERS if n not in FILES)])
def test_layers(name):
    case = Case.of(FILES.get(name) or LAYERS[name])
    for seed, sizes in GRAPHS:
        case.check(case.values(seed, sizes))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["gcn", "sage_gin"])
def test_large_graphs_have_hubs(name):
    """Rows with thousands of edges, with the schedule that the pipeline takes."""
    case = Case.of(FILES[name], schedule=COARSE)
    values = case.values(5, {"N": 500, "g": 20_000, "g0": 20_000})
    for key in ("g", "g0"):
        if key in values:
            values[key].maps["dst"][:9000] = 3
            values[key].maps["src"][5000:15_000] = 7
    case.check(values, tolerance=1e-7)


@pytest.mark.parametrize("name", ["gcn", "sage_gin", "rgat", "readout"])
def test_any_number_of_threads_gives_the_same_bits(name):
    """Chunks and the order of partial sums depend on sizes alone."""
    case = Case.of(FILES[name])
    values = case.values(4, {"N": 40, "g": 400, "g0": 400})
    runs: list[dict[str, bytes]] = []
    for count in (1, 2, 2, 5):
        threads.set_num_threads(count)
        try:
            runs.append({k: x.tobytes() for k, x in case.run(values).items()})
        finally:
            threads.set_num_threads(None)
    assert all(run == runs[0] for run in runs[1:])


def test_a_set_of_another_size_is_refused():
    """A matrix seen as the rows of a set needs as many rows as the set has."""
    case = Case.of(SMALL["as rows and back"])
    values = case.values(0)
    values["R"].n, values["g"].maps["rel"] = 3, values["g"].maps["rel"] % 3
    with pytest.raises(ValueError, match="set R has 3 rows, the program is made for 4"):
        case.run(values)
