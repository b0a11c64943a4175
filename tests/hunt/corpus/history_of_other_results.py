"""A backward of one result does not get to the history of another, which may be lost."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.p0 = nn.Parameter(torch.randn(4, 4))
        self.p1 = nn.Parameter(torch.randn(4, 4))
        self.lin2 = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True))
        self.act3 = nn.Threshold(0.1, 0.0, True)
        self.lin9 = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 4))
        self.lin10 = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True))
        self.norm18 = nn.BatchNorm1d(4, momentum=None)

    def forward(self, w):
        F.dropout(w, 0.0, True, True)
        v3 = w.matmul(other=self.p1)
        v7 = self.lin2(self.p0)
        self.act3(v7)
        v19 = self.lin9(v7)
        self.lin10(v19)
        self.norm18(v7)
        return v3


ARGUMENTS = {
    "w": "E 4",
}
CALLS = [
    {"E": 2},
]
SETTINGS = {"dtype": "float64", "values": "normal", "seed": 1659}
