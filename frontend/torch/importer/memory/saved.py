"""What eager's backward reads of a graph's results.

Between a call and its backward the user may edit what eager has not saved. A compiled call keeps
other tensors than eager does; whether an edit of one is the user's right, the fake tensors' graph
of autograd tells: its nodes know what they save.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from torch import Tensor, fx

from ..binding import Reads
from ..values.sizes import example, storage, tensors_in


def read_in_backward(
    placeholders: Sequence[fx.Node], results: Sequence[fx.Node | None], edited: Set[fx.Node]
) -> list[Reads]:
    """What eager's backward of each result reads, as the fake tensors tell. Results that are
    `edited` placeholders are what the graph leaves there."""
    memory = [None if node is None else storage(example(node)) for node in results]
    given = {i: node for i, node in enumerate(placeholders) if node not in edited}
    ends = _ends(given)
    found: list[Reads] = []
    for node in results:
        try:
            saved = _saved(_function(node), ends)
        except _Edited:
            found.append(Reads())
        else:
            surely = frozenset(j for j, m in enumerate(memory) if m is not None and m in saved)
            read = {
                i: frozenset(saved[storage(example(n))])
                for i, n in given.items()
                if _has_history(n, saved)
            }
            unknown = (j for j, m in enumerate(memory) if m is None)
            found.append(Reads(surely.union(unknown), surely, read))
    return found


def _has_history(placeholder: fx.Node, saved: Mapping[int | None, Set[int]]) -> bool:
    """Whether what a placeholder holds is among what is saved, and has a gradient. (Others may be
    written to by what tells no version, as BatchNorm does with its running statistics.)"""
    x = example(placeholder)
    return isinstance(x, Tensor) and x.requires_grad and storage(x) in saved


class _Edited(Exception):
    """Something was saved and has been edited since, so that autograd does not show it."""


def _function(node: fx.Node | None) -> Any:
    return None if node is None else getattr(example(node), "grad_fn", None)


def _ends(given: Mapping[int, fx.Node]) -> dict[Any, set[int]]:
    """The nodes of autograd that tensors come from, with the numbers of these. Leaves stand for
    their own, which only what is computed of them leads to: to ask for it takes a view, of which
    torch asks whether there is one row."""
    ends: dict[Any, set[int]] = {}
    for i, node in given.items():
        if (function := _function(node)) is not None:
            ends.setdefault(function, set()).add(i)
        elif isinstance(x := example(node), Tensor) and x.requires_grad:
            ends.setdefault(id(x), set()).add(i)
    return ends


def _saved(start: Any, ends: Mapping[Any, set[int]]) -> dict[int | None, set[int]]:
    """The memory that a node of autograd reads, and those behind it up to `ends`, with the numbers
    of the ends that it does so for."""
    found: dict[int | None, set[int]] = {}
    leads: dict[Any, set[int]] = {None: set(), **ends}
    todo = [start]
    while todo:
        function = todo[-1]
        if function in leads:
            todo.pop()
            continue
        if type(function).__name__ == "AccumulateGrad":
            leads[function] = leads.get(id(function.variable), set())
            continue
        following = [f for f, _ in function.next_functions]
        if ahead := [f for f in following if f not in leads]:
            todo.extend(ahead)
            continue
        leads[function] = set[int]().union(*(leads[f] for f in following))
        for name in dir(function):
            if not name.startswith("_saved_"):
                continue
            try:
                value = getattr(function, name)
            except RuntimeError as error:
                raise _Edited from error
            for x in tensors_in(value):
                found.setdefault(storage(x), set()).update(leads[function])
    return found
