"""Modes of gradients in each other."""

import torch


def function(x):
    with torch.no_grad():
        a = x * 2
        with torch.enable_grad():
            b = x * 3
    return a, b


ARGUMENTS = {
    "x": "N 4, leaf",
}
CALLS = [
    {"N": 3},
    {"N": 3, "grad": "no_grad"},
    {"N": 3, "grad": "inference"},
]
SETTINGS = {"seed": 1}
