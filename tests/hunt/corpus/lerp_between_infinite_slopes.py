"""The two ends of a lerp have slopes of their own: (1 - w) d is not d - w d where d is infinite."""

import torch


def function(x, w):
    return torch.lerp(x, x, 0.3).sqrt(), torch.lerp(x, w, w).log()


ARGUMENTS = {
    "x": "N 4, leaf",
    "w": "N 4, leaf",
}
CALLS = [
    {"N": 50},
    {"N": 0},
]
SETTINGS = {"dtype": "float64", "values": "ties", "seed": 18961}
