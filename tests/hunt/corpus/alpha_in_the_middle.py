"""Arguments bound wrongly: add(input, alpha, other), a form of long ago."""

import torch


def function(x, y):
    return torch.add(y, 2, x)


ARGUMENTS = {
    "x": "N 4, leaf",
    "y": "N 4",
}
CALLS = [
    {"N": 3},
]
SETTINGS = {"seed": 1}
