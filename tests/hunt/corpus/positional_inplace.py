"""Edits: the flag of edits given by position."""

import torch.nn.functional as F


def function(x):
    h = x * 2
    F.relu(h, True)
    F.leaky_relu(h, 0.1, True)
    return h


ARGUMENTS = {
    "x": "N 4, leaf",
}
CALLS = [
    {"N": 3},
]
SETTINGS = {"seed": 1}
