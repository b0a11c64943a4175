"""`gnnc.train_step`: loss, gradients and the optimizer's update as one program.

Dynamo traces the loss as a whole; the program that is made of it takes what the optimizer keeps as
further arguments, and gives their new values and those of the parameters. torch's optimizer stays
the owner of its state: checkpoints, schedules of rates and groups of parameters are its own.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.optim import Optimizer
from torch.optim import optimizer as torch_optimizers
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr, f32, f64
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import DiagnosticException

from ...dialects.attributes import NAME, OPTIMIZER, STATE_OF
from ...dialects.inter.types import ONE, RowsType
from ...dialects.signature import Names, arg_attributes
from ...passes.driver.runner import PassCrash
from ...passes.inter.autodiff import attached_arguments
from ...passes.inter.optimizers import COUNT, RULES
from ...runtime.cpu.toolchain import CompileError, NoCompiler
from ..compiler import Options
from .calls.bound_program import BoundProgram
from .capture.capture import UNTRACEABLE, dynamo_compile
from .compile import bind, compiled_callable, imported_graph
from .importer import Imported, Unsupported
from .importer.binding import FromTensor, ResultBinding, RowsBinding, UpdateBinding
from .optimizers import Counts, NotOneStep, NumberRows, count_type, numbers_of, rule_of, state_of
from .report import Report, remember

_REFUSED = (
    *(NotOneStep, Unsupported, DiagnosticException, PassCrash, CompileError, NoCompiler),
    *UNTRACEABLE,
)


def train_step(loss: Callable[..., Tensor], optimizer: Optimizer, /, **options: Any) -> TrainStep:
    """A function that trains one step: `loss`, its gradients, and the update of the parameters.

    It takes the arguments of `loss` and returns the loss before the update, without a gradient. A
    call does what these lines do, in one compiled program where that is possible::

        optimizer.zero_grad()
        value = loss(*args)
        value.backward()
        optimizer.step()
        optimizer.zero_grad()

    Adam (with `amsgrad`), AdamW and SGD (with momentum) become part of the program; the state lies
    in `optimizer.state` as ever, and learning rates and the like are read at each call. With
    another optimizer, with hooks on it or on parameters, or where a part of `loss` has to run in
    torch, the loss is compiled and the rest is torch's; `gnnc.explain` tells why.

    Args:
        loss: a function of tensors that returns one number.
        optimizer: a `torch.optim.Optimizer` with the parameters that are to be updated.
        **options: see `gnnc.Options`.

    Raises:
        TypeError: an argument is of another type, or an option is not known.
    """
    if not callable(loss):
        raise TypeError(f"loss must be a function of tensors, not {type(loss).__name__}")
    if not isinstance(optimizer, Optimizer):
        raise TypeError(
            f"optimizer must be a torch.optim.Optimizer, not {type(optimizer).__name__}"
        )
    return TrainStep(loss, optimizer, Options(**options))


class TrainStep:
    """What `train_step` returns."""

    def __init__(self, loss: Callable[..., Tensor], optimizer: Optimizer, options: Options) -> None:
        self.optimizer = optimizer
        self.report = Report()
        remember(self, self.report)
        self.options = options
        self.in_parts: Callable[..., Any] | None = None
        self.loss = loss
        self.steps_made = 0

        @functools.wraps(loss.forward if isinstance(loss, nn.Module) else loss)
        def only_loss(*args: Any, **kwargs: Any) -> Any:
            out = loss(*args, **kwargs)
            return out if isinstance(out, Tensor) else None  # a graph without results is not run

        # one graph, for parameters may change after the whole loss only
        self.whole = dynamo_compile(
            only_loss,
            self._step_of,
            fullgraph=True,
            notice=self.report.warn,
            sparse_features=options.sparse_features,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        if not torch.is_grad_enabled():
            with torch.enable_grad():
                return self(*args, **kwargs)
        _drop_gradients(self.optimizer)
        before = self.steps_made
        loss = self._run(args, kwargs)
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            raise TypeError(f"the loss must be a tensor of one number, got {_kind_of(loss)}")
        if self.steps_made > before:
            return loss
        loss.backward()  # it was computed alone
        self.optimizer.step()
        _drop_gradients(self.optimizer)
        return loss.detach()

    def _run(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        if self.in_parts is None and not _has_hooks(self.optimizer):
            try:
                return self.whole(*args, **kwargs)
            except _REFUSED as error:
                if self.options.fullgraph:
                    raise
                self.report.warn(f"the update of parameters, which is not in one program: {error}")
        if self.in_parts is None:
            self.in_parts = compiled_callable(self.loss, self.options, self.report)
        return self.in_parts(*args, **kwargs)

    def _step_of(self, graph: fx.GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        step = GraphStep(graph, self.optimizer, self.options, self.report)

        def run(*args: Any) -> Any:
            out = step(*args)
            self.steps_made += 1
            return out

        return run


def _kind_of(loss: Any) -> str:
    return f"{loss.numel()} numbers" if isinstance(loss, Tensor) else type(loss).__name__


def _drop_gradients(optimizer: Optimizer) -> None:
    """What `zero_grad` does, without its mark for a profiler."""
    for group in optimizer.param_groups:
        for p in group["params"]:
            p.grad = None


def _has_hooks(optimizer: Optimizer) -> bool:
    """Whether somebody wants to see each of the optimizer's own steps."""
    return bool(
        optimizer._optimizer_step_pre_hooks
        or optimizer._optimizer_step_post_hooks
        or torch_optimizers._global_optimizer_pre_hooks
        or torch_optimizers._global_optimizer_post_hooks
    )


