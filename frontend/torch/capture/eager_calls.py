"""Why a call runs eagerly: what its tensors tell, and what is in force around it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.fx._symbolic_trace import is_fx_symbolic_tracing
from torch.nn.modules.module import _global_backward_hooks as _DIFFERENTIATED
from torch.nn.modules.module import _global_backward_pre_hooks as _TO_BE_DIFFERENTIATED
from torch.nn.modules.module import _global_forward_hooks as _CALLED
from torch.nn.modules.module import _global_forward_pre_hooks as _TO_BE_CALLED

from ..sparse.matrix import is_sparse, why_not
from .devices import default_elsewhere, why_not_on


def why_eager(
    tensors: Sequence[Tensor], name_of: Callable[[Tensor], str] = lambda x: "a tensor"
) -> str | None:
    """A reason to run a call with these tensors eagerly, or None; `name_of` says what the user
    calls one."""
    if (device := default_elsewhere()) is not None:
        return f"runs eagerly while the default device is {device}: gnnc compiles for the CPU"
    if torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"):
        return "runs eagerly under autocast: gnnc compiles float32 and float64"
    if _CALLED or _TO_BE_CALLED or _DIFFERENTIATED or _TO_BE_DIFFERENTIATED:
        return "runs eagerly while a hook is registered for all modules"
    if torch.jit.is_tracing() or is_fx_symbolic_tracing():
        return "runs eagerly while torch.jit or torch.fx records its operations"
    if torch.is_anomaly_enabled():
        return "runs eagerly while anomalies are detected, in each of torch's own operations"
    if forward_ad._current_level >= 0:
        return "runs eagerly with forward-mode differentiation: gnnc compiles the reverse mode"
    for x in tensors:
        if type(x) is Tensor and x.layout is torch.strided and x.is_cpu:
            continue
        if not x.is_cpu and (reason := _elsewhere(x, tensors, name_of)):
            return reason
        if is_sparse(x):
            if reason := why_not(x):
                return f"runs eagerly on {reason}"
        elif type(x) is not Tensor and (reason := _other_sizes(x, tensors)):
            return reason
    return None


def _elsewhere(
    x: Tensor, tensors: Sequence[Tensor], name_of: Callable[[Tensor], str]
) -> str | None:
    """Why a call with a tensor on a device runs eagerly, if it does."""
    where = f"runs eagerly with {name_of(x)} on the device {x.device}"
    if (reason := why_not_on(x.device)) is not None:
        return f"{where}: {reason}"
    if other := next((y for y in tensors if y.device != x.device), None):
        return f"{where}, where {name_of(other)} is on {other.device}"
    if any(is_sparse(y) for y in tensors):
        return f"{where} and sparse matrices: gnnc takes these on the CPU"
    return None


def _other_sizes(x: Tensor, tensors: Sequence[Tensor]) -> str | None:
    """Why an EdgeIndex cannot be taken as the plain tensor that it holds: it knows a number
    of nodes that is none of rows."""
    module = sys.modules.get("torch_geometric.edge_index")
    if module is None or not isinstance(x, module.EdgeIndex):
        return None
    rows = {y.size(0) for y in tensors if type(y) is Tensor and y.dim() > 0}
    sizes = [n for n in x.sparse_size() if n is not None and n not in rows]
    if not sizes:
        return None
    return f"runs eagerly on an EdgeIndex of {sizes[0]} nodes, of which no argument has the rows"
