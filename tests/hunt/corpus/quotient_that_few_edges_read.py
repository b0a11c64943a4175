"""A quotient of nodes has a slope at those that no edge reads, which may be infinite."""

from torch_geometric.utils import scatter


def function(x, e):
    v3, v4 = e
    v5 = scatter(x[v3], v4, dim_size=x.size(0))
    v6 = x / v5
    v8 = v6[v4, :]
    return v8


ARGUMENTS = {
    "x": "N 4, leaf",
    "e": "2 E, < N",
}
CALLS = [
    {"E": 3, "N": 50},
]
SETTINGS = {"dtype": "float64", "values": "normal", "seed": 7060, "compiled": True}
