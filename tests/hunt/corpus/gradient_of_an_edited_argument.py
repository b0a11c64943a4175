"""The gradient of an argument that results are made of after its edit, whole and in part."""

import torch


def function(x, y, z):
    y.relu_()
    z[:, 1:2] += 1
    v2 = torch.sin(y) * x
    return v2, torch.sin(z) * 2


ARGUMENTS = {
    "x": "N 4, leaf",
    "y": "N 4, graph",
    "z": "3 4, graph",
}
CALLS = [
    {"N": 3, "after": "retain"},
    {"N": 3, "after": "between"},
    {"N": 3, "after": "double"},
]
SETTINGS = {"dtype": "float64", "seed": 1310}
