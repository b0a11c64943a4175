"""Strides of results: pointwise ops keep the order of memory of their operand."""


def function(x):
    return x * 0.5, x.t() + 1


ARGUMENTS = {
    "x": "N 4, transposed",
}
CALLS = [
    {"N": 3},
]
SETTINGS = {"seed": 1}
