"""A view made under no_grad has a gradient of its own."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.p5 = nn.Parameter(torch.randn(1, 4))
        self.lin0 = nn.Linear(1, 4)

    def forward(self, x, z):
        v1 = self.lin0(z)
        v2 = x.narrow(1, 0, 2)
        with torch.no_grad():
            v3 = v2.reshape(len(x), 2, 1)
        v4 = v3.mean(dim=1)
        v5 = torch.vstack((v4 @ self.p5, v1))
        return v5, v4


ARGUMENTS = {
    "x": "N 4, leaf",
    "z": "P 1, leaf",
}
CALLS = [
    {"N": 5, "P": 3},
    {"N": 0, "P": 2},
]
SETTINGS = {"dtype": "float64", "values": "normal", "seed": 1025}
