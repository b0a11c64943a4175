"""A dropout that drops nothing hands on columns, of which a view is returned."""

import torch.nn.functional as F


def function(x):
    columns = x.clone()[:, ::2]
    dropped = F.dropout(columns, 0.0)
    return dropped.view_as(dropped)


ARGUMENTS = {
    "x": "N 4",
}
CALLS = [
    {"N": 2},
]
SETTINGS = {"dtype": "float64", "seed": 3500}
