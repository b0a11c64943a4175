"""An imported graph as stages: compiled, and run over chunks of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from ....codegen.common.structure_plan import StructurePlan
from ....dialects.inter.sets import SetEnv
from ....dialects.inter.types import rows
from ....dialects.signature import arguments, body_ops, named_function, results
from ....passes.analysis.dependence import in_order, structure_ancestors
from ....passes.driver.pipelines import BEFORE_LAYERS
from ....passes.inter.layerwise.bindings import Stage
from ....passes.inter.layerwise.plan import cut_layers
from ....runtime.footprint import footprint
from ....runtime.program import Program
from ....runtime.sets.sets import SetData
from ....runtime.sets.structure import Step, run_plan
from ....runtime.tensors import prepare, run_phase
from ...compiler import Options, compile_module, run_passes
from ..calls.arguments import SetArgument, rows_of, structure_rows
from ..calls.outputs import Outputs, tensor_of
from ..importer.binding import DropoutKey, Imported
from ..importer.emit.arguments import argument_name
from .stored_rows import StoredRows
from .whole_sets import WholeSets

MERGE = {
    "sum": torch.add,
    "mean": torch.add,
    "max": torch.maximum,
    "min": torch.minimum,
    "mul": torch.mul,
}


@dataclass
class Call:
    """How one call is to run, and what it took."""

    batch_size: int
    folder: Path | None
    peak_bytes: int = 0


class LayerProgram:
    """Calls an imported graph in stages.

    Raises:
        PassFailedException: an op has no form over chunks of rows.
        ValueError: the graph draws random numbers or edits its arguments, as models in training do.
    """

    def __init__(self, imported: Imported, options: Options) -> None:
        refuse_training(imported)
        self.imported = imported
        run_passes(imported.module, ",".join(BEFORE_LAYERS))
        self.func = func = imported.function
        self.env = SetEnv.of(func)
        self.stages = cut_layers(func, self.env)
        self.results = {name: v for name, v, _ in results(func)}
        self.bindings = {r.name: r for r in imported.rows}
        self.argument_names: dict[SSAValue, str] = {a: n for n, a, _ in arguments(func)}
        self.structure = self.structure_steps()
        self.programs = self.compiled(options)
        self.outputs = Outputs(imported.outputs)
        names = [argument_name(p) for p in imported.placeholders]
        self.set_arguments = [SetArgument(s, names) for s in imported.sets]

    def compiled(self, options: Options) -> list[Program]:
        """The program of each stage; layers that are alike share one."""
        made: dict[str, Program] = {}
        out: list[Program] = []
        for stage in self.stages:
            module = ModuleOp([stage.function])
            text = str(module)
            if text not in made:
                made[text] = compile_module(module, False, options)
            out.append(made[text])
        return out

    # ------------------------------------------------------------ sets

    def structure_steps(self) -> list[Step]:
        """What makes the sets of the whole graph."""
        given = arguments(self.func)
        pairs = [(a.type, attrs) for _, a, attrs in given]
        func = named_function("structure", pairs, [], [], {})
        values = {a: b for (_, a, _), b in zip(given, func.body.block.args, strict=True)}
        mapping: dict[SSAValue, SSAValue] = dict(values)
        ops = in_order(body_ops(self.func), structure_ancestors(self.func))
        func.body.block.add_ops([op.clone(mapping) for op in ops])
        func.body.block.add_op(ReturnOp())
        if late := self.env.sets.keys() - SetEnv.of(func).sets.keys():
            raise PassFailedException(
                f"which rows the set {min(late)} has follows from features, of which only chunks "
                "are known at a time (pooling by scores, say)"
            )
        plan = StructurePlan(func, [name for name, _, _ in given])
        self.structure_inputs = {x for _, inputs, _, _ in plan.steps for x in inputs}
        return [Step(name, tuple(i), tuple(o), attrs) for name, i, o, attrs in plan.steps]

    def sets_of(self, args: Sequence[Any]) -> WholeSets:
        """The sets of a call."""
        count = {s.name: s.size(args) for s in self.imported.sets}
        sets = {s.name: s.made(count, args) for s in self.set_arguments}
        for given_set in sets.values():
            given_set.check()
        read = [r for r in self.imported.rows if r.name in self.structure_inputs]
        given = {**sets, **{r.name: structure_rows(r, args) for r in read}}
        done = run_plan(self.structure, given, self.env.sets)
        return WholeSets(self.env, {k: v for k, v in done.items() if isinstance(v, SetData)})

    # ------------------------------------------------------------ a call

    def __call__(self, args: Sequence[Any], call: Call) -> Any:
        """Run on the placeholders' values.

        Raises:
            IndexError, ValueError: an index out of range or sizes that do not fit.
            SizesDiffer: rows that are counted by data are not as many as in the first call.
        """
        self.imported.check(args)
        for relation in self.imported.relations:
            relation.check(args)
        sets = self.sets_of(args)
        stored = StoredRows(lambda v: self.argument(v, args), call.folder)
        with torch.no_grad():
            for stage, program in zip(self.stages, self.programs, strict=True):
                self.run(stage, program, sets, stored, call)
                for v in stage.last:
                    stored.free(v)
        made = [stored[self.results[b.name]] for b in self.imported.results]
        pairs = zip(self.imported.results, made, strict=True)
        tensors = [tensor_of(b, y) for b, y in pairs]
        for a in self.imported.assertions:
            if not tensors[a.result]:
                raise a.raised(a.message)
        return self.outputs.rebuild(tensors, args)

    def argument(self, v: SSAValue, args: Sequence[Any]) -> Tensor:
        return rows_of(self.bindings[self.argument_names[v]], args).detach()

    def run(
        self, stage: Stage, program: Program, sets: WholeSets, stored: StoredRows, call: Call
    ) -> None:
        """One stage, chunk by chunk."""
        n = None if stage.target is None else sets.size(stage.target)
        for made in stage.made:
            if made.merge is None and n is not None:
                stored.make(made.value, rows(made.value), n)
        totals: dict[SSAValue, Tensor] = {}
        whole = {new: SetData(sets.size(of)) for new, of in stage.whole.items()}
        for lo, hi in ranges(n, call.batch_size):
            chunks = {c.name: sets.chunk(c, lo, hi) for c in stage.chunks}
            values = {
                g.name: stored[g.value][lo:hi] if g.sliced else stored[g.value] for g in stage.given
            }
            out, took = run_chunk(program, {**whole, **chunks}, values)
            call.peak_bytes = max(call.peak_bytes, stored.held + took)
            for made in stage.made:
                y = out[made.name]
                if made.merge is not None:
                    before = totals.get(made.value)
                    totals[made.value] = y if before is None else MERGE[made.merge](before, y)
                elif n is None:
                    stored.keep(made.value, y)
                else:
                    stored[made.value][lo:hi] = y
        for made in stage.made:
            if made.value in totals:
                total = totals[made.value]
                stored.keep(made.value, total / max(n or 0, 1) if made.merge == "mean" else total)


def run_chunk(
    program: Program, sets: dict[str, SetData], values: Mapping[str, Tensor]
) -> tuple[dict[str, Tensor], int]:
    """What a program gives for a chunk, and the bytes that it took."""
    graph = program.on_graph(sets, {})
    prepare(graph, values)
    out = run_phase(graph.phases["forward"], {**values, **graph.rows})
    return out, footprint(program, graph).peak


def ranges(n: int | None, size: int) -> Iterator[tuple[int, int]]:
    """From where to where chunks of `size` rows go; one that is empty where there is no row."""
    n = n or 0
    return ((lo, min(lo + size, n)) for lo in range(0, max(n, 1), size))


def refuse_training(imported: Imported) -> None:
    """Raises ValueError where a graph draws random numbers or edits its arguments."""
    if any(isinstance(r.source, DropoutKey) for r in imported.rows):
        raise ValueError("the model draws random numbers (dropout): call model.eval() first")
    if imported.updates:
        names = [argument_name(imported.placeholders[u.placeholder]) for u in imported.updates]
        raise ValueError(
            f"the model edits {', '.join(names)} in a call (statistics of BatchNorm in training): "
            "call model.eval() first"
        )
