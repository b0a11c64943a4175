"""A linear layer with one matrix a type."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ... import ops
from .helpers import relu_gain

__all__ = [
    "TypedLinear",
]

_REGULARIZERS = (None, "basis", "bdd")


class TypedLinear(nn.Module):
    """x W_t, t the type of the row x: rows (N, in), types (N,) to (N, out).

    `regularizer` as in Schlichtkrull et al., Modeling Relational Data with Graph Convolutional
    Networks: "basis", W_t = sum_b coeff_tb V_b; "bdd", W_t of `num_bases` blocks on its diagonal.
    ValueError for another regularizer, none given bases, or sizes that blocks do not divide.
    """

    def __init__(
        self,
        in_size: int,
        out_size: int,
        num_types: int,
        regularizer: str | None = None,
        num_bases: int | None = None,
    ):
        super().__init__()
        if regularizer not in _REGULARIZERS:
            raise ValueError(f'regularizer is "basis", "bdd" or None, not {regularizer!r}')
        if regularizer is not None and num_bases is None:
            raise ValueError(f"regularizer {regularizer!r} needs num_bases")
        self.in_size = in_size
        self.out_size = out_size
        self.num_types = num_types
        self.regularizer = regularizer
        if regularizer is None:
            self.W = nn.Parameter(torch.empty(num_types, in_size, out_size))
        elif regularizer == "basis":
            self.num_bases = num_bases
            self.W = nn.Parameter(torch.empty(num_bases, in_size, out_size))
            self.coeff = nn.Parameter(torch.empty(num_types, num_bases))
        else:
            if in_size % num_bases or out_size % num_bases:
                raise ValueError(f"{num_bases} blocks do not divide {in_size} x {out_size}")
            self.num_bases = num_bases
            self.submat_in = in_size // num_bases
            self.submat_out = out_size // num_bases
            block = self.submat_in * self.submat_out
            self.W = nn.Parameter(torch.empty(num_types, num_bases * block))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """As torch's Linear over the rows of one matrix or block."""
        rows = self.submat_in if self.regularizer == "bdd" else self.in_size
        nn.init.uniform_(self.W, -1 / math.sqrt(rows), 1 / math.sqrt(rows))
        if self.regularizer == "basis":
            nn.init.xavier_uniform_(self.coeff, gain=relu_gain())

    def get_weight(self) -> Tensor:
        """The matrices of all types; the blocks only with "bdd"."""
        if self.regularizer != "basis":
            return self.W
        weight = self.coeff @ self.W.view(self.num_bases, -1)
        return weight.view(self.num_types, self.in_size, self.out_size)

    def forward(self, x: Tensor, x_type: Tensor, sorted_by_type: bool = False) -> Tensor:
        """`sorted_by_type` is DGL's hint for another kernel; the result does not depend on it."""
        weight = self.get_weight()
        if self.regularizer != "bdd":
            return ops.gather_mm(x, weight, idx_b=x_type)
        blocks = weight[x_type].view(-1, self.num_bases, self.submat_in, self.submat_out)
        rows = x.view(-1, self.num_bases, 1, self.submat_in)
        return (rows @ blocks).view(-1, self.out_size)

    def __repr__(self) -> str:
        sizes = f"in_size={self.in_size}, out_size={self.out_size}, num_types={self.num_types}"
        if self.regularizer is not None:
            sizes += f", regularizer={self.regularizer}, num_bases={self.num_bases}"
        return f"TypedLinear({sizes})"
