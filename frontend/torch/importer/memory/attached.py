"""What each result of a graph is attached to, as autograd sees it.

Dynamo computes on fake tensors, with the graph of autograd that the user's code would leave: from a
result's node there one gets to the placeholders that have a gradient of it, be it 0, and past other
results that it is made of. That is torch's own answer: an operation without a derivative, a block
under `no_grad` and an operand that only counts by its shape are what they are eagerly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, fx
from xdsl.dialects.func import FuncOp

from .....passes.inter.autodiff import made_of
from ..binding import Attached, FromTensor, RowsBinding
from ..errors import NoRule
from ..values.sizes import example


class Unknown(Exception):
    """The fake tensors do not tell."""


def attachments(
    placeholders: Sequence[fx.Node], results: Sequence[Any], views: Sequence[fx.Node] = ()
) -> list[Attached]:
    """What each result is attached to. `views` are returned as well, and made of results or
    arguments by torch.

    Raises:
        NoRule: something is made of one of the views, whose own gradient would not show it.
        Unknown: a tensor has been edited since, so that it is found no more where it was used, or
            has no place in the graph of autograd.
    """
    if not all(isinstance(node, fx.Node) for node in results):
        raise Unknown  # items of a node that is returned as a whole
    origins = _Origins(placeholders)
    places: dict[Any, list[int]] = {}
    for i, node in enumerate(results):
        if (edge := _edge(example(node))) is not None:
            places.setdefault(edge, []).append(i)
    for k, node in enumerate(views, len(results)):
        edge = _edge(example(node))
        if edge is not None and edge not in places and edge not in origins.edges:
            places[edge] = [k]
    found = [origins.of(i, example(node), places) for i, node in enumerate([*results, *views])]
    between = {i for a in found for i in a.results if i >= len(results)}
    if between:
        view = views[min(between) - len(results)]
        raise NoRule(f"{view.name} is returned, and is a view that another result is made of")
    return found[: len(results)]


def is_made_of(placeholders: Sequence[fx.Node], node: fx.Node, placeholder: int) -> bool:
    """Whether a tensor is known to have a gradient for no other than one placeholder."""
    try:
        (found,) = attachments(placeholders, [node])
    except Unknown:
        return False
    return found.placeholders <= {placeholder}


def attachments_of_program(
    func: FuncOp, rows: Sequence[RowsBinding], results: int
) -> list[Attached]:
    """The same for the first results of a program (updates come after these), by its operations,
    which follow edits: for where torch's own answer is not known."""
    placeholder = {
        r.name: r.source.placeholder
        for r in rows
        if r.needs_grad and isinstance(r.source, FromTensor)
    }
    found = made_of(func)[:results]
    positions = [frozenset(placeholder[n] for n in names if n in placeholder) for names, _ in found]
    return [
        Attached(mine, frozenset(i for i in others if i < results and positions[i]))
        for mine, (_, others) in zip(positions, found, strict=True)
    ]


def _edge(x: Any) -> tuple[Any, int] | None:
    """The place of a tensor in the graph of autograd: a node and the number of its output."""
    if not isinstance(x, Tensor) or x.grad_fn is None:
        return None
    return x.grad_fn, x.output_nr


class _Origins:
    """The placeholders by their places in the graph of autograd: one tensor may come as several."""

    def __init__(self, placeholders: Sequence[fx.Node]) -> None:
        self.edges: dict[tuple[Any, int], list[int]] = {}
        self.leaves: dict[int, list[int]] = {}
        for i, node in enumerate(placeholders):
            x = example(node)
            if not isinstance(x, Tensor) or not x.requires_grad:
                continue
            if (edge := _edge(x)) is None:
                self.leaves.setdefault(id(x), []).append(i)
            else:
                self.edges.setdefault(edge, []).append(i)

    def of(self, own: int, x: Any, places: dict[Any, list[int]]) -> Attached:
        if not isinstance(x, Tensor) or not x.requires_grad:
            return Attached()
        if (start := _edge(x)) is None:
            return Attached(frozenset(self.leaf(x)))
        found: set[int] = set()
        passed: set[int] = set()
        seen, todo = {start}, [start]
        while todo:
            edge = todo.pop()
            if edge != start:
                passed.update(places.get(edge, ()))
            if edge in self.edges:
                found.update(self.edges[edge])
                continue
            node, _ = edge
            if hasattr(node, "variable"):
                found.update(self.leaf(node.variable))
            for following in node.next_functions:
                if following[0] is not None and following not in seen:
                    seen.add(following)
                    todo.append(following)
        if not found:  # made of a view that was made under no_grad: autograd ends at it
            raise Unknown
        return Attached(frozenset(found), frozenset(passed - {own}))

    def leaf(self, x: Tensor) -> list[int]:
        if id(x) not in self.leaves:
            raise Unknown
        return self.leaves[id(x)]
