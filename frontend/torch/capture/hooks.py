"""Whether the layers of a compiled callable may have hooks, told cheaply at each call.

Dynamo can guard on the hooks of every layer it meets, which costs each call as much as a part of
its other guards. Most modules never have one. torch numbers the handles of hooks, so that a number
that has not changed says that no hook has come since.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn
from torch.utils.hooks import RemovableHandle

_LOOKS = 8
_KINDS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class Watched:
    """The layers of what `gnnc.compile` was given: of a function they are not known."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        owner = fn if isinstance(fn, nn.Module) else getattr(fn, "__self__", None)
        self.module = owner if isinstance(owner, nn.Module) else None
        self.hooked = False
        self.number = 0
        self.looks = 0

    def may_have_hooks(self) -> bool:
        """Whether a layer has, or once had, hooks; where nobody knows, whether there are any."""
        if self.number != RemovableHandle.next_id and not self.hooked:
            self.number = RemovableHandle.next_id
            self.looks += 1
            self.hooked = self.module is None or self.looks > _LOOKS or _has_hooks(self.module)
        return self.hooked


def _has_hooks(module: nn.Module) -> bool:
    return any(getattr(m, kind) for m in module.modules() for kind in _KINDS)
