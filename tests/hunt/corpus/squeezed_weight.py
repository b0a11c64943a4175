"""Sizes 0 and 1: a dimension of size 1 dropped."""


def function(x, e, w):
    return x[e[0]] * w.squeeze(-1).unsqueeze(-1), w.squeeze()


ARGUMENTS = {
    "x": "N 4, leaf",
    "e": "2 E, < N",
    "w": "E 1, leaf",
}
CALLS = [
    {"E": 5, "N": 3},
    {"E": 1, "N": 3},
    {"E": 0, "N": 3},
]
SETTINGS = {"seed": 1}
