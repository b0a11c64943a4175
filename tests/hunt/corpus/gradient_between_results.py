"""Gradients of one result by another, and kept at one."""

import torch


def function(x):
    h = torch.tanh(x)
    return h, (h * h).sum(-1)


ARGUMENTS = {
    "x": "N 4, leaf",
}
CALLS = [
    {"N": 3, "after": "between"},
    {"N": 3, "after": "retain"},
]
SETTINGS = {"seed": 1}
