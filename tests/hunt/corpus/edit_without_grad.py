"""Edits under no_grad keep the gradient of what is edited."""

import torch


def function(x):
    h = x * 3
    with torch.no_grad():
        h.clamp_(min=0)
    return h


ARGUMENTS = {
    "x": "N 4, leaf",
}
CALLS = [
    {"N": 3},
]
SETTINGS = {"seed": 1}
