"""Results that alias: one is a view of the other."""

import torch


def function(x):
    y = torch.tanh(x)
    return y, y.unsqueeze(0)


ARGUMENTS = {
    "x": "N 4, leaf",
}
CALLS = [
    {"N": 3},
]
SETTINGS = {"seed": 1}
