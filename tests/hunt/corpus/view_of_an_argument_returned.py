"""Results that alias: a view of an argument."""


def function(x, e):
    return x[e[0]], e[1], x[:, :2]


ARGUMENTS = {
    "x": "N 4, leaf",
    "e": "2 E, < N",
}
CALLS = [
    {"E": 5, "N": 3},
]
SETTINGS = {"seed": 1}
