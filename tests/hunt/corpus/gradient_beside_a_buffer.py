"""A result is made of a new buffer, which has no gradient; something else is edited."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("buf", torch.zeros(4))

    def forward(self, x, y):
        y.add_(1)
        self.buf = self.buf * 0.5 + x.detach().sum(0)
        return x * self.buf


ARGUMENTS = {
    "x": "N 4, leaf",
    "y": "N 4, graph",
}
CALLS = [
    {"N": 3, "after": "batched"},
    {"N": 5, "after": "retain"},
]
SETTINGS = {"dtype": "float64", "values": "normal", "seed": 7848}
