"""A program compared with eager in all that views and edits can change: numbers, gradients, who
shares memory, memory order, `requires_grad`, versions, what is raised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import gnnc

Program = Callable[..., tuple[Tensor, ...]]


def arguments() -> tuple[Tensor, ...]:
    """x [5, 3] and w [3, 3] with gradients, b [5, 3] without, and an index into the rows."""
    torch.manual_seed(3)
    x, w = torch.randn(5, 3, requires_grad=True), torch.randn(3, 3, requires_grad=True)
    return x, w, torch.randn(5, 3), torch.tensor([0, 1, 2, 3, 4, 0, 1, 1])


class Run:
    """A call of a program, with what can be seen of it afterwards. Arguments with a gradient are
    part of the caller's graph, as eager's edits in place require."""

    def __init__(self, program: Program, leaves: tuple[Tensor, ...], grad_mode: bool) -> None:
        given = [x * 1 if x.requires_grad else x.clone() for x in leaves]
        self.raised: str | None = None
        self.tensors: list[Tensor] = given
        try:
            with torch.set_grad_enabled(grad_mode):
                self.tensors = [*program(*given), *given]
        except RuntimeError as error:
            self.raised = str(error)
        self.given = given
        self.numbers = [x.detach().clone() for x in self.tensors]
        self.gradients = self._gradients([x for x in leaves if x.requires_grad])

    def _gradients(self, leaves: list[Tensor]) -> list[Tensor | None] | str:
        ends = [x for x in self.tensors if x.requires_grad]
        if not ends:
            return []
        loss = sum((x.double().square().sum() for x in ends), torch.zeros(()))
        try:
            return [*torch.autograd.grad(loss, leaves, allow_unused=True)]
        except RuntimeError as error:
            return str(error)[:60]

    def shared(self) -> list[list[object]]:
        """For each pair of results and arguments whether they are one tensor, and one memory."""
        key = [x.untyped_storage().data_ptr() for x in self.tensors]
        return [
            [(x is y, key[i] == key[j]) for j, y in enumerate(self.tensors)]
            for i, x in enumerate(self.tensors)
        ]

    def kinds(self) -> list[object]:
        return [
            (x.dtype, tuple(x.shape), x.is_contiguous(), x.requires_grad, x._version > 0)
            for x in self.given
        ] + [(x.is_contiguous(), x.requires_grad, strides(x)) for x in self.tensors]


def strides(x: Tensor) -> list[int]:
    return [s for s, n in zip(x.stride(), x.shape, strict=True) if n > 1]


def assert_as_eager(program: Program, grad_mode: bool = True) -> Any:
    """Compiles a program of `arguments` and compares a call with eager's; gives the report."""
    torch._dynamo.reset()
    compiled = gnnc.compile(program)
    mine, theirs = Run(compiled, arguments(), grad_mode), Run(program, arguments(), grad_mode)
    assert mine.raised == theirs.raised
    for x, y in zip(mine.numbers, theirs.numbers, strict=True):
        assert torch.allclose(x, y, atol=1e-5), program
    assert mine.kinds() == theirs.kinds()
    assert mine.shared() == theirs.shared()
    assert type(mine.gradients) is type(theirs.gradients), (mine.gradients, theirs.gradients)
    if isinstance(theirs.gradients, list) and isinstance(mine.gradients, list):
        for g, h in zip(mine.gradients, theirs.gradients, strict=True):
            assert (g is None) == (h is None)
            assert g is None or torch.allclose(g, h, rtol=1e-4, atol=1e-4)
    return gnnc.explain(compiled)
