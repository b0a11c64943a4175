"""Bad input: a softmax over groups of negative numbers, where nobody says how many there are."""

from torch_geometric.utils import softmax


def function(x, i):
    return softmax(x, i)


ARGUMENTS = {
    "x": "K 4",
    "i": "K, < N, negative",
}
CALLS = [
    {"N": 3, "K": 50},
]
SETTINGS = {"seed": 1}
