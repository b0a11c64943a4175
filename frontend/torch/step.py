"""`gnnc.train_step`: loss, gradients and the optimizer's update as one program.

Dynamo traces the loss as a whole; the program that is made of it takes what the optimizer keeps as
further arguments, and gives their new values and those of the parameters. torch's optimizer stays
the owner of its state: checkpoints, schedules of rates and groups of parameters are its own.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, fx, nn
from torch.optim import Optimizer
from torch.optim import optimizer as torch_optimizers
from xdsl.dialects.builtin import UnitAttr, f32, f64
from xdsl.utils.exceptions import DiagnosticException

from ...dialects.attributes import SUMMED
from ...passes.driver.runner import PassCrash
from ...passes.inter.optimizers import COUNT, RULES
from ...runtime.carrier import Carrier
from ...runtime.cpu.toolchain import CompileError, NoCompiler
from ...runtime.ranks.communicator import Communicator
from ..compiler import Options
from .calls.bound_program import BoundProgram
from .calls.graphs_seen import ForGraphsSeen
from .calls.shared_memory import OwnMemory
from .capture.capture import dynamo_compile
from .capture.failures import UNTRACEABLE
from .clipping import Clipping, bound, count_of_calls, kind_of_norm
from .compile import bind, compiled_callable, imported_graph
from .importer import Imported, Unsupported
from .optimizers import Counts, NotOneStep, NumberRows, count_type, numbers_of, rule_of, state_of
from .ranks import cut_tensors, drawn_edges
from .ranks.among_ranks import among_ranks, compiling
from .ranks.features_of_all import features_of
from .ranks.replicas import Replicas
from .report import Report, remember
from .returned import detached, marked, place_of_loss, the_loss, with_loss, without_other_gradients
from .step_function import Kept, Turn, trained, with_state

OTHERS_WAIT = (
    "the update of parameters after a call that has no gradient of some for which earlier calls "
    "have accumulated one"
)

REFUSED = (
    *(NotOneStep, Unsupported, DiagnosticException, PassCrash, CompileError, NoCompiler),
    *UNTRACEABLE,
)
"""What a loss is met with that is no whole program with its update; raised with `fullgraph`."""


def train_step(
    loss: Callable[..., Any],
    optimizer: Optimizer,
    /,
    *,
    clip_grad_norm: float | None = None,
    clip_grad_value: float | None = None,
    norm_type: float | str = 2.0,
    accumulate: int = 1,
    ranks: Communicator | None = None,
    **options: Any,
) -> TrainStep:
    """A function that trains one step: `loss`, its gradients, and the update of the parameters.

    It takes the arguments of `loss` and returns what that returns, as it was before the update and
    without gradients. A call does what these lines do, in one compiled program where that is
    possible, and whatever is said of gradients around it (`torch.no_grad`)::

        optimizer.zero_grad()
        value = loss(*args)
        value.backward()
        # with clip_grad_value, clip_grad_norm:
        torch.nn.utils.clip_grad_value_(parameters_of_optimizer, clip_grad_value)
        torch.nn.utils.clip_grad_norm_(parameters_of_optimizer, clip_grad_norm, norm_type)
        optimizer.step()
        optimizer.zero_grad()

    With `accumulate=k`, k calls make one step: the first begins with `zero_grad`, each adds its
    gradients to `.grad` as `backward` does (divide the loss by k for their mean), the k-th does
    what follows `backward` above. Between them `.grad` may be read and edited as ever; it belongs
    to no checkpoint.

    With `ranks` all ranks call the step, each on a batch of its own, and the loss is the sum of
    what they have (for a mean divide by the number of all). Gradients are summed over the ranks, in
    their order, before they are clipped and used, so that parameters are the same on all, to the
    bit, if they were before the first call. What is returned beside the loss is that of the rank.

    Adam, AdamW, SGD, Adagrad and RMSprop with all their options but `differentiable` and
    `capturable` become part of the program; the state lies in `optimizer.state` as ever, and
    learning rates and the like are read at each call. With another optimizer, with hooks on it or
    on parameters, with a function in the place of its `step`, with parameters that share memory, or
    where a part of `loss` has to run in torch, the loss is compiled and the rest is torch's;
    `gnnc.explain` tells why.

    Args:
        loss: a function of tensors that returns the loss, a tensor of one number; or a tuple with
            the loss first and whatever else is wanted of the call (logits, a dict of accuracies).
        optimizer: a `torch.optim.Optimizer` with the parameters that are to be updated.
        clip_grad_norm: a bound for the norm of all gradients together. Like `clip_grad_value` it is
            an attribute of the step too, and setting another number compiles nothing.
        clip_grad_value: a bound for each number of the gradients, which are clipped by it first.
        norm_type: 2 or "inf" (another norm is torch's business).
        accumulate: after how many calls there is an update.
        ranks: who trains the same parameters (`worker.communicator` of `gnnc.argo`).
        **options: see `gnnc.Options`.

    Raises:
        TypeError, ValueError: an argument is of another type or out of range, or an option is not
            known.
        Disagreement: by the first call, where ranks begin with other parameters.
    """
    if not callable(loss):
        raise TypeError(f"loss must be a function of tensors, not {type(loss).__name__}")
    if not isinstance(optimizer, Optimizer):
        raise TypeError(
            f"optimizer must be a torch.optim.Optimizer, not {type(optimizer).__name__}"
        )
    clipping = Clipping(
        bound("clip_grad_value", clip_grad_value),
        bound("clip_grad_norm", clip_grad_norm),
        kind_of_norm(norm_type),
    )
    replicas = Replicas(ranks, optimizer) if ranks is not None and ranks.size > 1 else None
    chosen = Options(**options)
    return TrainStep(loss, optimizer, clipping, count_of_calls(accumulate), chosen, replicas)


class TrainStep:
    """What `train_step` returns."""

    def __init__(
        self,
        loss: Callable[..., Any],
        optimizer: Optimizer,
        clipping: Clipping,
        accumulate: int,
        options: Options,
        replicas: Replicas | None,
    ) -> None:
        self.optimizer = optimizer
        self.clipping = clipping
        self.replicas = replicas
        self.accumulate = accumulate
        self.pending = 0  # calls whose gradients wait in `.grad`
        self.turn = Turn.USES
        self.made: Turn | None = None  # what a program has done of it
        self.report = Report()
        remember(self, self.report)
        self.options = options = among_ranks(options)
        self.in_parts: Callable[..., Any] | None = None
        self.loss = loss
        self.witness: Witness | None = None

        @functools.wraps(loss.forward if isinstance(loss, nn.Module) else loss)
        def with_mark(*args: Any, **kwargs: Any) -> Any:
            return marked(loss(*args, **kwargs))  # a graph without results is not run

        # one graph, for parameters may change after the whole loss only
        self.whole = dynamo_compile(
            with_mark,
            self._step_of,
            fullgraph=True,
            eager_calls=not options.fullgraph,
            notice=self.report.warn,
            features=features_of(options, self.report.note),
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not torch.is_grad_enabled():
            # what lasts, as an optimizer's state, must be no tensor of inference mode
            with torch.inference_mode(False), torch.enable_grad():
                return self(*args, **kwargs)
        first, last = self.pending == 0, self.pending + 1 >= self.accumulate
        if self.replicas is not None:
            self.replicas.begin()
        if first:
            _drop_gradients(self.optimizer)
        self.turn = Turn.KEEPS if not last else Turn.USES if first else Turn.ENDS
        self.made = None
        out = self._run(args, kwargs)
        loss = the_loss(out)
        if self.made is None:  # it was computed alone
            loss.backward()
            if self.replicas is not None:
                out = with_loss(out, self.replicas.summed(loss))
        if last:
            if self.made is not self.turn:
                if self.replicas is not None:
                    self.replicas.sum_gradients()
                self.clipping.clip(self.optimizer)
                self.optimizer.step()
            _drop_gradients(self.optimizer)
        self.pending = 0 if last else self.pending + 1
        return detached(out)

    @property
    def clip_grad_norm(self) -> float | None:
        """The bound for the norm of all gradients."""
        return self.clipping.norm

    @clip_grad_norm.setter
    def clip_grad_norm(self, value: float | None) -> None:
        self.clipping.norm = bound("clip_grad_norm", value)

    @property
    def clip_grad_value(self) -> float | None:
        """The bound for each number of the gradients."""
        return self.clipping.value

    @clip_grad_value.setter
    def clip_grad_value(self, value: float | None) -> None:
        self.clipping.value = bound("clip_grad_value", value)

    def _run(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        if self.in_parts is None:
            try:
                if _is_watched(self.optimizer):
                    raise NotOneStep("the optimizer has hooks, or a step that is not its class's")
                return self.whole(*args, **kwargs)
            except REFUSED as error:
                if self.options.fullgraph:
                    raise
                self.report.warn(f"the update of parameters, which is not in one program: {error}")
        if self.in_parts is not None:
            return self.in_parts(*args, **kwargs)
        in_parts = compiled_callable(self.loss, self.options, self.report)
        out = in_parts(*args, **kwargs)
        self.in_parts = in_parts  # a call that raises does not say that others cannot be whole
        return out

    def _step_of(self, graph: fx.GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        graph, draws = drawn_edges.apart(graph) if cut_tensors.kinds(examples) else (graph, [])
        carrier = None if self.replicas is None else self.replicas.carrier
        step = GraphStep(graph, self.optimizer, self.clipping, self.options, self.report, carrier)

        def run(*args: Any) -> Any:
            step.witness = self.witness
            out, self.made = step(self.turn, args)
            return out

        return drawn_edges.before(run, draws) if draws else run


def _drop_gradients(optimizer: Optimizer) -> None:
    """What `zero_grad` does, without its mark for a profiler."""
    for group in optimizer.param_groups:
        for p in group["params"]:
            p.grad = None


def _is_watched(optimizer: Optimizer) -> bool:
    """Whether somebody wants to see each of the optimizer's own steps."""
    return bool(
        optimizer._optimizer_step_pre_hooks
        or optimizer._optimizer_step_post_hooks
        or torch_optimizers._global_optimizer_pre_hooks
        or torch_optimizers._global_optimizer_post_hooks
        or _has_own_step(optimizer)
    )


def _has_own_step(optimizer: Optimizer) -> bool:
    """Whether somebody has put another step in the place of that of the optimizer's class; a
    schedule of rates does too, to see whether there was one."""
    step = vars(optimizer).get("step")
    if step is None:
        return False
    of_schedule = getattr(step, "_wrapped_by_lr_sched", False)
    return not of_schedule or step.__wrapped__ is not type(optimizer).step


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
        optimizer: Optimizer,
        clipping: Clipping,
        options: Options,
        report: Report,
        carrier: Carrier | None,
    ) -> None:
        self.graph, self.optimizer, self.clipping = graph, optimizer, clipping
        self.carrier = carrier
        self.place_of_loss = place_of_loss(graph)
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
            numbers = numbers_of(
                self.optimizer, homes[id(x)][0], steps[-1], any(y is None for y in kept)
            )
            key = (x.dtype, *numbers)
            if key not in rows:
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
