"""Strides of results: contiguous() of a transposed tensor."""

import torch


def function(x):
    return x.t().contiguous(), torch.tanh(x.t()).contiguous()


ARGUMENTS = {
    "x": "N 4, leaf",
}
CALLS = [
    {"N": 3},
]
SETTINGS = {"seed": 1}
