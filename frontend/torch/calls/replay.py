"""A call of a compiled program run again in torch, to be differentiated there.

A compiled backward is not differentiable itself. Where its result is differentiated again (forces
that enter a loss, a penalty on gradients), or where somebody wants the gradient between two results
of one call, torch runs the graph that the program was made of on the arguments of the call, and
gives gradients of any order. Dropout draws the mask of the compiled call.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, fx
from torch.utils._pytree import tree_leaves, tree_map_only

from ....dialects.meaning import philox
from ..importer.binding import Imported, Mask, Result, ResultBinding
from ..importer.calls.canonical import canonical
from ..importer.errors import location
from ..importer.memory.aliases import Aliases
from ..importer.memory.effects import ENTRIES_DROPOUT, written
from ..importer.parts.live import live_nodes
from ..importer.values.sizes import example, storage

Given = Mapping[int, Tensor]
"""Results, by number, in whose place others are taken where they are read."""


class Replay:
    """A graph of Dynamo's, to be run again on the arguments of a call of its program."""

    def __init__(self, graph: fx.GraphModule, imported: Imported) -> None:
        self.graph = graph
        self.imported = imported
        given = [n for n in graph.graph.nodes if n.op == "placeholder"]
        self.tensors = [i for i, n in enumerate(given) if isinstance(example(n), Tensor)]
        self.leaves = tree_leaves(imported.outputs)
        by_name = {n.name: n for n in graph.graph.nodes}
        self.nodes = [None if name is None else by_name[name] for name in imported.nodes]
        self.all = set(graph.graph.nodes)
        self.needed = live_nodes(graph.graph, Aliases(graph.graph))
        """What the program computes, too: the rest raises nothing in its call, nor afterwards. (Nor
        does it draw: a backward draws no random numbers.)"""
        self.edited = [given[u.placeholder] for u in imported.updates]

    def begins_backward(self, cotangents: Sequence[Tensor | None]) -> None:
        """Called before the program's backward runs, with the gradients of the results."""

    def can_repeat(self) -> bool:
        """Whether the graph can be run again, with the same masks."""
        return None not in self.imported.masks.values()

    def outputs(self, args: Sequence[Any], key: Tensor | None) -> Any:
        """What the graph returns. It runs as it is: also its edits are made."""
        return _Run(self.graph, self.all, self.imported.masks, key).run(*args)

    def gradients(
        self,
        args: Sequence[Any],
        key: Tensor | None,
        cotangents: Mapping[int, Tensor],
        wanted: Collection[int],
        given: Given,
    ) -> tuple[dict[int, Tensor | None], dict[int, Tensor | None]]:
        """The gradients of the placeholders that are wanted and of the results that are given;
        cotangents, of results by number, have the rows in front. With gradients enabled they can be
        differentiated again.

        Raises:
            RuntimeError: the graph has a dropout whose mask cannot be drawn again.
        """
        further = torch.is_grad_enabled()
        with torch.enable_grad():
            # other names for the same tensors: one may have been computed from another
            edited = {u.placeholder for u in self.imported.updates}
            inputs = {i: args[i].view_as(args[i]) for i in wanted}
            others = {i: x.view_as(x) for i, x in given.items()}
            again = [inputs.get(i, x) for i, x in enumerate(args)]
            again = [x.clone() if i in edited else x for i, x in enumerate(again)]
            results = self.run(again, key, others)
            bindings = [*self.imported.results, *(u.result for u in self.imported.updates)]
            outputs = [rows_first(bindings[i], results[i], d.shape) for i, d in cotangents.items()]
            pairs = [
                (y, d) for y, d in zip(outputs, cotangents.values(), strict=True) if y.requires_grad
            ]
            found: Sequence[Tensor | None] = [None] * (len(inputs) + len(others))
            if pairs and len(found) > 0:
                found = torch.autograd.grad(
                    [y for y, _ in pairs],
                    [*inputs.values(), *others.values()],
                    [d for _, d in pairs],
                    create_graph=further,
                    allow_unused=True,
                )
        placeholders = dict(zip(inputs, found[: len(inputs)], strict=True))
        return placeholders, dict(zip(others, found[len(inputs) :], strict=True))

    def results(self, args: Sequence[Any], key: Tensor | None) -> dict[int, Tensor]:
        """The results by number, as the call left them, with their history."""
        edited = {u.placeholder for u in self.imported.updates}
        with torch.enable_grad():
            return self.run([x.clone() if i in edited else x for i, x in enumerate(args)], key, {})

    def run(self, args: Sequence[Any], key: Tensor | None, given: Given) -> dict[int, Tensor]:
        """The results and the updates by number, each computed from those given where it is made of
        these. (An edit of an argument is one of the tensor in `args`.)"""
        masks, taken = self.imported.masks, dict[fx.Node, dict[fx.Node, Tensor]]()
        if given:
            finder = _Run(self.graph, self.needed, masks, key)
            edited = {u.placeholder for u in self.imported.updates}
            with torch.no_grad():
                finder.run(*(x.clone() if i in edited else x for i, x in enumerate(args)))
            for i, x in given.items():
                taken.setdefault(finder.last_of(self.node(i)), {})[self.node(i)] = x
        run = _Run(self.graph, self.needed, masks, key, taken)
        values = zip(self.leaves, tree_leaves(run.run(*args)), strict=True)
        results = {x.number: value for x, value in values if isinstance(x, Result)}
        own = {i: run.own[n] for i, n in enumerate(self.nodes) if n is not None}
        results.update((i, x) for i, x in own.items() if i in given or i not in results)
        first = len(self.imported.results)
        updates = enumerate(self.imported.updates)
        return results | {first + k: args[u.placeholder] for k, u in updates}

    def node(self, result: int) -> fx.Node:
        """The node of a result that is returned, or of a placeholder that is updated."""
        first = len(self.imported.results)
        node = self.nodes[result] if result < first else self.edited[result - first]
        assert node is not None, result
        return node


