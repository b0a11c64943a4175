"""What torch edits in one part reaches the next under both its names: each has its gradient."""

import torch
import torch.nn.functional as F


def function(y, e):
    v1 = torch.sigmoid(y).index_select(0, e[0])
    v2 = torch.cumsum(v1, -1)
    v3 = F.hardswish(v2, True)
    v4 = torch.add(v2, v3, alpha=2)
    return v4.index_select(0, e[1]) @ v4.t()


ARGUMENTS = {
    "y": "N 4, leaf",
    "e": "2 N, < N",
}
CALLS = [
    {"N": 3},
    {"N": 50},
]
SETTINGS = {"dtype": "float64", "values": "ties", "seed": 11060}
