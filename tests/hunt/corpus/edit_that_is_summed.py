"""An argument that is edited where it lies, and the sum of its new rows."""

import torch


def function(x):
    with torch.no_grad():
        x.mul_(0.5)
    return x.sum(0)


ARGUMENTS = {
    "x": "N 4",
}
CALLS = [
    {"N": 3},
    {"N": 1},
]
SETTINGS = {"dtype": "float64", "seed": 11148, "compiled": True}
