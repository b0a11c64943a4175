"""The gradient of a step is 0, and no number where it goes on through the slope of a root."""

import torch


def function(x):
    return torch.rsqrt(x).ceil(), x.sqrt().floor(), x.exp().floor()


ARGUMENTS = {
    "x": "N 4, leaf",
}
CALLS = [
    {"N": 1},
    {"N": 3},
]
SETTINGS = {"dtype": "float64", "seed": 14925}
