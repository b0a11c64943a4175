"""What eager's backward reads of a graph's results.

Between a call and its backward the user may edit what eager has not saved. A compiled call keeps
other tensors than eager does; whether an edit of one is the user's right, the fake tensors' graph
of autograd tells: its nodes know what they save.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import fx

from ..values.sizes import example, storage, tensors_in


def read_in_backward(
    placeholders: Sequence[fx.Node], results: Sequence[fx.Node | None]
) -> list[frozenset[int] | None]:
    """For each result the numbers of those in whose memory eager's backward of it reads; None where
    the fake tensors do not tell."""
    memory = [None if node is None else storage(example(node)) for node in results]
    ends = {_function(node) for node in placeholders}
    found: list[frozenset[int] | None] = []
    for node in results:
        try:
            saved = _saved(_function(node), ends)
        except _Edited:
            found.append(None)
        else:
            numbers = (j for j, m in enumerate(memory) if m is None or m in saved)
            found.append(frozenset(numbers))
    return found


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
