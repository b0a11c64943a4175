"""`gnnc.train_step`: loss, gradients and the optimizer's update as one program.

Dynamo traces the loss as a whole; the program that is made of it takes what the optimizer keeps as
further arguments, and gives their new values and those of the parameters. torch's optimizer stays
the owner of its state: checkpoints, schedules of rates and groups of parameters are its own.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx, nn
from torch.optim import Optimizer
from torch.optim import optimizer as torch_optimizers
from xdsl.utils.exceptions import DiagnosticException

from ...passes.driver.runner import PassCrash
from ...runtime.cpu.toolchain import CompileError, NoCompiler
from ...runtime.ranks.communicator import Communicator
from ..compiler import Options
from .before_step import Prologue, prologue
from .calls.refusals import RefusedCall, told_of, with_both_reasons
from .capture.capture import dynamo_compile
from .capture.effects import WholeInTorch
from .capture.failures import UNTRACEABLE
from .capture.graph_breaks import first_line
from .clipping import Clipping, bound, count_of_calls, kind_of_norm
from .compile import compiled_callable
from .graph_step import GraphStep, Witness
from .importer import Unsupported
from .importer.relations import SizesDiffer
from .optimizers import NotOneStep
from .ranks import cut_tensors, drawn_edges
from .ranks.among_ranks import among_ranks, one_program
from .ranks.features_of_all import features_of
from .ranks.replicas import Trainers, trainers
from .report import Report, remember
from .returned import detached, marked, place_of_loss, the_loss
from .step_function import Turn
from .taken_options import taken

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
    `gnnc.explain` tells why. What torch can run before all else (random numbers, what is made of
    arguments that want no gradient) leaves the rest one program.

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
        **options: see `gnnc.Options`. Those that are not given are taken over, but for `fullgraph`
            and `passes`, from the modules with these parameters, as `gnnc.compile` and
            `gnnc.distribute` were given them.

    Raises:
        TypeError, ValueError: an argument is of another type or out of range, an option is not
            known, or one is not given and these modules have several.
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
    chosen = taken([p for g in optimizer.param_groups for p in g["params"]], options)
    counted, all_ranks = count_of_calls(accumulate), trainers(ranks, optimizer)
    return TrainStep(loss, optimizer, clipping, counted, chosen, all_ranks)


class TrainStep:
    """What `train_step` returns."""

    def __init__(
        self,
        loss: Callable[..., Any],
        optimizer: Optimizer,
        clipping: Clipping,
        accumulate: int,
        options: Options,
        trainers: Trainers,
    ) -> None:
        self.optimizer = optimizer
        self.clipping = clipping
        self.trainers = trainers
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
        whole = dynamo_compile(
            with_mark,
            self._step_of,
            fullgraph=True,
            eager_calls=not options.fullgraph,
            notice=self.report.warn,
            features=features_of(options, self.report.note),
        )
        self.whole = one_program(whole)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not torch.is_grad_enabled():
            # what lasts, as an optimizer's state, must be no tensor of inference mode
            with torch.inference_mode(False), torch.enable_grad():
                return self(*args, **kwargs)
        first, last = self.pending == 0, self.pending + 1 >= self.accumulate
        self.trainers.begin()
        if first:
            _drop_gradients(self.optimizer)
        self.turn = Turn.KEEPS if not last else Turn.USES if first else Turn.ENDS
        self.made = None
        out = self._run(args, kwargs)
        loss = the_loss(out)
        if self.made is None:  # it was computed alone
            loss.backward()
            out = self.trainers.with_sum(out, loss)
        if last:
            if self.made is not self.turn:
                self.trainers.sum_gradients()
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
            except SizesDiffer as differ:
                if self.options.fullgraph:
                    raise
                self.report.warn(f"a call, {differ}")
                return self.loss(*args, **kwargs)
            except RefusedCall as call:
                if self.options.fullgraph or self.trainers.carrier is not None:
                    raise call.reason from None  # ranks go on together
                return self._in_torch(call.reason, args, kwargs)
            except REFUSED as error:
                if self.options.fullgraph:
                    raise
                why = first_line(error)
                self.report.warn(f"the update of parameters, which is not in one program: {why}")
        if self.in_parts is not None:
            return self.in_parts(*args, **kwargs)
        in_parts = compiled_callable(self.loss, self.options, self.report)
        out = in_parts(*args, **kwargs)
        self.in_parts = in_parts  # a call that raises does not say that others cannot be whole
        return out

    def _in_torch(self, reason: Exception, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """The loss of a call that the program refuses."""
        try:
            out = self.loss(*args, **kwargs)
        except (IndexError, RuntimeError, ValueError) as error:
            raise with_both_reasons(reason, error) from error
        self.report.warn(told_of(reason), what="")
        return out

    def _step_of(self, graph: fx.GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        cut = bool(cut_tensors.kinds(examples))
        graph, draws = drawn_edges.apart(graph) if cut else (graph, [])
        place = place_of_loss(graph)
        run = self._calling(graph, place)
        return drawn_edges.before(run if cut else self._or_after_torch(run, graph, place), draws)

    def _calling(self, graph: fx.GraphModule, place: int) -> Callable[..., Any]:
        """What calls the program of a graph, which is compiled by its first call."""
        step = GraphStep(
            *(graph, place, self.optimizer, self.clipping),
            *(self.options, self.report, self.trainers.carrier),
        )

        def run(*args: Any) -> Any:
            step.witness = self.witness
            out, self.made = step(self.turn, args)
            return out

        return run

    def _or_after_torch(
        self, whole: Callable[..., Any], graph: fx.GraphModule, place: int
    ) -> Callable[..., Any]:
        """`whole`, or where that cannot be compiled a program for all that is left behind what
        torch can run before it."""
        chosen: Callable[..., Any] | None = None

        def run(*args: Any) -> Any:
            nonlocal chosen
            if chosen is not None:
                return chosen(*args)
            try:
                chosen, out = whole, whole(*args)
            except Unsupported as error:
                chosen = None
                in_one = self.options.fullgraph or self.witness is not None
                if in_one or isinstance(error, WholeInTorch):
                    raise
                apart = prologue(graph, args, place)
                if apart is None:
                    raise
                chosen, out = self._begun(apart, args)
            return out

        return run

    def _begun(self, apart: Prologue, args: Sequence[Any]) -> tuple[Callable[..., Any], Any]:
        """What runs a graph with a prologue, and its first call, which draws no random numbers if
        it fails: they are drawn again then."""
        run = apart.before(self._calling(apart.graph, apart.place))
        numbers, in_python = torch.get_rng_state(), random.getstate()
        try:
            out = run(*args)
        except REFUSED:
            torch.set_rng_state(numbers)
            random.setstate(in_python)
            raise
        for reason in apart.reasons:
            self.report.warn(reason)
        return run, out


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
