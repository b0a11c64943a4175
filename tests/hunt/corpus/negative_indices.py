"""Crash: indices counted from the end."""


def function(x, i):
    return x[i] * 2


ARGUMENTS = {
    "x": "N 4, leaf",
    "i": "K, < N, negative",
}
CALLS = [
    {"K": 5, "N": 3},
]
SETTINGS = {"seed": 1}
