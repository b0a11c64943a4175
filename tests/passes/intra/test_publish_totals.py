"""publish-totals: the interpreter gives the same on ranks that are threads, to the bit, before and
after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from gnnc.dialects.intra.exchange import AllReduceOp
from gnnc.dialects.intra.publication import PublishAllOp
from gnnc.dialects.intra.steps import phases, steps
from gnnc.dialects.meaning import SetVal
from gnnc.dialects.meaning.check import parse_module
from gnnc.dialects.meaning.graphs import random_arguments
from gnnc.dialects.meaning.lowered import run_lowered
from gnnc.dialects.meaning.phases import functions
from gnnc.dialects.signature import arguments
from gnnc.passes.inter.autodiff import AutodiffPass
from gnnc.runtime.ranks import virtual
from gnnc.runtime.ranks.communicator import Communicator
from gnnc.runtime.ranks.exchanges import exchanges
from gnnc.tests.codegen.ranks import on_ranks
from gnnc.tests.codegen.test_exchange import MODULE, PLANS, VALUES

from ..lowered import after
from ..meaning import changed
from ..programs import PROGRAMS
from ..ranked import APART, CUT, OPTIMIZED, Ranked

LOWERED = "hoist-invariants,split-phases,lower-to-intra,publish-rows,overlap-exchanges"
BEHIND = "fuse-traversals{target=cuda},split-long-rows{target=cuda},update-in-place,plan-memory"
NAMES = [n for n in PROGRAMS if n != "readout"]  # whose graphs may be on several ranks


def alike(got: Sequence[dict[str, Any]], want: Sequence[dict[str, Any]]) -> None:
    for a, b in zip(got, want, strict=True):
        assert a.keys() == b.keys()
        for name in b:
            np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def count(module: ModuleOp, kind: type) -> int:
    return sum(isinstance(s, kind) for f in phases(module) for s in steps(f))


def test_two_kinds_are_one_publication() -> None:
    published = after(MODULE, "publish-totals")
    assert (count(published, AllReduceOp), count(published, PublishAllOp)) == (0, 1)
    want = on_ranks(PLANS, lambda k, rank: run_lowered(MODULE, VALUES[k], rank))
    alike(on_ranks(PLANS, lambda k, rank: run_lowered(published, VALUES[k], rank)), want)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", NAMES)
def test_programs(name: str) -> None:
    """Forward and backward on random multigraphs, in one publication what was one message."""
    plain = parse_module(PROGRAMS[name])
    (before,) = functions(plain).values()
    (with_gradients,) = functions(changed(plain, AutodiffPass())).values()
    cut = changed(plain, *CUT, *OPTIMIZED, *APART)
    (func,) = functions(cut).values()
    lowered = after(cut, LOWERED)
    published = after(lowered, "publish-totals")
    assert count(published, AllReduceOp) == 0
    assert count(published, PublishAllOp) <= count(lowered, AllReduceOp)
    modules = lowered, published, after(published, BEHIND)
    for ranks, seed in ((1, 0), (3, 1)):
        rng = np.random.default_rng(seed)
        args = named(with_gradients, random_arguments(with_gradients, rng))
        sets = {n: x for n, x in args.items() if isinstance(x, SetVal)}
        owner = {n: rng.integers(0, ranks, s.n) for n, s in sets.items()}
        graph = Ranked(before, ranks, sets, owner)
        values = graph.arguments(func, args)

        def on_rank(c: Communicator, graph: Ranked = graph, values: Any = values) -> Any:
            mine = named(func, graph.of_rank(func, values, c.rank))
            carrier = exchanges(c, graph.peers(c.rank))
            return [run_lowered(m, mine, carrier) for m in modules]

        want, got, fused = zip(*virtual.run(ranks, on_rank), strict=True)
        alike(got, want)
        for a, b in zip(fused, want, strict=True):
            for n in a:
                np.testing.assert_allclose(a[n], b[n], rtol=1e-9, atol=1e-9, err_msg=n)


def named(func: Any, values: Any) -> dict[str, Any]:
    return dict(zip([n for n, _, _ in arguments(func)], values, strict=True))
