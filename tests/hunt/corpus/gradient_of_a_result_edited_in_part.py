"""The gradient of a result that was edited through a view, by which others were made of it."""

import torch


def function(x):
    v1 = x * 2
    v2 = v1[:, :2]
    v1[:, 1:2] += 1
    return v1, torch.exp(v2), torch.cos(v1)


ARGUMENTS = {
    "x": "N 4, leaf",
}
CALLS = [
    {"N": 3, "after": "retain"},
    {"N": 3, "after": "between"},
]
SETTINGS = {"dtype": "float64", "seed": 1310}
