"""Crash: gradients of several cotangents at once."""

import torch


def function(x, y):
    return torch.tanh(x) * y


ARGUMENTS = {
    "x": "N 4, leaf",
    "y": "N 4",
}
CALLS = [
    {"N": 3, "after": "batched"},
]
SETTINGS = {"seed": 1}
