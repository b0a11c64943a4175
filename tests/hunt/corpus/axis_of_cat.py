"""Arguments bound wrongly: NumPy's name of dim."""

import torch


def function(x, y):
    return torch.cat([x, y], axis=1)


ARGUMENTS = {
    "x": "N 4, leaf",
    "y": "N 4",
}
CALLS = [
    {"N": 3},
]
SETTINGS = {"seed": 1}
