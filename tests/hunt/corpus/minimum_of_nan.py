"""Edges of numbers: the gradient of minimum at NaN goes to both."""

import torch


def function(x, y):
    return torch.minimum(x, y), torch.maximum(x, y)


ARGUMENTS = {
    "x": "N 4, leaf",
    "y": "N 4, leaf",
}
CALLS = [
    {"N": 50},
]
SETTINGS = {"seed": 22, "values": "nan"}
