"""A part of a graph that looked as if it could be compiled runs in torch."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(3, 4, padding_idx=0)
        self.linear = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True))
        self.act = nn.SiLU(inplace=True)
        self.weight = nn.Parameter(torch.randn(4, 4))

    def forward(self, k):
        rows = self.embedding(k)
        _ = torch.matmul(self.act(self.linear(rows)), self.weight)
        with torch.no_grad():
            self.weight.clamp_(-0.5, 0.5)
        return rows


ARGUMENTS = {
    "k": "N, < 3",
}
CALLS = [
    {"N": 2, "after": "none"},
]
SETTINGS = {"dtype": "float64", "seed": 10470}
