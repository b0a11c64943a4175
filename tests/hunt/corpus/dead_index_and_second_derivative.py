"""Bad input: an index out of range that nothing needs, in a call that is differentiated twice."""

import torch.nn.functional as F


def function(x, i):
    _ = F.embedding(i, x)
    return x * x


ARGUMENTS = {
    "x": "N 4, leaf",
    "i": "K, < N, negative",
}
CALLS = [
    {"K": 50, "N": 50, "after": "double"},
]
