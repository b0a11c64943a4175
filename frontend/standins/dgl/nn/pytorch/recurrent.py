"""An LSTM in plain algebra: Dynamo refuses modules of torch's class."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

State = tuple[Tensor, Tensor]
"""What is shown and what is kept, (rows, hidden_size) each."""


class LSTM(nn.Module):
    """The parameters of torch's LSTM, by its names and from its first values, and single steps.

    A cell is named by the end of its parameters' names: "l0", "l1", .. and "l0_reverse", ..
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bidirectional: bool = False
    ):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bidirectional = bidirectional
        for layer in range(num_layers):
            for direction in ("", "_reverse")[: 1 + bidirectional]:
                self._add_cell(f"l{layer}{direction}", input_size)
            input_size = hidden_size * (1 + bidirectional)
        self.reset_parameters()

    def _add_cell(self, cell: str, input_size: int) -> None:
        gates = 4 * self.hidden_size
        shapes = {
            "weight_ih": (gates, input_size),
            "weight_hh": (gates, self.hidden_size),
            "bias_ih": (gates,),
            "bias_hh": (gates,),
        }
        for name, shape in shapes.items():
            self.register_parameter(f"{name}_{cell}", nn.Parameter(torch.empty(shape)))

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def start(self, rows: Tensor) -> State:
        """The state before the first step, for as many rows."""
        empty = rows.new_zeros(rows.shape[0], self.hidden_size)
        return empty, empty

    def step(self, cell: str, rows: Tensor, state: State) -> State:
        """The state after one more row of each sequence."""
        shown, kept = state
        gates = F.linear(rows, self._of("weight_ih", cell), self._of("bias_ih", cell))
        gates = gates + F.linear(shown, self._of("weight_hh", cell), self._of("bias_hh", cell))
        admit, keep, new, show = gates.chunk(4, dim=-1)
        kept = torch.sigmoid(keep) * kept + torch.sigmoid(admit) * torch.tanh(new)
        return torch.sigmoid(show) * torch.tanh(kept), kept

    def _of(self, name: str, cell: str) -> Tensor:
        return getattr(self, f"{name}_{cell}")

    def extra_repr(self) -> str:
        options = f", num_layers={self.num_layers}" if self.num_layers > 1 else ""
        options += ", bidirectional=True" if self.bidirectional else ""
        return f"{self.input_size}, {self.hidden_size}{options}"
