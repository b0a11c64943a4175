"""plan-saves: the gradients stay, and less is stored."""

import itertools
import random

import pytest
from xdsl.dialects.func import FuncOp

from gnnc.dialects.attributes import RECOMPUTE, SAVED
from gnnc.dialects.inter.sets import SetEnv
from gnnc.dialects.inter.types import rows
from gnnc.passes.analysis.costs import Sizes
from gnnc.passes.analysis.min_cut import MinCut
from gnnc.passes.inter.plan_saves import PlanSavesPass, plan_saves
from gnnc.passes.inter.split_phases import SplitPhasesPass

from ..meaning import changed, joint, unchanged
from ..programs import PROGRAMS


@pytest.mark.parametrize("name", PROGRAMS)
def test_keeps_values(name: str) -> None:
    unchanged(joint(PROGRAMS[name]), PlanSavesPass(), SplitPhasesPass())


def stored_bytes(name: str, *passes: PlanSavesPass) -> float:
    """What crosses from the forward to the backward half and is no result."""
    module = changed(joint(PROGRAMS[name]), *passes, SplitPhasesPass())
    (forward,) = [
        f for f in module.body.block.ops if isinstance(f, FuncOp) and f.sym_name.data == "forward"
    ]
    sizes = Sizes.of(forward, SetEnv.of(forward))
    assert forward.body.block.last_op is not None and forward.res_attrs is not None
    values = forward.body.block.last_op.operands
    kept = [v for v, a in zip(values, forward.res_attrs, strict=True) if SAVED in a.data]
    return sum(sizes.bytes(rows(v)) for v in kept)


@pytest.mark.parametrize("name", PROGRAMS)
def test_never_stores_more(name: str) -> None:
    assert stored_bytes(name, PlanSavesPass()) <= stored_bytes(name)


def test_stores_nothing_per_edge() -> None:
    """Of GAT's attention the maximum and the sum of each destination are kept."""
    module = joint(PROGRAMS["gat"])
    func = module.body.block.first_op
    assert isinstance(func, FuncOp)
    saved = [rows(v).dom for v in plan_saves(func)]
    assert saved and all(dom.set != "g" or dom.keys for dom in saved)
    assert any(RECOMPUTE in op.attributes for op in func.body.block.ops)


def test_a_function_without_gradients_is_left_alone() -> None:
    from gnnc.dialects.meaning.check import parse_module

    module = parse_module(PROGRAMS["sage"])
    assert str(changed(module, PlanSavesPass())) == str(module)


def cut_cost(costs: list[int], arcs: set[tuple[int, int]], cut: set[int]) -> int | None:
    """The cost of `cut`, None where a path from vertex 0 to the last one avoids it."""
    last = len(costs) - 1
    seen, todo = set(cut), [0]
    while todo:
        v = todo.pop()
        if v in seen:
            continue
        if v == last:
            return None
        seen.add(v)
        todo += [b for a, b in arcs if a == v]
    return sum(costs[v] for v in cut)


@pytest.mark.parametrize("seed", range(30))
def test_min_cut_against_all_subsets(seed: int) -> None:
    r = random.Random(seed)
    n = 7
    costs = [r.randint(1, 9) for _ in range(n)]
    pairs = itertools.combinations(range(n), 2)
    arcs = {(i, j) for i, j in pairs if r.random() < 0.45}
    cut = MinCut[int]()
    for v in range(n):
        cut.add(v, costs[v])
    for a, b in sorted(arcs):
        cut.arc(a, b)
    cut.start(0)
    cut.end(n - 1)
    subsets = itertools.chain.from_iterable(
        itertools.combinations(range(n), k) for k in range(n + 1)
    )
    best = min(c for s in subsets if (c := cut_cost(costs, arcs, set(s))) is not None)
    assert cut_cost(costs, arcs, cut.solve()) == best
