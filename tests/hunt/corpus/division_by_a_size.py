"""Sizes 0 and 1: a mean over nothing is NaN, no ZeroDivisionError."""


def function(x):
    return x.sum(0) / x.size(0)


ARGUMENTS = {
    "x": "N 4, leaf",
}
CALLS = [
    {"N": 3},
    {"N": 0},
]
SETTINGS = {"seed": 1}
