"""Edges of numbers: ties of a maximum share its gradient."""

import torch


def function(x):
    return x.max(), x[:, 0].max(), x.amax(-1), x.max(-1).values, torch.relu(x), x.clamp(-0.5, 0.5)


ARGUMENTS = {
    "x": "N 4, leaf",
}
CALLS = [
    {"N": 3},
    {"N": 50},
]
SETTINGS = {"seed": 1, "values": "ties"}
