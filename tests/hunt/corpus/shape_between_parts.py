"""A shape that one part computes and another reads."""

import torch
from torch_geometric.utils import scatter


def function(x, e):
    v1 = torch.tanh(x[e[0]])
    v2 = scatter(v1, e[1], dim=0, dim_size=x.size(0), reduce="mean")
    v3 = torch.linalg.norm(v2, ord="nuc")
    return scatter(v1 * v3, e[1], dim=0, dim_size=len(v2), reduce="mean")


ARGUMENTS = {
    "x": "N 4, leaf",
    "e": "2 E, < N",
}
CALLS = [
    {"E": 50, "N": 1},
    {"E": 3, "N": 2},
    {"E": 50, "N": 50},
]
SETTINGS = {"dtype": "float64", "values": "normal", "seed": 1216}
