"""What eager's backward reads of a graph's results.

Between a call and its backward the user may edit what eager has not saved. A compiled call keeps
other tensors than eager does; whether an edit of one is the user's right, the fake tensors' graph
of autograd tells: its nodes know what they save.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
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
    ends = {_function(node) for node in placeholders if node not in edited}
    found: list[Reads] = []
    for node in results:
        try:
            saved = _saved(_function(node), ends)
        except _Edited:
            found.append(Reads())
        else:
            surely = frozenset(j for j, m in enumerate(memory) if m is not None and m in saved)
            given = (i for i, n in enumerate(placeholders) if n not in edited)
            read = frozenset(i for i in given if _has_history(placeholders[i], saved))
            unknown = (j for j, m in enumerate(memory) if m is None)
            found.append(Reads(surely.union(unknown), surely, read))
    return found


def _has_history(placeholder: fx.Node, saved: Set[int | None]) -> bool:
    """Whether what a placeholder holds is among what is saved, and has a gradient. (Others may be
    written to by what tells no version, as BatchNorm does with its running statistics.)"""
    x = example(placeholder)
    return isinstance(x, Tensor) and x.requires_grad and storage(x) in saved


class _Edited(Exception):
    """Something was saved and has been edited since, so that autograd does not show it."""


def _function(node: fx.Node | None) -> Any:
    return None if node is None else getattr(example(node), "grad_fn", None)


def _saved(start: Any, ends: set[Any]) -> set[int | None]:
    """The memory that a node of autograd reads, and those behind it up to `ends`."""
    found: set[int | None] = set()
    seen, todo = {None, *ends}, [start]
    while todo:
        function = todo.pop()
        if function in seen:
            continue
        seen.add(function)
        todo.extend(following for following, _ in function.next_functions)
        for name in dir(function):
            if not name.startswith("_saved_"):
                continue
            try:
                value = getattr(function, name)
            except RuntimeError as error:
                raise _Edited from error
            found |= {storage(x) for x in tensors_in(value)}
    return found
