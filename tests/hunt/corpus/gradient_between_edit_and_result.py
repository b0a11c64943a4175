"""The gradient of a result that an argument was edited with, and so is part of it."""

import torch


def function(x, y):
    v1 = x * 2
    y.lerp_(torch.sin(v1), 0.5)
    v2 = v1 * 3
    return v1, v2


ARGUMENTS = {
    "x": "N 4, leaf",
    "y": "N 4, graph",
}
CALLS = [
    {"N": 3, "after": "retain"},
    {"N": 0, "after": "retain"},
    {"N": 3, "after": "between"},
]
SETTINGS = {"dtype": "float64", "seed": 1310}
