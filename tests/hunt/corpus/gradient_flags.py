"""requires_grad of results that depend on nothing that requires it."""

import torch


def function(x, y):
    return x * 2, y * 2, torch.floor(x), torch.sign(x), x.argmax(-1)


ARGUMENTS = {
    "x": "N 4, leaf",
    "y": "N 4",
}
CALLS = [
    {"N": 3},
]
SETTINGS = {"seed": 1}
