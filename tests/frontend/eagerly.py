"""One comparison for programs: what a function gets of a compiled module is what it gets of the
module itself, be it a tensor, None, a flag or an exception."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

import gnnc

from .models import close


def caught(run: Callable[[nn.Module], Any], model: nn.Module) -> Any:
    """What `run` gives, or the exception that it raises."""
    try:
        return run(model)
    except Exception as error:
        return error


def same(a: Any, b: Any) -> bool:
    if isinstance(a, Exception) or isinstance(b, Exception):
        return type(a) is type(b)
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        if a.shape != b.shape or a.dtype != b.dtype or a.device != b.device:
            return False
        if a.is_sparse != b.is_sparse:
            return False
        return a.is_meta or close(a.to_dense().detach(), b.to_dense().detach())
    return type(a) is type(b) and bool(a == b)


def assert_as_eager(make: Callable[[], nn.Module], run: Callable[[nn.Module], Any]) -> nn.Module:
    """`run` gives the same of a compiled model as of its own; returns the compiled one."""
    torch.manual_seed(0)
    eager = make()
    compiled = gnnc.compile(copy.deepcopy(eager))
    wanted, got = caught(run, eager), caught(run, compiled)
    pairs = list(zip(tree_leaves(wanted), tree_leaves(got), strict=False))
    different = [(a, b) for a, b in pairs if not same(a, b)]
    assert not different, f"eager and compiled: {different[0]}"
    assert len(tree_leaves(wanted)) == len(tree_leaves(got))
    return compiled


def gradients(model: nn.Module) -> dict[str, Tensor | None]:
    return {name: p.grad for name, p in model.named_parameters()}
