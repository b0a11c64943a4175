"""PyG makes an IndexError of what torch raises."""

from torch import nn
from torch_geometric.nn import GCNConv


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = GCNConv(4, 4)

    def forward(self, x, e):
        return self.conv(x, e)


ARGUMENTS = {
    "x": "N 4, leaf",
    "e": "2 E, < 3",
}
CALLS = [
    {"E": 50, "N": 50},
    {"E": 3, "N": 0},
]
SETTINGS = {"dtype": "float64", "values": "normal", "seed": 1088}
