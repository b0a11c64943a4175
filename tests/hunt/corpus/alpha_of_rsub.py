"""Arguments bound wrongly: alpha of rsub."""

import torch


def function(x, y):
    return torch.rsub(x, y, alpha=0.5)


ARGUMENTS = {
    "x": "N 4, leaf",
    "y": "N 4",
}
CALLS = [
    {"N": 3},
]
SETTINGS = {"seed": 1}
