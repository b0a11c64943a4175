"""A dropout that drops nothing hands a view on with its strides."""

import torch.nn.functional as F


def function(x, p6):
    v1 = x.matmul(other=p6)
    v2 = F.dropout(v1[:, :2], 0.5, False)
    return v2, F.dropout(p6.matmul(p6).t(), 0.5, False)


ARGUMENTS = {
    "x": "N 4",
    "p6": "4 4, leaf",
}
CALLS = [
    {"N": 50},
]
SETTINGS = {"dtype": "float64", "values": "normal", "seed": 20220}
