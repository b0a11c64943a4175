"""Bad input in a graph that runs in torch: PyG makes another exception of it."""

from torch import nn
from torch_geometric.nn import GCNConv


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = GCNConv(4, 4, normalize=False)

    def forward(self, x, e, m):
        h = self.conv(x, e)
        return x.sum(0) * (1 / max(1, m.size(0))) + h.shape[0]


ARGUMENTS = {
    "x": "N 4, leaf",
    "e": "2 E, < N",
    "m": "N, bool",
}
CALLS = [
    {"E": 3, "N": 0},
]
SETTINGS = {"dtype": "float64", "seed": 1}
