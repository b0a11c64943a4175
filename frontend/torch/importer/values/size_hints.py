"""The sizes of the first graph, in which Dynamo traced a program: hints of its symbols."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from ..binding import Imported


def first_sizes(imported: Imported, examples: Sequence[Any]) -> dict[str, int]:
    """The rows of each set argument in the example arguments, by name; 0 where only running the
    program would tell. No guard is added: another graph may have any sizes."""
    known = [_hinted(x) for x in examples]
    return {s.name: max(0, s.size(known)) for s in imported.sets}


def _hinted(x: Any) -> Any:
    """What a size expression reads of an argument, with numbers in place of symbols."""
    if isinstance(x, Tensor):
        return SimpleNamespace(shape=[_number(n) for n in x.shape])
    return _number(x) if isinstance(x, torch.SymInt) else x


def _number(n: int | torch.SymInt) -> int:
    hint = n.node.hint if isinstance(n, torch.SymInt) else n
    return 0 if hint is None else int(hint)
