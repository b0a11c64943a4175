"""An item of a stack has the numbers of an argument, and lies between those of the others."""

import torch


def function(w):
    return torch.stack([w, w], axis=1)[:, 0]


ARGUMENTS = {
    "w": "E 1",
}
CALLS = [
    {"E": 2},
]
SETTINGS = {"dtype": "float64", "seed": 4347}
