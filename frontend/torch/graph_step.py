"""A step of training for one graph of Dynamo's: the program that takes what the optimizer keeps."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, fx
from torch.optim import Optimizer
from xdsl.dialects.builtin import UnitAttr, f32, f64

from ...dialects.attributes import SUMMED
from ...passes.inter.optimizers import COUNT, RULES
from ...runtime.carrier import Carrier
from ..compiler import Options
from .calls.bound_program import BoundProgram
from .calls.graphs_seen import ForGraphsSeen
from .calls.shared_memory import OwnMemory
from .clipping import Clipping
from .compile import bind, imported_graph
from .importer import Imported
from .optimizers import Counts, NotOneStep, NumberRows, count_type, numbers_of, rule_of, state_of
from .ranks.among_ranks import compiling
from .report import Report
from .returned import without_other_gradients
from .step_function import Kept, Turn, trained, with_state

OTHERS_WAIT = (
    "the update of parameters after a call that has no gradient of some for which earlier calls "
    "have accumulated one"
)


@dataclass(frozen=True)
class Made:
    """A program, the parameters that it updates, and the type of its bounds for gradients."""

    program: ForGraphsSeen
    parameters: Sequence[Kept]
    bounds: torch.dtype


@dataclass(frozen=True)
class StepCall:
    """A call of a program: the graph that it was made from, whose placeholders come first in what
    it is given, and for each parameter its group."""

    graph: fx.GraphModule
    made: Made
    given: Sequence[Any]
    groups: Sequence[Mapping[str, Any]]


class Witness(Protocol):
    """Who is told of the calls of a step's program."""

    def begins(self, call: StepCall) -> None:
        """Nothing has been changed yet."""

    def ends(self, out: Sequence[Any]) -> None:
        """What the graph gives."""


