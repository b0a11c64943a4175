"""The child process of `gnnc bench roofline`: a model lowered for CUDA, and what its kernels do on
a graph. No GPU is asked: the model trains two epochs on the CPU, which says what the graph's sets
are; the program that was imported then goes through the pipeline of the target `cuda`, and is
printed, not run.

The one question is that of bench/contestant.py; the answer has the kernels in the order they run,
each with `phase`, `kernel`, `kind`, `accesses` (the fields of `work.Access`), `operations`, and the
fields of `grid_work.GridWork`.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any
from unittest.mock import patch

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import DiagnosticException

import gnnc
from gnnc.bench.contestant import WARM_UP, Contest
from gnnc.bench.grid_work import grid_work_of
from gnnc.bench.profiled import PHASES, TableSizes
from gnnc.bench.work import accesses_of
from gnnc.codegen.common.launches import summary
from gnnc.dialects.intra import rows
from gnnc.dialects.intra.steps import phases
from gnnc.frontend.compiler import artifact_of, load_dialects
from gnnc.frontend.tools.children import Message, Refused, serve
from gnnc.passes.driver.pipelines import passes_of, pipeline
from gnnc.passes.driver.runner import DUMP_VARIABLE, PassRunner
from gnnc.passes.targets import DEFAULT, target_named
from gnnc.runtime.program import Program
from gnnc.runtime.sets import structure
from gnnc.runtime.sets.sets import SetData
from gnnc.runtime.sets.tables import Tables

TARGET = "cuda"


class GridTableSizes(TableSizes):
    """The sizes of a graph as bench/grid_work.py asks for them."""

    def pieces(
        self, set_name: str, keys: tuple[str, ...], along: tuple[str, ...], piece: int
    ) -> int:
        groups = {"domain": [set_name, list(keys)], "along": list(along)}
        return len(self.tables.table({"kind": "pieces", **groups, "piece": piece}))


def kernels(contestant: str, model: str, graph: Any, hidden: int, layers: int) -> Message:
    """The kernels of a model's step on a graph.

    Raises:
        Refused: a part of the model runs in torch, or the target cannot print it.
    """
    given: list[dict[str, Any]] = []
    on_graph = Program.on_graph

    def noting(
        program: Program, sets: Mapping[str, Any], early: Mapping[str, Any], *where: Any
    ) -> Any:
        given.append({**sets, **early})
        return on_graph(program, dict(sets), early, *where)

    with tempfile.TemporaryDirectory(prefix="gnnc-bench-") as folder:
        contest = Contest(contestant, model, graph, hidden, layers, target=DEFAULT)
        with (
            patch.dict(os.environ, {DUMP_VARIABLE: folder}),
            patch.object(Program, "on_graph", noting),
        ):
            contest.train(WARM_UP)
        report = gnnc.explain(contest.training.compiled)
        if report.fallbacks or len(report.programs) != 1:
            raise Refused(f"the model is not one compiled program:\n{report}")
        imported = max(Path(folder).glob("*/00-input.mlir"), key=lambda p: p.stat().st_mtime_ns)
        training = imported.parent.name.startswith("training")
        try:
            module, artifact = lowered(imported.read_text(), training)
        except DiagnosticException as error:
            raise Refused(f"the target {TARGET} cannot have this model: {error}") from error
    sizes = GridTableSizes(tables_of(artifact, given[-1]))
    return {"kernels": counted(module, artifact, sizes)}


def lowered(text: str, training: bool) -> tuple[ModuleOp, Message]:
    """An imported module lowered for the target, and its artifact (codegen/common/artifact.py).

    Raises:
        DiagnosticException: a pass or the printer refused it.
    """
    context = Context()
    load_dialects(context)
    module = Parser(context, text).parse_module()
    target = target_named(TARGET)
    PassRunner(context, passes_of(pipeline(training, target)), verify_each=False).run(module)
    return module, json.loads(artifact_of(module, target))


def tables_of(artifact: Message, given: Mapping[str, Any]) -> Tables:
    """The tables of a graph, of which a call gave sets and integer rows."""
    plan = [
        structure.Step(n, tuple(i), tuple(o), a) for n, i, o, a in artifact["structure"]["steps"]
    ]
    made = structure.run_plan(plan, dict(given))
    sets = {name: v for name, v in made.items() if isinstance(v, SetData)}
    return Tables(sets, artifact["maps"])


def counted(module: ModuleOp, artifact: Message, sizes: GridTableSizes) -> list[Message]:
    """What each kernel of a step does."""
    found: list[Message] = []
    for func in phases(module):
        if (phase := func.sym_name.data) not in PHASES:
            continue
        names = artifact["phases"][phase]["kernels"]
        for name, nest in zip(names, rows.nests(func), strict=True):
            accesses, operations = accesses_of(nest, sizes)
            kind = summary(nest).removeprefix("_")
            kernel = {"phase": phase, "kernel": name, "kind": kind, "operations": operations}
            kernel["accesses"] = [astuple(a) for a in accesses]
            found.append(kernel | vars(grid_work_of(nest, sizes)))
    return found


def main() -> None:
    serve(lambda question: kernels(**question))


if __name__ == "__main__":
    main()
