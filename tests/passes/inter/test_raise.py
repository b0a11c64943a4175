"""raise: what is written out and what it means are equal."""

import re
from pathlib import Path

import numpy as np
import pytest

from gnnc.dialects.meaning.check import parse_module, same_meaning
from gnnc.passes.inter.dce_sets import DceSetsPass
from gnnc.passes.inter.raise_ import RaisePass, raise_patterns

from ..gradients import GRAPHS, agree, slopes
from ..meaning import changed, unchanged
from ..programs import PROGRAMS

FILES = Path(__file__).parents[3] / "filecheck" / "passes" / "inter"
PARTS = {
    f"{path.stem} {i}": part
    for path in sorted(FILES.glob("raise*.mlir"))
    for i, part in enumerate(path.read_text().split("// -----"))
}


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("part", PARTS)
def test_each_rule_keeps_values(part: str) -> None:
    types = np.array([0, 1, 1, 0, 2, 1, 0, -1, 0, 7, 1])  # a loop skips types that it does not name
    typed = re.search(r"func.func @.*%t : !inter.rows<(\w+)", PARTS[part])
    values = {"t": types} if typed else {}
    sizes = {typed[1]: len(types)} if typed else {"g": len(types)}
    before = parse_module(PARTS[part])
    for seed in range(3):
        after = changed(before, RaisePass(), DceSetsPass())
        same_meaning(before, after, seeds=[seed], sizes=sizes, values=values)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_keep_values(name: str) -> None:
    unchanged(PROGRAMS[name], RaisePass())


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(name: str, graph: str) -> None:
    assert agree(slopes(PROGRAMS[name], graph, 2, [raise_patterns]))


@pytest.mark.parametrize("part", PARTS)
def test_settles(part: str) -> None:
    once = changed(parse_module(PARTS[part]), RaisePass())
    assert str(changed(once, RaisePass())) == str(once)


POWERS = {1: "mul", 2: "mul", 0.5: "sqrt", -0.5: "rsqrt", -1: "div", 3: "pow"}


@pytest.mark.parametrize("power", POWERS)
def test_powers(power: float) -> None:
    text = f"""
    func.func @f(%N : !inter.set<N>, %x : !inter.rows<N, f64>) -> !inter.rows<N, f64> {{
      %e = inter.const {float(power)} : !inter.rows<unit, f64>
      %a = inter.abs %x : !inter.rows<N, f64>
      %y = inter.pow %a, %e : !inter.rows<N, f64>
      %z = inter.neg %y : !inter.rows<N, f64>
      func.return %z : !inter.rows<N, f64>
    }}"""
    module = unchanged(text, RaisePass())
    assert (f"inter.{POWERS[power]} " in str(module)) == (power != 1)
