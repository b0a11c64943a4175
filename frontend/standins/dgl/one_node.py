"""What a call over several edge types is to autograd."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


class _OneNode(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(*values: Tensor) -> tuple[Tensor, ...]:
        return tuple(value.view_as(value) for value in values)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Nothing is kept: gradients that are None are made zeros, which is all that it is for."""

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        return gradients


def one_node(values: Sequence[Tensor]) -> list[Tensor]:
    """The tensors themselves, as results of one node of autograd: a gradient of one of them is a
    gradient of all, zero for the others.

    DGL reads the features of all edge types in one such node, so that what a loss does not need of
    them has a gradient of zeros, which optimizers and norms of gradients see, and not None.
    """
    return list(_OneNode.apply(*values)) if len(values) > 1 else list(values)
