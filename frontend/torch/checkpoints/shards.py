"""What of the state of a model or an optimizer is one rank's rows of a sharded parameter.

A checkpoint has all rows, in the order of the whole graph: another number of ranks may go on from
it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import Optimizer

from ....runtime.ranks.communicator import Communicator
from ..ranks import cut_tensors
from ..ranks.cut_tensors import CutTensor, NodePart
from ..ranks.row_exchange import brought

Path = tuple[Any, ...]
"""The keys that lead to a tensor of a state."""


def described(x: Any, state: Any) -> Any:
    """A state with what all ranks have alike of such rows in their place."""
    return _with(x, state, lambda y, cut: f"rows of {y.dtype} {list(cut.shape)}")


def gathered(x: Any, state: Any, communicator: Communicator) -> Any:
    """On rank 0 a state with all rows, on the CPU; all ranks call it."""

    def all_rows(y: Tensor, cut: CutTensor) -> Tensor | None:
        return brought(y, _owned(cut), cut.shape[0], communicator)

    return _with(x, state, all_rows)


def own(x: Any, state: Any) -> Any:
    """A state with all rows as one with those of this rank, for an object that has these."""

    def some_rows(y: Tensor, cut: CutTensor) -> Tensor:
        return y.index_select(0, torch.from_numpy(_owned(cut)).to(y.device))

    return _with(x, state, some_rows)


def _owned(cut: CutTensor) -> NDArray[np.int64]:
    assert isinstance(cut.part, NodePart)
    return cut.part.owned


def _with(x: Any, state: Any, new: Callable[[Tensor, CutTensor], Any]) -> Any:
    """A state of an object with something else in the place of each tensor with such rows."""
    found = list(_found(x, state))
    if not found:
        return state
    out = copy.copy(state)
    copies: dict[Path, Any] = {(): out}
    for path, y, cut in found:
        for i in range(1, len(path)):
            if path[:i] not in copies:
                above = copies[path[: i - 1]]
                above[path[i - 1]] = copies[path[:i]] = copy.copy(above[path[i - 1]])
        copies[path[:-1]][path[-1]] = new(y, cut)
    return out


def _found(x: Any, state: Any) -> Iterator[tuple[Path, Tensor, CutTensor]]:
    """The tensors of a state of an object that are rows of a sharded parameter, or are kept for
    each of its numbers, in an order that all ranks have."""
    if isinstance(x, nn.Module):
        for name, p in x.named_parameters(remove_duplicate=False):
            cut = cut_tensors.of(p)
            if cut is not None and isinstance(state.get(name), Tensor):
                yield (name,), state[name], cut
    elif isinstance(x, Optimizer) and isinstance(state.get("state"), dict):
        parameters = (p for group in x.param_groups for p in group["params"])
        for i, p in enumerate(parameters):
            cut, kept = cut_tensors.of(p), state["state"].get(i)
            for name in sorted(kept) if cut is not None and isinstance(kept, dict) else ():
                y = kept[name]
                if isinstance(y, Tensor) and y.shape in (p.shape, cut.shape):
                    yield ("state", i, name), y, cut