class GraphStep:
    """A step of training for one graph of Dynamo's, compiled for the first call's optimizer."""

    def __init__(
        self,
        graph: fx.GraphModule,
        place_of_loss: int,
        optimizer: Optimizer,
        clipping: Clipping,
        options: Options,
        report: Report,
        carrier: Carrier | None,
    ) -> None:
        self.graph, self.optimizer, self.clipping = graph, optimizer, clipping
        self.carrier = carrier
        self.place_of_loss = place_of_loss
        self.placeholders = len(graph.graph.find_nodes(op="placeholder"))
        self.options, self.report = options, report
        self.tensors: list[int] = []
        self.wanting: list[int] | None = None
        self.made: dict[object, Made] = {}
        self.counts, self.rows = Counts(), NumberRows()
        self.memory = OwnMemory()
        self.witness: Witness | None = None

    def __call__(self, turn: Turn, args: Sequence[Any]) -> tuple[Any, Turn]:
        """What the graph gives for its placeholders, and what was done with the gradients."""
        if self.wanting is None:  # Dynamo's graphs are apart where this differs
            self.tensors = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
            self.wanting = [i for i in self.tensors if args[i].requires_grad]
        if any(args[i].is_inference() for i in self.tensors):
            raise NotOneStep("a tensor was made in inference mode")
        groups = [(g, rule_of(self.optimizer, g)) for g in self.optimizer.param_groups]
        homes = {id(p): group for group in groups for p in group[0]["params"]}
        rules = tuple(rule_for(args[i], homes) for i in self.wanting)
        made = self._made(turn, rules, args, homes)
        if turn is Turn.ENDS and self._others_wait(made.parameters, args):
            turn, made = Turn.KEEPS, self._made(Turn.KEEPS, rules, args, homes)
        if turn is Turn.KEEPS:
            return self._keep(made, args), turn
        return self._step(made, turn, args, homes), turn

    def _keep(self, made: Made, args: Sequence[Any]) -> Any:
        parameters = [args[k.placeholder] for k in made.parameters]
        sums = [waiting(x) for x in parameters]
        out = made.program(*args, *sums)
        for x, total in zip(parameters, sums, strict=True):
            x.grad = total
        return out

    def _step(
        self, made: Made, turn: Turn, args: Sequence[Any], homes: Mapping[int, tuple[Any, str]]
    ) -> Any:
        parameters = made.parameters
        if not self.memory.of_each([args[k.placeholder] for k in parameters]):
            raise NotOneStep("numbers of parameters share memory, which torch updates for each")
        states = [
            state_of(self.optimizer, args[k.placeholder], k.rule, k.count) for k in parameters
        ]
        extra: list[Tensor] = []
        steps: list[float] = []
        begun: list[tuple[dict[str, Any], str, Tensor]] = []
        rows: dict[object, Tensor] = {}  # most parameters have the same numbers
        for k, state in zip(parameters, states, strict=True):
            x = args[k.placeholder]
            kept = [state[n] for n in RULES[k.rule].state]
            steps.append(self.counts.of(state[COUNT]) if COUNT in state else 0)
            group, first = homes[id(x)][0], any(y is None for y in kept)
            key = (id(group), x.dtype, steps[-1], first)
            if key not in rows:
                numbers = numbers_of(self.optimizer, group, steps[-1], first)
                rows[key] = self.rows.hold(len(rows), x.dtype, numbers)
            for name, y in zip(RULES[k.rule].state, kept, strict=True):
                if y is None:
                    y = torch.zeros_like(x)
                    begun.append((state, name, y))
                extra.append(y)
            extra.append(rows[key])
            if turn is Turn.ENDS:
                extra.append(waiting(x))
        if bounds := self.clipping.bounds():
            extra.append(self.rows.hold(len(rows), made.bounds, bounds))
        if self.witness is not None:
            groups = [homes[id(args[k.placeholder])][0] for k in parameters]
            self.witness.begins(StepCall(self.graph, made, (*args, *extra), groups))
        out = made.program(*args, *extra)
        if self.witness is not None:
            self.witness.ends(out)
        for state, name, y in begun:
            state[name] = y
        for state, before in zip(states, steps, strict=True):
            if COUNT in state:
                self.counts.note(state[COUNT], before + 1)
        self.optimizer._opt_called = True  # what a schedule of rates looks at
        return out

    def _others_wait(self, parameters: Sequence[Kept], args: Sequence[Any]) -> bool:
        """Whether earlier calls have left gradients of parameters that this graph has none of."""
        mine = {id(args[k.placeholder]) for k in parameters}
        every = (p for group in self.optimizer.param_groups for p in group["params"])
        if all(p.grad is None or id(p) in mine for p in every):
            return False
        if OTHERS_WAIT not in self.report.fallbacks:
            self.report.warn(OTHERS_WAIT)
        return True

    def _made(
        self,
        turn: Turn,
        rules: tuple[str, ...],
        args: Sequence[Any],
        homes: Mapping[int, tuple[Any, str]],
    ) -> Made:
        """The program for these rules, which is compiled where there is none yet."""
        clip = () if turn is Turn.KEEPS else self.clipping.kinds()
        key = (turn, rules, clip)
        if key not in self.made:
            self.made[key] = self._compile(turn, clip, args, homes)
        return self.made[key]

    def _compile(
        self,
        turn: Turn,
        clip: Sequence[str],
        args: Sequence[Any],
        homes: Mapping[int, tuple[Any, str]],
    ) -> Made:
        start = time.perf_counter()
        parameters: list[Kept] = []

        def imported(
            args: Sequence[Any], sizes: Mapping[str, float] | None, constants: bool
        ) -> Imported:
            given, backend = args[: self.placeholders], self.options.backend
            found = imported_graph(self.graph, given, sizes, constants, backend)
            without_other_gradients(found, self.place_of_loss)
            if not parameters:
                parameters.extend(self._parameters(found, args, homes))
            elem = f64 if _any_double(parameters, args) else f32
            if self.carrier is not None:
                found.function.attributes[SUMMED] = UnitAttr()
            return with_state(found, parameters, args, turn, clip, elem)

        def compiled(whole: Imported) -> BoundProgram:
            return bind(whole, True, self.options, self.report, carrier=self.carrier)

        hoist, retired = self.options.hoist_inputs, self.report.programs.remove
        with compiling(args):
            program = ForGraphsSeen(imported, compiled, retired, args, hoist)
        self.report.compile_seconds += time.perf_counter() - start
        bounds = torch.float64 if _any_double(parameters, args) else torch.float32
        return Made(program, parameters, bounds)

    def _parameters(
        self, imported: Imported, args: Sequence[Any], homes: Mapping[int, tuple[Any, str]]
    ) -> list[Kept]:
        """In the order of the optimizer, in which it begins to keep something of them too."""
        place = {x: k for k, x in enumerate(homes)}
        found = sorted(trained(imported), key=lambda known: place[id(args[known[0]])])
        return [
            Kept(p, name, homes[id(args[p])][1], self._count_type(args[p], homes))
            for p, name in found
        ]

    def _count_type(self, x: Tensor, homes: Mapping[int, tuple[Any, str]]) -> torch.dtype:
        return count_type(self.optimizer, x, homes[id(x)][0])


def _any_double(parameters: Sequence[Kept], args: Sequence[Any]) -> bool:
    return any(args[k.placeholder].dtype == torch.float64 for k in parameters)


def rule_for(x: Tensor, homes: Mapping[int, tuple[Any, str]]) -> str:
    """The rule of a parameter, from the groups of parameters by identity.

    Raises:
        NotOneStep: it is in none, or somebody wants to see its gradient.
    """
    if id(x) not in homes:
        raise NotOneStep("a tensor of the loss wants a gradient that the optimizer does not use")
    if x._backward_hooks or x._post_accumulate_grad_hooks:
        raise NotOneStep("a parameter has a hook, which has to see its gradient")
    return homes[id(x)][1]


def waiting(x: Tensor) -> Tensor:
    """The gradient that a parameter has, or zeros.

    Raises:
        NotOneStep: it is no tensor that a program can add to.
    """
    if x.grad is None:
        return torch.zeros_like(x, requires_grad=False)
    if x.grad.layout != torch.strided or x.grad.requires_grad:
        raise NotOneStep("a gradient that waits in `.grad` is sparse, or wants a gradient itself")
    return x.grad
