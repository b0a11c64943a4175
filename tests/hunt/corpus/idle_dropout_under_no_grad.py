"""A dropout that drops nothing hands its operand on, with its history, under no_grad too."""

import torch
import torch.nn.functional as F


def function(x, e):
    with torch.no_grad():
        v1 = F.dropout(x, 0.5, False)
    return F.elu(v1), v1[e[0]] * 2


ARGUMENTS = {
    "x": "N 4, leaf",
    "e": "2 E, < N",
}
CALLS = [
    {"E": 50, "N": 50},
]
SETTINGS = {"dtype": "float64", "values": "normal", "seed": 10349}
