"""The child process of `gnnc bench kernels`: a compiled model that measures its own kernels.

The first question is that of bench/contestant.py; it is answered by the kernels, in the order they
run, with the work that each does on this graph. `{"epochs": n}` trains n
epochs and answers the seconds of each, and of each kernel in each.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from xdsl.context import Context
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser

import gnnc
from gnnc.bench.contestant import WARM_UP, Contest
from gnnc.bench.work import work_of_phase
from gnnc.frontend.compiler import load_dialects
from gnnc.frontend.tools.children import Message, Refused, serve
from gnnc.passes.driver.runner import DUMP_VARIABLE
from gnnc.runtime.sets.tables import GraphTables

PHASES = ("forward", "backward")


class TableSizes:
    """The sizes of a graph that a program has met, as bench/work.py asks for them."""

    def __init__(self, tables: GraphTables):
        self.tables = tables

    def rows(self, set_name: str, keys: tuple[str, ...]) -> int:
        return self.tables.size([set_name, list(keys)])

    def groups(self, set_name: str, keys: tuple[str, ...], along: tuple[str, ...]) -> int:
        return len(self.tables.group([set_name, list(keys)], list(along)).ptr) - 1

    def members(self, set_name: str, keys: tuple[str, ...], along: tuple[str, ...]) -> int:
        return int(self.tables.group([set_name, list(keys)], list(along)).ptr[-1])


class Profile:
    """A profiled contest; its IR is read from what the compiler dumps after the last pass."""

    def __init__(self, contestant: str, model: str, graph: Any, hidden: int, layers: int):
        with tempfile.TemporaryDirectory(prefix="gnnc-bench-") as folder:
            # torch and the compiler warm up on a layer of their own, which dumps as well
            self.contest = Contest(contestant, model, graph, hidden, layers, profile=True)
            with patch.dict(os.environ, {DUMP_VARIABLE: folder}):
                self.contest.train(WARM_UP)
            dumps = sorted(Path(folder).glob("*/*.mlir"))
            report = gnnc.explain(self.contest.training.compiled)
            if report.fallbacks or len(report.programs) != 1:
                raise Refused(f"the model is not one compiled program:\n{report}")
            text = dumps[-1].read_text()
        (self.bound,) = report.programs
        phases = self.bound.program.phases  # a whole step has no backward phase
        self.phases = [phases[name] for name in PHASES if name in phases]
        self.functions = phase_functions(text)

    def kernels(self) -> Message:
        """Names and work of all kernels."""
        sizes = TableSizes(self.bound.graphs()[-1].tables)
        kernels: list[Message] = []
        for phase in self.phases:
            work = work_of_phase(self.functions[phase.name], sizes)
            for name, w in zip(phase.kernels, work, strict=True):
                kernels.append({"kernel": name, **vars(w)})
        return {"kernels": kernels, "threads": torch.get_num_threads()}

    def train(self, epochs: int) -> Message:
        """Seconds of each epoch, and for each kernel those of each epoch."""
        seconds: list[float] = []
        laps: list[list[float]] = []
        for _ in range(epochs):
            before = self.laps()
            seconds += self.contest.train(1)["seconds"]
            pairs = zip(before, self.laps(), strict=True)
            laps.append([after - start for start, after in pairs])
        return {"seconds": seconds, "laps": [list(one) for one in zip(*laps, strict=True)]}

    def laps(self) -> list[float]:
        """The seconds of all kernels so far."""
        found: list[float] = []
        for phase in self.phases:
            assert phase.seconds is not None
            found += list(phase.seconds)[: len(phase.kernels)]
        return found


def phase_functions(text: str) -> dict[str, FuncOp]:
    """The phases of a dumped module by name."""
    context = Context()
    load_dialects(context)
    module = Parser(context, text).parse_module()
    return {f.sym_name.data: f for f in module.body.block.ops if isinstance(f, FuncOp)}


def main() -> None:
    profile: Profile | None = None

    def work(question: Message) -> Message:
        nonlocal profile
        if profile is None:
            profile = Profile(**question)
            return profile.kernels()
        return profile.train(question["epochs"])

    serve(work)


if __name__ == "__main__":
    main()
