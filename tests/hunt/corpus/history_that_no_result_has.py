"""A backward does not get to the history of what only numbers were taken from: it may be lost."""

import torch
import torch.nn.functional as F


def function(x, p6, p7):
    v2 = x.mul(x)
    with torch.no_grad():
        x.mul_(0.5)
    v13 = v2.t() @ v2
    v15 = F.linear(v13.detach(), p6, p7)
    return v15


ARGUMENTS = {
    "x": "N 4, leaf",
    "p6": "4 4",
    "p7": "4, leaf",
}
CALLS = [
    {"N": 2},
    {"N": 0},
]
SETTINGS = {"dtype": "float64", "seed": 1722}
