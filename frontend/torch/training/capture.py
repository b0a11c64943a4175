"""A step of a training as plain data: what `gnnc build` prints a program from.

The first step is run as ever, and seen by a witness: the arrays that its program is given, as they
are before it changes them, and what the program's arguments are made from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ....codegen.standalone.description import NoProgram, Standalone, Value
from ....passes.inter.optimizers import RULES
from ...training.reports import Reports
from ..calls.bound_program import BoundProgram
from ..graph_step import StepCall
from ..importer.binding import Imported, Result
from ..ranks.ranked_program import RankedProgram
from ..ranks.whole_graph import as_for_ranks
from ..step import REFUSED
from .arguments import Arguments
from .array_names import ArrayNames
from .program import Begun, TrainingProgram
from .rank_arguments import RankArguments

GENERATOR = "generator"
_WORDS = 624


@dataclass(frozen=True)
class Captured:
    """A program, and the arrays that it starts from: folder -> name -> numbers."""

    program: Standalone
    arrays: dict[str, dict[str, NDArray[Any]]]


def capture(
    training: TrainingProgram,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    target: str,
    seed: int,
    ranks: int | None = None,
) -> Captured:
    """A training with these arguments, whose setup runs with torch's generator at `seed`; with
    `ranks` for so many, among which the graph is divided.

    Raises:
        NoProgram: a part of it has no form without Python.
        ProgramError: a report has none, with its place.
        Exception: what the training itself raises.
    """
    torch.manual_seed(seed)
    options = replace(training.options, fullgraph=True, target=target, backend="cpu")
    if ranks is not None:
        options = replace(options, sparse_features=False)
    begun = training.begin(vars(options), args, kwargs)
    witness = FirstStep(begun)
    begun.step.witness = witness
    with nullcontext() if ranks is None else as_for_ranks():
        out = _step(training, begun)
    if witness.call is None or witness.out is None:
        raise NoProgram(
            "the step is not one program: " + "; ".join(map(str, begun.step.report.fallbacks))
        )
    return _captured(training, begun, witness, out, ranks)


def _step(training: TrainingProgram, begun: Begun) -> dict[str, Any]:
    """Runs what stands above the step and the step itself; what it returns, by name."""
    training.set_modes(begun)
    try:
        out = begun.step(*begun.functions.inputs.values())
    except REFUSED as error:
        raise NoProgram(f"the step is not one program: {error}") from error
    names = (training.form.loss, *training.form.results)
    return dict(zip(names, out if training.form.results else (out,), strict=True))


class FirstStep:
    """Keeps what the first step's program is given."""

    def __init__(self, begun: Begun) -> None:
        self.names = ArrayNames(begun)
        self.call: StepCall | None = None
        self.out: Sequence[Any] | None = None
        self.numbers: dict[int, NDArray[Any]] = {}
        self.generator: NDArray[Any] | None = None
        self.begun: list[bool] = []

    def begins(self, call: StepCall) -> None:
        if self.call is not None:
            return
        self.call = call
        self.numbers = {
            i: np.array(x.detach().numpy(), order="C")
            for i, x in enumerate(call.given)
            if isinstance(x, Tensor)
        }
        self.generator = generator_state()
        optimizer_state = self.names.begun.step.optimizer.state
        for k in call.made.parameters:
            state = optimizer_state.get(call.given[k.placeholder], {})
            self.begun.append(all(state.get(n) is not None for n in RULES[k.rule].state))

    def ends(self, out: Sequence[Any]) -> None:
        if self.out is None:
            self.out = out


def generator_state() -> NDArray[Any]:
    """The state of torch's generator as runtime/standalone/generator.h has it: what is left of the
    block, the next number of it, and the block. The layout is that of torch's legacy state
    (aten/src/ATen/CPUGeneratorImpl.cpp)."""
    state = torch.get_rng_state().numpy()
    left = state[8:12].view(np.int32)
    following = state[16 : 16 + 8 * (1 + _WORDS)].view(np.uint64).astype(np.int64)
    return np.concatenate([left.astype(np.int64), following])


def _captured(
    training: TrainingProgram,
    begun: Begun,
    seen: FirstStep,
    out: Mapping[str, Any],
    ranks: int | None,
) -> Captured:
    call = seen.call
    assert call is not None and seen.out is not None and seen.generator is not None
    bound = call.made.program.program
    if set(bound.program.phases) - {"prepare", "forward"}:
        raise NoProgram("the step is not one phase: a part of its gradients is left to torch")
    arguments = _arguments(call, bound, seen, ranks)
    values = _values(bound.imported, seen.out, out)
    reports = Reports(training.form, begun.names, values.get)
    imported = bound.imported
    program = Standalone(
        name=training.form.source.name,
        artifact=bound.program.data | {"source": bound.program.source},
        arrays=arguments.arrays,
        sets=arguments.sets(),
        rows=arguments.rows(),
        updates=arguments.updates(),
        conditions=arguments.conditions(),
        held={imported.results[a.result].name: a.message for a in imported.assertions},
        epochs=reports.epochs(),
        lines=reports.lines(),
        generator=arguments.draws(),
    )
    arrays: dict[str, dict[str, NDArray[Any]]] = {"data": {}, "parameters": {}}
    if isinstance(arguments, RankArguments):
        arrays |= dict(arguments.parts())
    for place, k in arguments.places.items():
        if arguments.arrays[k].made is None:
            arrays[arguments.arrays[k].folder][arguments.arrays[k].name] = seen.numbers[place]
    for k, x in arguments.matrices.items():
        arrays[arguments.arrays[k].folder][arguments.arrays[k].name] = x.detach().numpy()
    if program.generator:
        arrays["parameters"][GENERATOR] = seen.generator
    return Captured(program, arrays)


def _arguments(
    call: StepCall, bound: BoundProgram, seen: FirstStep, ranks: int | None
) -> Arguments:
    if ranks is None:
        return Arguments(call, bound.imported, seen.names, seen.begun)
    if not isinstance(bound, RankedProgram):
        raise NoProgram(
            "the step reads no edges (a tensor of 2 x edges) of a graph that ranks could divide; "
            "those between rows of a parameter are none, for all ranks have all of its rows"
        )
    read = {b.name for phase in bound.program.phases.values() for b in phase.inputs}
    read |= set(bound.program.structure_inputs)
    return RankArguments(call, bound.ranked, seen.names, seen.begun, ranks, frozenset(read))


def _values(
    imported: Imported, graph_out: Sequence[Any], out: Mapping[str, Any]
) -> dict[str, Value]:
    """The single numbers among what a step returns, by name: those of the graph's results, which
    lie in the same memory."""
    leaves = imported.outputs if isinstance(imported.outputs, tuple) else (imported.outputs,)
    found: dict[str, Value] = {}
    for name, x in out.items():
        for leaf, y in zip(leaves, graph_out, strict=True):
            same = isinstance(x, Tensor) and isinstance(y, Tensor) and x.data_ptr() == y.data_ptr()
            if same and isinstance(leaf, Result) and x.numel() == 1:
                binding = imported.results[leaf.number]
                found[name] = Value(binding.name, binding.elem)
    return found