@dataclass(frozen=True)
class Kept:
    """A parameter of the graph: its placeholder and name in the program, its rule, and the type of
    the count of its steps."""

    placeholder: int
    name: str
    rule: str
    count: torch.dtype


class GraphStep:
    """A step of training for one graph of Dynamo's, compiled for the first call's optimizer."""

    def __init__(
        self, graph: fx.GraphModule, optimizer: Optimizer, options: Options, report: Report
    ) -> None:
        self.graph, self.optimizer = graph, optimizer
        self.options, self.report = options, report
        self.wanting: list[int] | None = None
        self.made: dict[tuple[str, ...], tuple[BoundProgram, list[Kept]]] = {}
        self.counts, self.rows = Counts(), NumberRows()

    def __call__(self, *args: Any) -> Any:
        if self.wanting is None:  # Dynamo's graphs are apart where this differs
            tensors = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
            self.wanting = [i for i in tensors if args[i].requires_grad]
        groups = [(g, rule_of(self.optimizer, g)) for g in self.optimizer.param_groups]
        homes = {id(p): group for group in groups for p in group[0]["params"]}
        rules = tuple(rule_for(args[i], homes) for i in self.wanting)
        if rules not in self.made:
            self.made[rules] = self._compile(args, homes)
        program, parameters = self.made[rules]
        states = [
            state_of(self.optimizer, args[k.placeholder], k.rule, k.count) for k in parameters
        ]
        extra: list[Tensor] = []
        steps: list[float] = []
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
            extra += [torch.zeros_like(x) if y is None else y for y in kept]
            extra.append(rows[key])
        out = program(*args, *extra)
        self._note(parameters, states, steps, extra)
        return out

    def _note(
        self,
        parameters: Sequence[Kept],
        states: Sequence[dict[str, Any]],
        steps: Sequence[float],
        extra: Sequence[Tensor],
    ) -> None:
        """What is known after a step was made."""
        position = 0
        for k, state, before in zip(parameters, states, steps, strict=True):
            for name in RULES[k.rule].state:
                if state[name] is None:
                    state[name] = extra[position]
                position += 1
            position += 1
            if COUNT in state:
                self.counts.note(state[COUNT], before + 1)
        self.optimizer._opt_called = True  # what a schedule of rates looks at

    def _compile(
        self, args: Sequence[Any], homes: Mapping[int, tuple[Any, str]]
    ) -> tuple[BoundProgram, list[Kept]]:
        start = time.perf_counter()
        imported = imported_graph(self.graph, args)
        parameters = [
            Kept(p, name, homes[id(args[p])][1], self._count_type(args[p], homes))
            for p, name in trained(imported)
        ]
        whole = with_state(imported, parameters, args)
        program = bind(whole, True, self.options, self.report)
        self.report.compile_seconds += time.perf_counter() - start
        return program, parameters

    def _count_type(self, x: Tensor, homes: Mapping[int, tuple[Any, str]]) -> torch.dtype:
        return count_type(self.optimizer, x, homes[id(x)][0])


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


