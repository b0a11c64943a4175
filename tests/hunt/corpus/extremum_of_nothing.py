"""Bad input: the largest of no rows."""


def function(x):
    return x.max(0).values


ARGUMENTS = {
    "x": "N 4, leaf",
}
CALLS = [
    {"N": 3},
    {"N": 0},
]
SETTINGS = {"seed": 1}
