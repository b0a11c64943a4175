"""Where the tensors of a call are: programs run on the CPU, or on the CUDA device that has all."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..importer.values.sizes import tensors_in


def default_elsewhere() -> torch.device | None:
    """The device on which tensors are made now where nobody names one, if that is not the CPU.
    Under `torch.device` and `set_default_device` also those of ours would be."""
    if not torch._C._len_torch_function_stack():  # both are modes on this stack
        return None
    device = torch.get_default_device()
    return None if device.type == "cpu" else device


def why_not_on(device: torch.device, backend: str = "auto") -> str | None:
    """Why no program runs on a device, or None; `backend` is the option of that name."""
    if backend not in ("auto", device.type):
        return f"the option backend={backend!r} leaves it to torch"
    match device.type:
        case "cpu":
            return None
        case "cuda":
            return _why_not_cuda(device.index or 0)
        case _:
            return "gnnc compiles for CPU and CUDA"


@functools.cache
def _why_not_cuda(number: int) -> str | None:
    from ....runtime.cuda.device import why_not  # begins CUDA in this process

    return why_not(number)


def argument_with(
    fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], x: Tensor
) -> str:
    """What the argument is called that `x` is, or lies in."""
    try:
        given = inspect.signature(_of_user(fn)).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):  # the call itself will say what it lacks
        given = {f"argument {i}": y for i, y in enumerate(args)} | dict(kwargs)
    for name, value in given.items():
        if any(y is x for y in tensors_in(value)):
            return name
    return "an argument"


def _of_user(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function whose parameters a user has named: of a module's call, its `forward`."""
    module = getattr(fn, "__self__", fn)
    return module.forward if isinstance(module, nn.Module) else fn
