"""split-phases: the phases linked by names give what the function gave."""

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

from gnnc.dialects.meaning import SetVal
from gnnc.dialects.meaning.check import parse_module
from gnnc.dialects.meaning.phases import argument_names, functions, run_phases
from gnnc.passes.inter.hoist_invariants import HoistInvariantsPass
from gnnc.passes.inter.plan_saves import PlanSavesPass
from gnnc.passes.inter.split_phases import SplitPhasesPass

from ..meaning import FORWARD, changed, joint, unchanged
from ..programs import PROGRAMS


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_function_with_gradients(name: str) -> None:
    unchanged(joint(PROGRAMS[name]), SplitPhasesPass())


@pytest.mark.parametrize("name", PROGRAMS)
def test_after_all_that_comes_before_it(name: str) -> None:
    passes = (PlanSavesPass(), HoistInvariantsPass(), SplitPhasesPass())
    assert set(functions(unchanged(joint(PROGRAMS[name]), *passes))) == {
        "prepare",
        "forward",
        "backward",
    }


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_function_without_gradients(name: str) -> None:
    module = changed(parse_module(PROGRAMS[name]), *FORWARD)
    split = unchanged(module, HoistInvariantsPass(), SplitPhasesPass())
    assert set(functions(split)) == {"prepare", "forward"}


def names(attributes: object) -> list[str]:
    assert attributes is not None
    return [d.data["inter.name"].data for d in attributes]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_crosses_has_one_name_and_one_type(name: str) -> None:
    module = changed(
        joint(PROGRAMS[name]), PlanSavesPass(), HoistInvariantsPass(), SplitPhasesPass()
    )
    given: dict[str, object] = {}
    for func in module.body.block.ops:
        assert isinstance(func, FuncOp)
        types = func.function_type
        for n, t in zip(names(func.arg_attrs), types.inputs, strict=True):
            assert given.setdefault(n, t) == t
        for n, t in zip(names(func.res_attrs), types.outputs, strict=True):
            assert n not in given
            given[n] = t


def test_only_what_is_used_crosses() -> None:
    module = changed(joint(PROGRAMS["gcn"]), PlanSavesPass(), SplitPhasesPass())
    for func in module.body.block.ops:
        assert isinstance(func, FuncOp)
        text = str(func.body)
        for arg in func.body.block.args:
            label = getattr(arg.type, "label", None)
            mentioned = label is not None and f"{label}" in text + str(func.function_type)
            assert arg.first_use is not None or mentioned, (func.sym_name, arg)


def test_the_linker_says_what_is_missing() -> None:
    text = """
    func.func @f(%N : !inter.set<N>, %x : !inter.rows<N, f64>) -> !inter.rows<N, f64> {
      %y = inter.neg %x : !inter.rows<N, f64>
      func.return %y : !inter.rows<N, f64>
    }"""
    module = changed(parse_module(text), SplitPhasesPass())
    with pytest.raises(KeyError, match="@forward needs x"):
        run_phases(module, {"N": SetVal(2, {})})
    out = run_phases(module, {"N": SetVal(2, {}), "x": np.array([1.0, 2.0])})
    assert out["y"].tolist() == [-1.0, -2.0]
    assert argument_names(functions(module)["forward"]) == ["N", "x"]
