"""Bad input in a graph that runs in torch: PyG makes another exception of it."""

import torch
from torch import nn
from torch_geometric.nn import GCNConv


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = GCNConv(4, 4, normalize=False)

    def forward(self, x, e, m, b):
        y = x.sum(0) * (1 / max(1, m.size(0)))
        z = torch.multiply(b, other=y)
        h = z * 3 if m.shape[0] > 1 else z - 1
        k = h - y
        k = k * 3 if m.size(0) == 0 else k - 1
        return z * 3 if self.conv(x, e).shape[0] < 2 else z - 1


ARGUMENTS = {
    "x": "N 4, leaf",
    "e": "2 E, < N",
    "m": "N, bool",
    "b": "1 4",
}
CALLS = [
    {"E": 3, "N": 0},
]
SETTINGS = {"dtype": "float64", "seed": 66}