def trained(imported: Imported) -> list[tuple[int, str]]:
    """The parameters that a step updates: their placeholders, and their names as arguments.

    Raises:
        NotOneStep: there is none; the program has one as rows of two kinds, or changes it by
            itself.
    """
    attached = attached_arguments(imported.function)
    out: list[tuple[int, str]] = []
    for r in imported.rows:
        if r.needs_grad and r.name in attached:
            assert isinstance(r.source, FromTensor)
            out.append((r.source.placeholder, r.name))
    places = {place for place, _ in out}
    if not out:
        raise NotOneStep("the loss is made of no parameter")
    if len(places) < len(out):
        raise NotOneStep("a parameter is used as rows and as a whole")
    wanting = {r.source.placeholder for r in imported.rows if r.needs_grad}  # type: ignore[union-attr]
    if wanting & {u.placeholder for u in imported.updates}:
        raise NotOneStep("the loss changes a parameter in place")
    return out


def with_state(imported: Imported, parameters: Sequence[Kept], args: Sequence[Any]) -> Imported:
    """The program with arguments for what the optimizer keeps and for the numbers of a step, as
    further placeholders after those of the graph, and with the updates of all of them."""
    signature = _Extended(imported.function, len(imported.placeholders))
    by_name = {r.name: r for r in imported.rows}
    for k in parameters:
        signature.add(by_name[k.name], k, args[k.placeholder].shape)
    return replace(
        imported,
        rows=(*imported.rows, *signature.rows),
        updates=(*imported.updates, *signature.updates),
        placeholders=(*imported.placeholders, *(r.name for r in signature.rows)),
        attached=(),
    )


class _Extended:
    """A function that is given more arguments."""

    def __init__(self, func: FuncOp, placeholders: int) -> None:
        self.func = func
        self.placeholders = placeholders
        self.attributes = [dict(d) for d in arg_attributes(func)]
        self.arguments: dict[str, SSAValue] = {}
        for value, attrs in zip(func.body.block.args, self.attributes, strict=True):
            name = attrs[NAME]
            assert isinstance(name, StringAttr)
            self.arguments[name.data] = value
        self.names = Names(self.arguments)
        self.rows: list[RowsBinding] = []
        self.updates: list[UpdateBinding] = []

    def add(self, parameter: RowsBinding, kept: Kept, shape: Sequence[int]) -> None:
        """What the rule needs for a parameter of this shape."""
        value, rule = self.arguments[parameter.name], RULES[kept.rule]
        self.attributes[value.index][OPTIMIZER] = StringAttr(kept.rule)
        assert isinstance(parameter.source, FromTensor)
        axis = parameter.source.row_axis
        self._update(parameter, shape)
        for name in rule.state:
            if name == COUNT:
                one = RowsType.get(ONE, (), f64 if kept.count == torch.float64 else f32)
                self._update(self._argument(parameter, name, one, None), ())
            else:
                self._update(self._argument(parameter, name, value.type, axis), shape)
        elem = f64 if parameter.elem == "f64" else f32
        numbers = RowsType.get(ONE, (len(rule.numbers),), elem)
        self._argument(parameter, "numbers", numbers, None)
        self.func.arg_attrs = ArrayAttr(DictionaryAttr(a) for a in self.attributes)
        self.func.update_function_type()

    def _argument(
        self, parameter: RowsBinding, what: str, kind: RowsType, axis: int | None
    ) -> RowsBinding:
        name = self.names.fresh(f"{parameter.name}_{what}")
        block = self.func.body.block
        block.insert_arg(kind, len(block.args)).name_hint = name
        self.attributes.append({NAME: StringAttr(name), STATE_OF: StringAttr(parameter.name)})
        source = FromTensor(self.placeholders + len(self.rows), axis)
        self.rows.append(RowsBinding(name, source, kind.dims, str(kind.elem), False))
        return self.rows[-1]

    def _update(self, argument: RowsBinding, shape: Sequence[int]) -> None:
        source = argument.source
        assert isinstance(source, FromTensor)
        dims = tuple(-1 if i == source.row_axis else n for i, n in enumerate(shape))
        result = ResultBinding(
            f"new_{argument.name}", dims, source.row_axis, 1, argument.elem, None
        )
        self.updates.append(UpdateBinding(source.placeholder, argument.name, result))
