"""Results that alias: an argument returned beside others is the argument."""


def function(x, e):
    return x[e[0]], e


ARGUMENTS = {
    "x": "N 4, leaf",
    "e": "2 E, < N",
}
CALLS = [
    {"E": 5, "N": 3},
    {"E": 0, "N": 2},
]
SETTINGS = {"seed": 1}
