"""Compiling takes work in proportion to a program: twice the relations, twice the calls."""

import cProfile

from xdsl.context import Context
from xdsl.parser import Parser

from gnnc.frontend.compiler import artifact_of, collector_paused, load_dialects, run_passes
from gnnc.passes.driver.pipelines import pipeline
from gnnc.passes.targets.openmp import OPENMP


def relations(count: int) -> str:
    """A layer with a product a relation, whose messages are weighed against those of all others."""
    row, weight = "!inter.rows<N, 4xf32>", "!inter.rows<unit, 4x4xf32>"
    each = range(count)
    sets = [f"%g{i} : !inter.set<g{i}, src: N, dst: N>" for i in each]
    weights = [f"%W{i} : {weight} {{inter.needs_grad}}" for i in each]
    arguments = ["%N : !inter.set<N>", f"%x : {row} {{inter.needs_grad}}", *sets, *weights]
    body: list[str] = []
    for i in each:
        body.append(f'%h{i} = inter.contract "k,kf->f" %x, %W{i} : {row}')
        body.append(f"%t{i} = inter.tanh %h{i} : {row}")
        body.append(f"%m{i} = inter.at %g{i}[src], %t{i} : !inter.rows<g{i}, 4xf32>")
    parts = " ".join(f"g{i}" for i in each)
    body.append(
        f"%u = inter.union {', '.join(f'%g{i}' for i in each)}"
        f" : !inter.set<u, src: N, dst: N, parts {parts}>"
    )
    messages = "!inter.rows<u, 4xf32>"
    body.append(f"%m = inter.stack %u, {', '.join(f'%m{i}' for i in each)} : {messages}")
    body.append(f"%p = inter.softmax %m over %u along dst : {messages}")
    body.append(f"%w = inter.mul %p, %m : {messages}")
    body.append(f"%o = inter.reduce sum %w over %u along dst : {row}")
    lines = "\n  ".join(body)
    return f"""
func.func @main({", ".join(arguments)}) -> ({row} {{inter.name = "out"}}) {{
  {lines}
  func.return %o : {row}
}}
"""


def calls(text: str) -> int:
    """Calls of functions, of the interpreter's own too, from a module to its text in C."""
    context = Context()
    load_dialects(context)
    module = Parser(context, text).parse_module()
    profile = cProfile.Profile()
    with collector_paused():
        profile.enable()
        run_passes(module, pipeline(True, OPENMP))
        artifact_of(module, OPENMP)
        profile.disable()
    return sum(entry.callcount for entry in profile.getstats())


def test_relations() -> None:
    calls(relations(2))  # what is imported and remembered the first time
    few, many = calls(relations(40)), calls(relations(80))
    assert many < 2.1 * few, (few, many)
