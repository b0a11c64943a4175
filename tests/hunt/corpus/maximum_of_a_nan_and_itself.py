"""torch gives each of two operands the whole gradient at NaN."""

import torch


def function(z):
    return torch.max(z, z)


ARGUMENTS = {
    "z": "P 1, leaf",
}
CALLS = [
    {"P": 50},
]
SETTINGS = {"dtype": "float64", "values": "nan", "seed": 3915}
