"""A view that is returned has the gradient of what else is made of it."""

import torch


def function(x, e):
    v1 = torch.tanh(x)
    v2 = v1[:, 1:]
    v3 = x[:, 0]
    return v2, v2[e[0]] * v3[e[1]].view(-1, 1), v3


ARGUMENTS = {
    "x": "N 4, leaf",
    "e": "2 E, < N",
}
CALLS = [
    {"E": 50, "N": 50, "after": "retain"},
    {"E": 3, "N": 2, "after": "between"},
]
SETTINGS = {"dtype": "float64", "values": "normal", "seed": 10187}
