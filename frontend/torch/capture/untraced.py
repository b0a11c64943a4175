"""What Dynamo leaves alone: functions of ours that run while it traces a call.

A forward that differentiates (`torch.autograd.grad`, for forces) breaks a graph there; the engine
then runs backwards of compiled calls in a frame that Dynamo watches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch._C._dynamo.eval_frame import set_code_exec_strategy  # pyright: ignore
from torch._dynamo.types import FrameAction, FrameExecStrategy


def leave(*functions: Callable[..., Any]) -> None:
    """Has Dynamo run these functions, and all that they call, as they are. It costs their calls
    nothing, where `torch._dynamo.disable` would wrap each."""
    strategy = FrameExecStrategy(FrameAction.SKIP, FrameAction.SKIP)
    for function in functions:
        set_code_exec_strategy(function.__code__, strategy)  # type: ignore[attr-defined]
