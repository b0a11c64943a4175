"""A call that raises in a no_grad block leaves autograd as it was."""

import torch
from torch_geometric.nn import global_mean_pool


def function(x, e, r):
    v1 = x.detach().clone()
    with torch.no_grad():
        v2 = v1.index_select(dim=0, index=e[1])
        with torch.set_grad_enabled(True):
            v3 = global_mean_pool(x=v2, batch=r, size=2)
    return v3, v2


ARGUMENTS = {
    "x": "N 4, graph",
    "e": "2 E, < N",
    "r": "E, < 2",
}
CALLS = [
    {"E": 0, "N": 0},
    {"E": 2, "N": 0},
    {"E": 0, "N": 0},
]
SETTINGS = {"dtype": "float32", "values": "normal", "seed": 10662}
