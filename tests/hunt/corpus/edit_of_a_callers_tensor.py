"""Edits of an argument that is part of the caller's graph."""


def function(x):
    x.mul_(2)
    return x.sum(-1)


ARGUMENTS = {
    "x": "N 4, graph",
}
CALLS = [
    {"N": 3},
]
SETTINGS = {"seed": 1}
