"""The mean of no rows is no number; rows that nothing reads must not meet it in backward."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4, affine=False, track_running_stats=False)

    def forward(self, x, i):
        return self.norm(self.linear(torch.index_select(x, 0, i)))


ARGUMENTS = {
    "x": "N 4",
    "i": "K, < N",
}
CALLS = [
    {"N": 3, "K": 0},
    {"N": 3, "K": 50},
]
SETTINGS = {"dtype": "float64", "seed": 13028, "compiled": True}
