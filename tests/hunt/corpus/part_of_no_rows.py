"""An edit of no rows cuts a graph into parts; one of them takes a tensor of size 0."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.zeros(4))
        self.linear = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True))

    def forward(self, x):
        h = torch.sigmoid(x)
        h.add_(1)
        scaled = h * self.scale
        scaled[:1] = 0
        return self.linear(x)


ARGUMENTS = {
    "x": "N 4, leaf",
}
CALLS = [
    {"N": 0, "after": "none"},
]
SETTINGS = {"dtype": "float64", "seed": 199}
