"""Other numbers in the memory of edge_index: another graph."""


def function(x, e):
    return x[e[0]]


ARGUMENTS = {
    "x": "N 4, leaf",
    "e": "2 E, < N",
}
CALLS = [
    {"E": 5, "N": 3},
    {"E": 5, "N": 3, "before": "data"},
    {"E": 5, "N": 3, "before": "edit"},
]
SETTINGS = {"seed": 1}
