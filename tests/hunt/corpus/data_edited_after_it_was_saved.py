"""An edit through .data of what backward reads, which autograd does not see."""

import torch
import torch.nn.functional as F


def function(x):
    h = F.gelu(x)
    y = torch.mul(h, h)
    h.data.mul_(2)
    return y


ARGUMENTS = {
    "x": "N 4, leaf",
}
CALLS = [
    {"N": 2, "after": "double"},
]
SETTINGS = {"dtype": "float64", "seed": 12651}
