"""An argument without rows that is edited by what has a gradient requires one from then on."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = nn.Parameter(torch.randn(4))

    def forward(self, x):
        x.sub_(self.p)
        return self.p * 2


ARGUMENTS = {
    "x": "N 4",
}
CALLS = [
    {"N": 0},
    {"N": 3},
    {"N": 0, "after": "retain"},
]
SETTINGS = {"dtype": "float64", "seed": 1939}
