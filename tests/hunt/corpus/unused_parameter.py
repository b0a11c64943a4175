"""None or zero: a parameter that the result does not use."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.used = nn.Linear(4, 4)
        self.idle = nn.Parameter(torch.ones(4))

    def forward(self, x, y):
        h = self.used(x)
        return h, y * self.idle.detach()


ARGUMENTS = {
    "x": "N 4, leaf",
    "y": "N 4, leaf",
}
CALLS = [
    {"N": 3},
    {"N": 0},
]
SETTINGS = {"seed": 1}
