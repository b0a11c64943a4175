"""The leaf of DGL's functions, beside those that they share with PyG's, and what it means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ...importer.errors import NoRule
from ...importer.rules.registry import Call, rule
from ...importer.values.tensors import Arr
from ..pyg.leaves import leaf


class _OneNode(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *values: Tensor) -> tuple[Tensor, ...]:
        return tuple(value.clone() for value in values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        return gradients


@leaf("one_node(Tensor[] values) -> Tensor[]")
def one_node(values: Sequence[Tensor]) -> list[Tensor]:
    """Copies of tensors, results of one node of autograd: a gradient of one of them is a gradient
    of all, zero for the others. What is attached to what the capture reads from that node."""
    return list(_OneNode.apply(*values))


@rule("gnnc.one_node")
def _one_node(c: Call) -> tuple[Arr, ...]:
    values = c.arg("values")
    if not all(isinstance(value, Arr) for value in values):
        raise NoRule("features that are no tensors")
    return tuple(values)
