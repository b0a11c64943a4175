"""Bad input: a row that is not there."""


def function(x):
    return x[-1] * 2, x[0]


ARGUMENTS = {
    "x": "N 4, leaf",
}
CALLS = [
    {"N": 3},
    {"N": 0},
]
SETTINGS = {"seed": 1}
