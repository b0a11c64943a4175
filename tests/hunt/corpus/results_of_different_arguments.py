"""Results of different arguments, looked at in all ways."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x, y, z):
        v1 = self.first(x)
        v2 = self.second(y).exp() * z.detach()
        v3 = torch.sin(v1 @ self.second.weight)
        return v1, v2, v3, torch.sign(z)


ARGUMENTS = {
    "x": "N 4, leaf",
    "y": "N 4, graph",
    "z": "N 4, graph",
}
CALLS = [
    {"N": 3},
    {"N": 3, "after": "retain"},
    {"N": 2, "after": "between"},
    {"N": 3, "after": "double"},
    {"N": 3, "after": "batched"},
    {"N": 0, "after": "retain"},
    {"N": 2, "grad": "no_grad"},
]
SETTINGS = {"dtype": "float64", "seed": 5}
