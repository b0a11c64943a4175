"""A second derivative runs in torch: without the edits that nobody reads, and their indices."""

import torch.nn.functional as F


def function(x, e, z):
    rows = x[e[0]]
    new = rows.new_zeros(len(x), 4).index_add_(0, e[1], rows)
    _ = F.relu6(new, True)
    return z * 2


ARGUMENTS = {
    "x": "N 4, leaf",
    "e": "2 E, < N",
    "z": "P 1, leaf",
}
CALLS = [
    {"E": 2, "N": 50, "P": 2, "after": "batched"},
    {"E": 2, "N": 0, "P": 2, "after": "batched"},
]
SETTINGS = {"dtype": "float64", "seed": 653}
