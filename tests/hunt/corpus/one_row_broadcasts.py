"""Sizes 0 and 1: rows of one that broadcast."""


def function(x, y):
    return x * y


ARGUMENTS = {
    "x": "N 4, leaf",
    "y": "P 4, leaf",
}
CALLS = [
    {"N": 3, "P": 1},
    {"N": 3, "P": 3},
    {"N": 1, "P": 1},
]
SETTINGS = {"seed": 1}
