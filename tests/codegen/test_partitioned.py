"""Partitioned programs as C: each rank runs the phases for its own rows, and all together give what
the interpreter gives over the rows of all ranks at once, forward and backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from gnnc.dialects.attributes import SAVED
from gnnc.dialects.meaning import SetVal
from gnnc.dialects.meaning.check import parse_module
from gnnc.dialects.meaning.graphs import random_arguments
from gnnc.dialects.meaning.phases import functions, run_phases
from gnnc.dialects.signature import arguments, results
from gnnc.passes.inter.autodiff import AutodiffPass
from gnnc.runtime.ranks import virtual
from gnnc.runtime.ranks.communicator import Communicator
from gnnc.runtime.ranks.exchanges import exchanges
from gnnc.tests.passes.inter.test_restrict_rows import ALWAYS, LAYERS, layer
from gnnc.tests.passes.meaning import changed
from gnnc.tests.passes.programs import PROGRAMS
from gnnc.tests.passes.ranked import APART, CUT, OPTIMIZED, Ranked
from gnnc.tests.runtime.ranks import ringed

from .compiled import Case

SPLIT = "hoist-invariants,split-phases"
IN_TURN = "lower-to-intra"
OVERLAPPED = "lower-to-intra,overlap-exchanges"
GIVE = ("forward", "backward")
NAMES = [n for n in PROGRAMS if n != "readout"]  # whose graphs may be on several ranks


def by_name(func: FuncOp, values: Any) -> dict[str, Any]:
    return dict(zip([n for n, _, _ in arguments(func)], values, strict=True))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("lower", [pytest.param(IN_TURN, marks=pytest.mark.long), OVERLAPPED])
@pytest.mark.parametrize("name", NAMES)
def test_programs(name: str, lower: str) -> None:
    check(PROGRAMS[name], CUT, lower=lower)


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n == "gat" else pytest.mark.long) for n in LAYERS],
)
def test_restricted_rows(name: str) -> None:
    """Messages and sets of these are found while sets are made."""
    check(layer(name), (*CUT, ALWAYS), lower=OVERLAPPED)


@pytest.mark.parametrize("name", ["gat", "gcn"])
def test_programs_by_rings(name: str) -> None:
    """What they exchange needs no Python."""
    check(PROGRAMS[name], CUT, by=ringed.run, lower=IN_TURN)


def check(text: str, cuts: Sequence[ModulePass], by: Any = virtual.run, **options: Any) -> None:
    """All ranks together, run `by` threads, give what the interpreter gives; `options` are those
    of the case."""
    plain = parse_module(text)
    (before,) = functions(plain).values()
    (with_gradients,) = functions(changed(plain, AutodiffPass())).values()
    cut = changed(plain, *cuts, *OPTIMIZED, *APART)
    (func,) = functions(cut).values()
    case = Case.of(cut, SPLIT, **options)
    for ranks, seed in ((1, 0), (3, 1), (4, 2)):
        rng = np.random.default_rng(seed)
        args = by_name(with_gradients, random_arguments(with_gradients, rng))
        sets = {n: x for n, x in args.items() if isinstance(x, SetVal)}
        owner = {n: rng.integers(0, ranks, s.n) for n, s in sets.items()}
        graph = Ranked(before, ranks, sets, owner)
        values = graph.arguments(func, args)

        def on_rank(c: Communicator, graph: Ranked = graph, values: Any = values) -> Any:
            mine = by_name(func, graph.of_rank(func, values, c.rank))
            return case.run(mine, carrier=exchanges(c, graph.peers(c.rank)))

        wanted = run_phases(case.split, by_name(func, values))
        each = by(ranks, on_rank)
        for phase in functions(case.split).values():
            kept = [
                n for n, _, a in results(phase) if SAVED not in a and phase.sym_name.data in GIVE
            ]
            for n, x in graph.joined(phase, each, kept).items():
                np.testing.assert_allclose(x, wanted[n], rtol=1e-9, atol=1e-9, err_msg=n)
