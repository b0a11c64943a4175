"""Second derivatives: of a product with a parameter."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        return torch.tanh(self.lin(x)), self.lin(x)


ARGUMENTS = {
    "x": "N 4, leaf",
}
CALLS = [
    {"N": 3, "after": "double"},
]
SETTINGS = {"seed": 1}
