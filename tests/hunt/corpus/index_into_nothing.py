"""Bad input: an index into no rows."""


def function(x, e):
    return x.index_select(0, e[0])


ARGUMENTS = {
    "x": "N 4, leaf",
    "e": "2 E, < N",
}
CALLS = [
    {"E": 5, "N": 3},
    {"E": 1, "N": 0},
]
SETTINGS = {"seed": 1}
