"""Bad input in a graph that runs in torch, as gnnc knows no complex numbers: PyG makes another
exception of it."""

import torch
from torch import nn
from torch_geometric.nn import GINConv


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = GINConv(nn.Identity())

    def forward(self, x, e):
        z = torch.view_as_complex(x.reshape(x.size(0), 2, 2))
        return torch.view_as_real(self.conv(z, e)).sum(0)


ARGUMENTS = {
    "x": "N 4, leaf",
    "e": "2 E, < N",
}
CALLS = [
    {"E": 3, "N": 0},
]
SETTINGS = {"dtype": "float64", "seed": 66}
