"""One column meets as many as a mask keeps, in torch."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, e, z):
        kept = e[1][e[1] > 0]
        return torch.copysign(z, z) + kept * 0.5


ARGUMENTS = {
    "x": "N 4",
    "e": "2 E, < N",
    "z": "P 1, leaf",
}
CALLS = [
    {"E": 0, "N": 1, "P": 0},
    {"E": 3, "N": 2, "P": 2},
    {"E": 0, "N": 1, "P": 1},
]
SETTINGS = {"dtype": "float64", "seed": 15311}
