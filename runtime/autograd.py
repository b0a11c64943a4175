"""Joins @forward and @backward of a compiled program to torch's autograd."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Variable

from .program import OnGraph
from .signature import Signature
from .tensors import CPU, TORCH, Elsewhere, run_phase


class Origin(ABC):
    """What a call was made of: torch can run it again."""

    @abstractmethod
    def set_aside(self, name: str, result: Tensor) -> Tensor:
        """Keep a linked result, which is handed out later; a tensor of its shape in its place."""

    @abstractmethod
    def check(self) -> None:
        """
        Raises:
            RuntimeError: an argument was changed in place since the call; it names which.
        """

    @abstractmethod
    def updated(self) -> Sequence[tuple[int, Tensor, int]]:
        """The arguments that the call has updated and eager's backward reads: the numbers of the
        updates among the results, the tensors, and the versions that the call left them at."""

    @abstractmethod
    def check_read(self, results: Sequence[int], asked: Callable[[], Sequence[int]]) -> None:
        """
        Raises:
            RuntimeError: an argument that eager's backward of these results reads for the gradients
                of the inputs `asked` for, by number, was changed in place since the call; it names
                which.
        """

    @abstractmethod
    def begins_backward(self, cotangents: Sequence[Tensor | None]) -> None:
        """Called before @backward runs, with the gradients of the results."""

    @abstractmethod
    def asks_for_torch(self) -> bool:
        """Whether somebody wants to see the gradient between two results of the call."""

    @abstractmethod
    def is_as_torch_alone(self) -> bool:
        """Whether torch can run the call again, on arguments that are unchanged and all finite."""

    @abstractmethod
    def gradients(
        self, cotangents: Sequence[Tensor | None], wanted: Sequence[bool]
    ) -> Sequence[Tensor | None]:
        """The gradients of the inputs that are wanted, by operations of torch, which can be
        differentiated again where gradients are enabled."""


def differentiated(
    graph: OnGraph, signature: Signature, origin: Origin, inputs: Sequence[Tensor]
) -> Sequence[Tensor]:
    """One call of a compiled program with gradients: its results."""
    if len(signature.entries) > 1:
        return _in_pieces(graph, signature, origin, inputs)
    inputs = list(inputs)
    for k in signature.unreached:  # a backward must not get to their history
        if inputs[k].requires_grad:
            inputs[k] = inputs[k].detach()
    return CompiledCall.apply(graph, signature, origin, *inputs)


class CompiledCall(torch.autograd.Function):
    """A call as one node of autograd: of one whose results are all of the same arguments.

    An argument that no result with a cotangent is attached to gets None, as in torch. Where the
    backward is differentiated itself, or vectorised, torch runs the call again.
    """

    @staticmethod
    def forward(
        ctx: Any, graph: OnGraph, signature: Signature, origin: Origin, *inputs: Tensor
    ) -> tuple[Tensor, ...]:
        given = dict(zip(signature.inputs, inputs, strict=True))
        out = run_phase(graph.phases["forward"], given | graph.rows)
        handed = out
        if signature.linked:
            handed = out | {n: origin.set_aside(n, out[n]) for n in signature.linked}
            # the caller's tensor will know its node of autograd, which must not keep itself alive
            out = out | {n: out[n].detach() for n in signature.linked}
        kept = [given[n] for n in signature.kept_inputs]
        _keep(ctx, (graph, signature, origin, inputs), out)
        if signature.own and hooks(True) is None:
            ctx.own = signature.own
        ctx.save_for_backward(*kept, *(out[n] for n in signature.kept_outputs))
        if signature.constant:
            ctx.mark_non_differentiable(*(out[n] for n in signature.constant))
        return tuple(handed[n] for n in signature.results)

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor | None) -> tuple[Tensor | None, ...]:
        return None, None, None, *_gradients(ctx, cotangents)


# ------------------------------------------------------------------------- calls in pieces


class _Received:
    """What the backwards that run know of a call, by their numbers: the cotangents that have come,
    and the gradients that follow from these, once somebody has asked."""

    def __init__(self, results: int) -> None:
        self.results = results
        self.cotangents: dict[int, list[Tensor | None]] = {}
        self.gradients: dict[int, list[Tensor | None]] = {}

    def add(self, numbers: Sequence[int], cotangents: Sequence[Tensor | None]) -> None:
        task = torch._C._current_graph_task_id()
        if task not in self.cotangents:
            self.cotangents[task] = [None] * self.results
            Variable._execution_engine.queue_callback(lambda: self.forget(task))
        for i, d in zip(numbers, cotangents, strict=True):
            self.cotangents[task][i] = d
        self.gradients.pop(task, None)

    def forget(self, task: int) -> None:
        self.cotangents.pop(task, None)
        self.gradients.pop(task, None)


def _in_pieces(
    graph: OnGraph, signature: Signature, origin: Origin, inputs: Sequence[Tensor]
) -> list[Tensor]:
    """A call as several nodes of autograd, so that from each result one gets to its own arguments
    only, as in torch: a backward of one result must not touch the history of the others.

    The exits take the cotangents. The entries give the gradients of their arguments; the first that
    runs has those of all computed.
    """
    given = {n: x.detach() for n, x in zip(signature.inputs, inputs, strict=True)}
    with torch.no_grad():
        out = run_phase(graph.phases["forward"], given | graph.rows)
    # the caller's tensors will know their nodes of autograd, which must not keep themselves alive
    kept = [given[n] for n in signature.kept_inputs]
    kept += [out[n].detach() for n in signature.kept_outputs]
    received = _Received(len(signature.results))
    tokens = [
        _Entry.apply(
            (graph, signature, origin, inputs), out, kept, received, ks, *(inputs[k] for k in ks)
        )
        for ks in signature.entries
    ]
    results = [
        origin.set_aside(n, out[n]) if n in signature.linked else out[n] for n in signature.results
    ]
    for numbers, entries in signature.exits:
        own = [results[i] for i in numbers]
        made = _Exit.apply(received, numbers, own, *(tokens[e] for e in entries))
        for i, x in zip(numbers, made, strict=True):
            results[i] = x
    return results


class _Entry(torch.autograd.Function):
    """The arguments that the same results have a gradient for."""

    @staticmethod
    def forward(
        ctx: Any,
        call: _Call,
        out: Mapping[str, Tensor],
        kept: Sequence[Tensor],
        received: _Received,
        numbers: Sequence[int],
        *inputs: Tensor,
    ) -> Tensor:
        _keep(ctx, call, out)
        ctx.save_for_backward(*kept)
        ctx.received, ctx.numbers = received, numbers
        return torch.empty(0, device=CPU)

    @staticmethod
    def backward(ctx: Any, token: Tensor | None) -> tuple[Tensor | None, ...]:
        task, received = torch._C._current_graph_task_id(), ctx.received
        if task not in received.gradients:
            received.gradients[task] = list(_gradients(ctx, received.cotangents[task]))
        elif not keeps_graph():
            _free(ctx)
        found = received.gradients[task]
        mine = [found[k] for k in ctx.numbers]
        for k in ctx.numbers:  # what nobody else holds need not be copied
            found[k] = None
        return None, None, None, None, None, *mine


class _Exit(torch.autograd.Function):
    """Results that have a gradient for the same arguments."""

    @staticmethod
    def forward(
        ctx: Any,
        received: _Received,
        numbers: Sequence[int],
        results: Sequence[Tensor],
        *tokens: Tensor,
    ) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        ctx.received, ctx.numbers, ctx.entries = received, numbers, len(tokens)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor | None) -> tuple[None, ...]:
        ctx.received.add(ctx.numbers, cotangents)
        return (None,) * (3 + ctx.entries)


# ------------------------------------------------------------------------- backward


_Call = tuple[OnGraph, Signature, Origin, Sequence[Tensor]]
"""A call of a compiled program, with its inputs."""


def _keep(ctx: Any, call: _Call, out: Mapping[str, Tensor]) -> None:
    """What a node of autograd needs for `_gradients`, besides what it saves; `out` is what @forward
    gave."""
    ctx.set_materialize_grads(False)
    ctx.graph, ctx.signature, ctx.origin, inputs = call
    signature = ctx.signature
    ctx.wanted = [x.requires_grad for x in inputs]
    ctx.own, ctx.spent = (), False
    if signature.zeros:
        ctx.flat = [(inputs[k].shape, inputs[k].dtype) for k in signature.zeros]
    if signature.shown:  # by other names: a result knows its node of autograd
        shown = [(j, out[signature.results[j]].detach()) for j in signature.shown]
        ctx.shown = [(j, x, x._version) for j, x in shown]


def _free(ctx: Any) -> None:
    """As the engine frees what is saved."""
    ctx.origin = None
    if ctx.signature.shown:
        ctx.shown = ()


def _kept(ctx: Any, cotangents: Sequence[Tensor | None]) -> Sequence[Tensor] | None:
    """What the call has kept; None where the user has edited a result that eager does not keep, or
    where a backward failed that has written over it.

    Raises:
        RuntimeError: a tensor that eager keeps as well has been edited, or an argument; or all are
            freed.
    """
    if ctx.origin is not None:
        _check_unkept(ctx, cotangents)
    try:
        kept = ctx.saved_tensors
        return None if ctx.spent else kept
    except RuntimeError:
        shown = ctx.shown if ctx.signature.shown else ()
        edited = {j for j, x, version in shown if x._version != version}
        given = [i for i, _ in ctx.signature.seen if cotangents[i] is not None]
        if not edited and all(i in ctx.signature.known for i in given):
            kept = _not_read(ctx)
            if kept is not None:
                return kept
        if not edited or any(edited & ctx.signature.reads[i] for i in given):
            if ctx.origin is not None:
                ctx.origin.check()
            raise
        return None


def _asked(ctx: Any) -> list[int]:
    """The inputs whose gradients the backward that runs is for; those of other pieces of the call
    may be."""
    own = getattr(ctx, "numbers", range(len(ctx.wanted)))
    asked = [k for k in range(len(ctx.wanted)) if k not in own]
    for k, (node, _) in zip(own, ctx.next_functions, strict=True):
        if node is None:
            continue
        try:
            if torch._C._will_engine_execute_node(node):
                asked.append(k)
        except RuntimeError:  # said of a leaf that `torch.autograd.grad` is given
            asked.append(k)
    return asked


def _not_read(ctx: Any) -> Sequence[Tensor] | None:
    """What the call has kept, some of it edited that no gradient which is asked for is computed
    from; None where one may be."""
    signature, numbers = ctx.signature, list[Tensor]()
    if hooks(True) is not None or not hasattr(torch._C._autograd.SavedTensor, "unpack"):
        return None
    edited = set[str]()
    for name, x in zip(signature.kept, ctx._raw_saved_tensors, strict=True):
        try:
            numbers.append(x.unpack())
        except RuntimeError:
            edited.add(name)
            numbers.append(x.data)
    if any(edited & signature.read_for[k] for k in _asked(ctx)):
        return None
    return numbers


def _check_unkept(ctx: Any, cotangents: Sequence[Tensor | None]) -> None:
    """
    Raises:
        RuntimeError: an argument or a result has been edited that eager's backward reads, be it
            that ours does not.
    """
    signature = ctx.signature
    if not signature.has_unkept:
        return
    given = [i for i, _ in signature.seen if cotangents[i] is not None]
    ctx.origin.check_read(given, lambda: _asked(ctx))
    shown = [s for s in ctx.shown if s[0] in signature.unkept] if signature.unkept else []
    if signature.updated:
        shown += ctx.origin.updated()
    for j, x, version in shown:
        if x._version != version and any(j in signature.surely[i] for i in given):
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an "
                f"inplace operation: {signature.results[j]} of a compiled call is at version "
                f"{x._version}, and the call left it at version {version}"
            )


def _gradients(ctx: Any, cotangents: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
    """The gradients of all arguments of a call; `ctx` is a node with what `_keep` has left."""
    graph, signature = ctx.graph, ctx.signature
    kept = _kept(ctx, cotangents)
    if (
        kept is None
        or torch.is_grad_enabled()
        or (signature.linked and ctx.origin.asks_for_torch())
    ):
        return _by_torch(ctx, cotangents)
    ctx.origin.begins_backward(cotangents)
    values = dict(zip(signature.kept, kept, strict=True)) | graph.rows
    missing = False
    for i, name in signature.seen:
        d = cotangents[i]
        if d is None:
            missing = True
        elif name is not None:
            values[name] = d
    if missing:
        _fill_in(values, graph, signature)
    spent = () if keeps_graph() else ctx.own
    ctx.spent = bool(spent)
    try:
        out = run_phase(graph.phases["backward"], values, spent) if signature.gives else {}
    except Elsewhere:  # by the user's hooks on saved tensors
        return _by_torch(ctx, cotangents)
    except RuntimeError:
        if all(d is None or _has_memory(d) for d in cotangents):
            raise
        return _by_torch(ctx, cotangents)
    gradients = [None if n is None else out[n] for n in signature.gradients]
    if _are_doubtful(ctx.origin, cotangents, gradients, missing):
        return _by_torch(ctx, cotangents)
    if not keeps_graph():
        _free(ctx)
    if missing or signature.zeros:
        _as_torch(gradients, signature, cotangents, ctx)
    return gradients


# whether what is saved for backward is needed after the backward that runs
keeps_graph = getattr(torch._C._autograd, "_get_current_graph_task_keep_graph", lambda: True)
# the user's hooks on what is saved, who may keep it; None where there are none
hooks = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", lambda _: True)


def _by_torch(ctx: Any, cotangents: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
    if ctx.origin is None:
        raise RuntimeError(
            "a compiled call is differentiated for a second time: give retain_graph=True or "
            "create_graph=True to the first backward"
        )
    return ctx.origin.gradients(cotangents, ctx.wanted)


def _has_memory(x: Tensor) -> bool:
    """Not so with the cotangents of `is_grads_batched`."""
    try:
        x.data_ptr()
    except RuntimeError:
        return False
    return True


def _are_doubtful(
    origin: Origin,
    cotangents: Sequence[Tensor | None],
    gradients: Sequence[Tensor | None],
    missing: bool,
) -> bool:
    """Whether gradients are not finite, and those of eager may be. A zero that was filled in for a
    missing cotangent may have met an infinity, where eager has nothing. And the order of compiled
    sums and products is one for finite numbers: a cotangent that is none, at a row that eager
    gathers nothing from, may have met the 0 of an empty group."""
    if missing:
        return not _are_finite(gradients)
    few, many = cotangents, gradients
    if sum(d.numel() for d in cotangents if d is not None) > _CALL:
        few, many = sorted((cotangents, gradients), key=_effort)
    if _are_finite(few) or _are_finite(many):
        return False
    return origin.is_as_torch_alone()


_CALL = 4096
"""So many numbers are added up in the time that a call of torch takes."""


def _effort(tensors: Sequence[Tensor | None]) -> int:
    return sum(_CALL + x.numel() for x in tensors if x is not None)


def _are_finite(tensors: Sequence[Tensor | None]) -> bool:
    """Whether all numbers are; not so either where only their sum is too large."""
    return all(x is None or math.isfinite(x.sum()) for x in tensors)


def _fill_in(values: dict[str, Tensor], graph: OnGraph, signature: Signature) -> None:
    """Zeros for the cotangents that there are none of."""
    forward = graph.phases["forward"]
    cotangent = {signature.results[i]: name for i, name in signature.seen}
    for b in forward.phase.outputs:
        name = cotangent.get(b.name)
        if name is not None and name not in values:
            shape = b.row if b.domain is None else (forward.rows[b.slot], *b.row)
            values[name] = torch.zeros(shape, dtype=TORCH[b.dtype], device=CPU)


def _as_torch(
    gradients: list[Tensor | None],
    signature: Signature,
    cotangents: Sequence[Tensor | None],
    ctx: Any,
) -> None:
    """None for an argument that no result with a cotangent is attached to, and zeros for one that
    is attached without a derivative (through `sign`, say)."""
    given = {i for i, _ in signature.seen if cotangents[i] is not None}
    for k, sources in enumerate(signature.sources):
        if not sources & given:
            gradients[k] = None
    if signature.zeros:
        for k, (shape, dtype) in zip(signature.zeros, ctx.flat, strict=True):
            if signature.sources[k] & given:
                gradients[k] = torch.zeros(shape, dtype=dtype, device=CPU)


NODES: tuple[type[torch.autograd.Function], ...] = (CompiledCall, _Entry, _Exit)
"""The nodes of autograd that calls are."""