class _Run(fx.Interpreter):
    """Runs these nodes of a graph with the masks of a compiled call. After each node of `taken`
    there are other tensors in the place of some that nodes gave, and of the views of these."""

    def __init__(
        self,
        graph: fx.GraphModule,
        nodes: Collection[fx.Node],
        masks: Mapping[str, Mask | None],
        key: Tensor | None,
        taken: Mapping[fx.Node, Mapping[fx.Node, Tensor]] | None = None,
    ) -> None:
        super().__init__(graph, garbage_collect_values=False)
        self.nodes, self.masks, self.key, self.taken = nodes, masks, key, taken or {}
        self.own: dict[fx.Node, Any] = {}

    def run_node(self, n: fx.Node) -> Any:
        if n not in self.nodes:
            return None
        x = self._dropout(n) if n.name in self.masks else super().run_node(n)
        self.own[n] = x
        for node, other in self.taken.get(n, {}).items():
            old = self.own[node]
            for m, y in self.env.items():
                self.env[m] = _instead(y, old, other)
            x = _instead(x, old, other)
        return x

    def last_of(self, node: fx.Node) -> fx.Node:
        """The node, or the last one that edits its memory: after it, the tensor is edited no
        more."""
        memory = storage(self.own[node])
        *_, last = (
            n
            for n in self.own
            if n is node or any(storage(self.own[base]) == memory for base in written(n))
        )
        return last

    def _dropout(self, n: fx.Node) -> Tensor:
        mask, call = self.masks[n.name], canonical(n)
        if mask is None or self.key is None or call is None:
            place = location(n)
            raise RuntimeError(
                f"{n.name} drops numbers by a mask that only the compiled program can draw, so "
                f"that torch cannot run it again{f' ({place})' if place else ''}"
            )
        p, key = float(call.arguments["p"]), int(self.key)
        if call.op == ENTRIES_DROPOUT:
            row, col, x = (self.env[call.arguments[name]] for name in ("row", "col", "value"))
            return x * kept_entries(x, row, col, p, mask, key)
        x = self.env[call.arguments["input"]]
        factors = kept(x, p, mask, key)
        return x.mul_(factors) if call.edited else x * factors


def _instead(x: Any, old: Tensor, other: Tensor) -> Any:
    """What is to be read instead of `x` where `other` is instead of `old`: also of its views."""

    def of(y: Tensor) -> Tensor:
        if y is old:
            return other
        if y._base is not old:
            return y
        alike = other
        if other.stride() != old.stride():
            alike = torch.empty_strided(old.shape, old.stride(), dtype=old.dtype).copy_(other)
        offset = y.storage_offset() - old.storage_offset() + alike.storage_offset()
        return alike.as_strided(y.shape, y.stride(), offset)

    return tree_map_only(Tensor, of, x)


def kept(x: Tensor, p: float, mask: Mask, key: int) -> Tensor:
    """The factors of a compiled dropout of `x` with probability `p`: 0 or 1 / (1 - p)."""
    axis = mask.row_axis
    if axis is None:
        keep = torch.from_numpy(philox.keep(key, mask.site, p, range(1), x.numel()))
    else:
        before, after = x.shape[:axis], x.shape[axis + 1 :]
        rows, shape = x.shape[axis] // mask.merge, (*before, mask.merge, *after)
        keep = torch.from_numpy(philox.keep(key, mask.site, p, range(rows), math.prod(shape)))
        keep = keep.reshape(rows, *shape).movedim(0, axis + (not mask.within))
    return keep.reshape(x.shape).to(x.dtype) * (1.0 / (1.0 - p))


def kept_entries(x: Tensor, row: Tensor, col: Tensor, p: float, mask: Mask, key: int) -> Tensor:
    """The same of the entries of a matrix, by their rows and columns."""
    words = philox.word_at(key, mask.site, row.numpy(), col.numpy())
    keep = torch.from_numpy(words >= philox.threshold(p))
    return keep.to(x.dtype) * (1.0 / (1.0 - p))


def rows_first(b: ResultBinding, y: Tensor, shape: Sequence[int]) -> Tensor:
    """A result as the user's code makes it, in the shape that the program gives it."""
    if b.row_axis is not None:
        rows = y.shape[b.row_axis] // b.merge
        sizes = (rows, b.merge) if b.within else (b.merge, rows)
        y = y.unflatten(b.row_axis, sizes).movedim(b.row_axis + (not b.within), 0)
    return y.reshape(shape)
