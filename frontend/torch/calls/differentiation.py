"""How calls of a compiled program take part in torch's autograd."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Variable

from ....runtime.autograd import NODES, Origin, differentiated, keeps_graph
from ....runtime.program import OnGraph, Program
from ....runtime.signature import Signature
from ..capture.untraced import leave
from ..importer.binding import DropoutKey, FromTensor, RowsBinding
from ..importer.emit.arguments import argument_name
from .replay import Replay


class OfInferenceMode(RuntimeError):
    """An argument was made in inference mode: which operations take it, torch decides for each."""


def check_for_inference(
    args: Sequence[Any], placeholders: Iterable[int], names: Sequence[str]
) -> None:
    """
    Raises:
        OfInferenceMode: one of these arguments was made in inference mode.
    """
    for p in placeholders:
        if args[p].is_inference():
            raise OfInferenceMode(f"{argument_name(names[p])} was made in inference mode")


class Differentiation:
    """What does not change from call to call. `rows` are the arguments of a call."""

    def __init__(self, replay: Replay, program: Program, rows: Sequence[RowsBinding]) -> None:
        imported = replay.imported
        self.replay, self.imported, self.rows = replay, imported, rows
        wanted = {p for a in imported.attached for p in a.placeholders}
        read = [r.source.placeholder if isinstance(r.source, FromTensor) else None for r in rows]
        # placeholders that results are attached to, which the program does not read: after `rows`
        self.unread = sorted(wanted.difference(read))
        self.placeholders = [*read, *self.unread]
        axes = [r.source.row_axis if isinstance(r.source, FromTensor) else None for r in rows]
        self.axes = [*axes, *(None for _ in self.unread)]
        edited = {u.placeholder for u in imported.updates}
        self.watched = [i for i in replay.tensors if i not in edited]
        self.key = next((i for i, r in enumerate(rows) if isinstance(r.source, DropoutKey)), None)
        of = enumerate(imported.attached)
        self.made_of = {i: sorted(a.results) for i, a in of if a.placeholders and a.results}
        self.links = self._links()
        self.signature = self._signature(program)

    def _links(self) -> list[tuple[int, list[int]]]:
        """The results that others are part of, after these, and the edits of arguments that
        autograd is to know, which are made in this order too: what is made of them is linked to
        the arguments."""
        first = len(self.imported.results)
        edits = [first + k for k, u in enumerate(self.imported.updates) if u.recorded]
        links = [(i, self.made_of.get(i, [])) for i in sorted({*self.made_of, *edits})]
        return sorted(links, key=lambda link: len(link[1]))

    def _signature(self, program: Program) -> Signature:
        phases, imported = program.phases, self.imported
        results = [r.name for r in imported.results] + [u.result.name for u in imported.updates]
        inputs = [r.name for r in self.rows] + [f"unread{p}" for p in self.unread]
        backward = phases.get("backward")
        outputs = {b.name for b in phases["forward"].outputs}
        wanted = set[str]() if backward is None else {b.name for b in backward.inputs}
        gradients = (
            {}
            if backward is None
            else {program.gradients[b.name]: b.name for b in backward.outputs}
        )
        attached = {
            r: [n for n, p in zip(inputs, self.placeholders, strict=True) if p in a.placeholders]
            for r, a in zip(results, imported.attached, strict=True)
        }
        return Signature(
            inputs,
            results,
            [n for n in outputs if n not in results],
            gradients,
            {result: d for d, result in program.cotangents.items() if d in wanted},
            wanted,
            attached,
            [results[i] for i in self.made_of],
            [a.reads.perhaps for a in imported.attached],
            [a.reads.surely for a in imported.attached],
            [a.reads.placeholders for a in imported.attached],
            len(imported.updates),
            program.read_for,
        )

    def versions(self, args: Sequence[Any]) -> list[int]:
        """The versions of the arguments that stay as they are.

        Raises:
            OfInferenceMode: one has none.
        """
        try:
            return [args[i]._version for i in self.watched]
        except RuntimeError:
            check_for_inference(args, self.watched, self.imported.placeholders)
            raise

    def check_versions(self, args: Sequence[Any], before: Sequence[int]) -> None:
        """
        Raises:
            RuntimeError: an argument was changed since.
        """
        for i, old in zip(self.watched, before, strict=True):
            if (now := args[i]._version) != old:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an "
                    f"inplace operation: {argument_name(self.imported.placeholders[i])} is at "
                    f"version {now}, and the compiled call was made at version {old}"
                )

    def check_read(
        self,
        args: Sequence[Any],
        before: Sequence[int],
        results: Sequence[int],
        asked: Callable[[], Sequence[int]],
    ) -> None:
        """
        Raises:
            RuntimeError: an argument was changed since that eager's backward of these results
                reads for the gradients that are asked for.
        """
        changed = [
            i for i, old in zip(self.watched, before, strict=True) if args[i]._version != old
        ]
        if not changed:
            return
        wanted = {self.placeholders[k] for k in asked()}
        for j in results:
            read = self.imported.attached[j].reads.placeholders
            if any(not wanted.isdisjoint(read.get(i, ())) for i in changed):
                self.check_versions(args, before)

    def by_rows(
        self, found: Mapping[int, Tensor | None], wanted: Sequence[bool]
    ) -> list[Tensor | None]:
        """Gradients of placeholders as those of the arguments of a call, with the rows in front;
        of two arguments from one placeholder the first has the whole."""
        out: list[Tensor | None] = []
        left = dict(found)
        for p, axis, want in zip(self.placeholders, self.axes, wanted, strict=True):
            d = left.pop(p, None) if want and p is not None else None
            out.append(d.movedim(axis, 0) if d is not None and axis else d)
        return out

    def call(
        self, graph: OnGraph, args: Sequence[Any], rows: Sequence[Tensor]
    ) -> tuple[CallOrigin, Sequence[Tensor]]:
        """Run @forward: the results of the program. Those that are linked are to be replaced by
        what `CallOrigin.linked` makes of them."""
        origin = CallOrigin(self, args, rows)
        if self.unread:
            rows = [*rows, *(args[p] for p in self.unread)]
        return origin, differentiated(graph, self.signature, origin, rows)


class CallOrigin(Origin):
    """The arguments of one call, and where its backward stands."""

    __slots__ = ("args", "aside", "given", "key", "of", "task", "updates", "versions")

    def __init__(self, of: Differentiation, args: Sequence[Any], rows: Sequence[Tensor]) -> None:
        self.of, self.args = of, args
        self.key = None if of.key is None else rows[of.key]
        self.versions = of.versions(args)
        self.updates: list[tuple[int, Tensor, int]] = []
        self.aside: dict[str, Tensor] = {}
        # of a backward that asks for gradients between results: its number, and these results
        self.task: int | None = None
        self.given: dict[int, Tensor] = {}

    def check(self) -> None:
        """See `Origin`."""
        self.of.check_versions(self.args, self.versions)

    def check_read(self, results: Sequence[int], asked: Callable[[], Sequence[int]]) -> None:
        """See `Origin`."""
        self.of.check_read(self.args, self.versions, results, asked)

    def updated(self) -> Sequence[tuple[int, Tensor, int]]:
        """See `Origin`."""
        return self.updates

    def note_updates(self, given: Sequence[Any]) -> None:
        """All updates are done, of the arguments `given`."""
        imported = self.of.imported
        for j in self.of.signature.updated:
            # by another name: the argument knows its node of autograd now
            x = given[imported.updates[j - len(imported.results)].placeholder].detach()
            self.updates.append((j, x, x._version))

    def begins_backward(self, cotangents: Sequence[Tensor | None]) -> None:
        """See `Origin`."""
        self.of.replay.begins_backward(cotangents)

    def is_as_torch_alone(self) -> bool:
        """See `Origin`."""
        if not self.of.replay.can_repeat() or self.of.versions(self.args) != self.versions:
            return False
        tensors = (self.args[i] for i in self.of.replay.tensors)
        return all(isfinite(x.detach().sum()) for x in tensors if x.is_floating_point())

    def gradients(
        self, cotangents: Sequence[Tensor | None], wanted: Sequence[bool]
    ) -> list[Tensor | None]:
        """See `Origin`."""
        self.check()
        present = {i: d for i, d in enumerate(cotangents) if d is not None}
        given = self.given if self.asks_for_torch() else {}
        asked = {p for p, want in zip(self.of.placeholders, wanted, strict=True) if want}
        found, _ = self.of.replay.gradients(self.args, self.key, present, asked, given)
        return self.of.by_rows(found, wanted)

    # ------------------------------------------------------------ results made of other results

    def set_aside(self, name: str, result: Tensor) -> Tensor:
        """See `Origin`."""
        self.aside[name] = result
        return result.new_empty(()).expand(result.shape)

    def asks_for_torch(self) -> bool:
        """See `Origin`."""
        return self.task is not None and self.task == torch._C._current_graph_task_id()

    def linked(self, number: int, stand_in: Tensor, others: Sequence[Tensor]) -> Tensor:
        """The result of this number as a tensor that autograd knows to be made of `others`."""
        return LinkedResult.apply(self, number, _PROBE, stand_in, *others)

    def between(
        self, number: int, cotangent: Tensor, others: Sequence[Tensor | None]
    ) -> list[Tensor | None]:
        """The gradients of the results that this one is made of, each with the others held (None:
        it has been edited, and is held as it was). The backward of the call takes them as held
        too."""
        self.check()
        numbers = self.of.made_of[number]
        edited = {i for i, x in zip(numbers, others, strict=True) if x is None}
        again = {} if edited <= self.given.keys() else self.of.replay.results(self.args, self.key)
        given = {
            i: (self.given[i] if i in self.given else again[i]) if x is None else x
            for i, x in zip(numbers, others, strict=True)
        }
        if not self.asks_for_torch():
            self.task = torch._C._current_graph_task_id()
            Variable._execution_engine.queue_callback(self._forget)
        self.given.update(given)
        replay = self.of.replay
        _, found = replay.gradients(self.args, self.key, {number: cotangent}, (), given)
        return [found[i] for i in numbers]

    def _forget(self) -> None:
        self.task = None
        self.given.clear()


class LinkedResult(torch.autograd.Function):
    """A result of a call that other results of it are part of.

    A plain backward goes through the call as a whole. Where somebody looks at the gradient of one
    of the others (with hooks, `retain_grad` or as an input of `torch.autograd.grad`), it is
    computed in torch and handed on there. An other that was edited since is not what the result was
    made of: hooks from before the edit see the gradient of what it was then, and all else is asked
    of what came of the edit.
    """

    @staticmethod
    def forward(
        ctx: Any, origin: CallOrigin, number: int, probe: Tensor, stand_in: Tensor, *others: Tensor
    ) -> Tensor:
        ctx.origin, ctx.number, ctx.others = origin, number, others
        ctx.versions = [x._version for x in others]
        ctx.hooks = [_hooks_to_come(x) for x in others]
        ctx.set_materialize_grads(False)
        return origin.aside.pop(origin.of.signature.results[number])

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor | None) -> tuple[Tensor | None, ...]:
        origin, others = ctx.origin, ctx.others
        if origin is None:
            raise RuntimeError(
                "a compiled call is differentiated for a second time: give retain_graph=True to "
                "the first backward"
            )
        gradients: list[Tensor | None] = [None] * len(others)
        held = [x if x._version == v else None for x, v in zip(others, ctx.versions, strict=True)]
        if cotangent is not None and (any(ctx.hooks) or _is_looked_at(held)):
            gradients = origin.between(ctx.number, cotangent, held)
        if not keeps_graph():
            ctx.origin = ctx.others = ctx.hooks = None
        return None, None, None, cotangent, *gradients


def _hooks_to_come(x: Tensor) -> Mapping[int, Any] | None:
    """Where torch will keep the hooks that are registered on a tensor until it is edited: the
    tensor itself forgets them then."""
    if x._backward_hooks is None and x.grad_fn is not None:
        # as `Tensor.register_hook` does for the first of them
        x._backward_hooks = OrderedDict()
        x.grad_fn._register_hook_dict(x)
    return x._backward_hooks


# a leaf that nobody asks for: its node takes part in a backward for all leaves only
_PROBE = torch.zeros((), requires_grad=True)


def _is_looked_at(tensors: Sequence[Tensor | None]) -> bool:
    """Whether the gradient of one of these may be seen in the backward that runs, other than by
    hooks."""
    there = [x for x in tensors if x is not None]
    if not there:
        return False
    if not torch._C._will_engine_execute_node(torch.autograd.graph.get_gradient_edge(_PROBE).node):
        return True
    return any(x.retains_grad for x in there)


leave(LinkedResult.backward, *(node.backward for node in NODES))
