"""A single row is expanded to a number of rows that only running tells."""


def function(x, e):
    kept = e[0][e[0] > 0]
    return x.expand(len(kept), -1) * 2


ARGUMENTS = {
    "x": "N 4",
    "e": "2 E, < 9",
}
CALLS = [
    {"E": 5, "N": 1},
    {"E": 7, "N": 1},
]
SETTINGS = {"dtype": "float64", "values": "normal", "seed": 9087}
