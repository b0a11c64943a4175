"""What Dynamo traces in place of DGL's own functions of graphs while one of our captures runs: the
functions of the same name in `gnnc.dgl`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import torch

import gnnc.dgl

from ..active import clone, is_active
from . import graphs

_installed = False


def install() -> None:
    """Registers graphs and functions once DGL has been imported; before that there is nothing to
    do."""
    global _installed
    real = sys.modules.get("dgl")
    if _installed or real is None or not hasattr(real, "heterograph") or _is_ours(real):
        return
    _installed = True
    graphs.install()
    for original, ours in _pairs(real):
        substitute = _substitute(clone(original), ours)
        torch._dynamo.substitute_in_graph(original, skip_signature_check=True)(substitute)


def _is_ours(module: Any) -> bool:
    """Whether `import dgl` has found `gnnc.dgl`."""
    return module is gnnc.dgl


def _pairs(real: Any) -> Iterator[tuple[FunctionType, Callable[..., Any]]]:
    """DGL's functions, and those of `gnnc.dgl` that do the same."""
    seen: set[int] = set()
    for theirs, ours in ((real, gnnc.dgl), (real.ops, gnnc.dgl.ops)):
        for name, function in inspect.getmembers(theirs, inspect.isfunction):
            mine = vars(ours).get(name)
            if inspect.isfunction(mine) and id(function) not in seen:
                seen.add(id(function))
                yield function, mine


def _substitute(original: FunctionType, ours: Callable[..., Any]) -> Callable[..., Any]:
    def substitute(*args: Any, **kwargs: Any) -> Any:
        return ours(*args, **kwargs) if is_active() else original(*args, **kwargs)

    return substitute
