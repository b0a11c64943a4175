"""A result that a dropout hands on, behind what else is made of it."""

import torch.nn.functional as F


def function(x, e):
    v1 = (x * 2)[e[0]]
    v2 = v1.new_zeros(x.shape[0], 4).index_add(0, e[1], v1)
    return F.dropout(v1, p=0.0, training=True), v2


ARGUMENTS = {
    "x": "N 4, leaf",
    "e": "2 E, < N",
}
CALLS = [
    {"E": 50, "N": 50, "after": "retain"},
]
SETTINGS = {"dtype": "float64", "values": "normal", "seed": 10393}
