"""Sizes 0 and 1: branches that the program takes."""


def function(x, e):
    if e.size(1) == 0:
        return x, x * 2
    h = x[e[0]] / max(e.size(1), 1)
    return h if x.size(0) > 1 else (h, x)


ARGUMENTS = {
    "x": "N 4, leaf",
    "e": "2 E, < N",
}
CALLS = [
    {"E": 5, "N": 3},
    {"E": 0, "N": 3},
    {"E": 2, "N": 1},
    {"E": 1, "N": 50},
]
SETTINGS = {"seed": 1}
