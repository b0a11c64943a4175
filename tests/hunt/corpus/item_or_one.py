"""Crash: a number that only running tells."""


def function(x):
    n = (x > 0).sum().item() or 1
    return x / n, x * bool((x > 5).any())


ARGUMENTS = {
    "x": "N 4, leaf",
}
CALLS = [
    {"N": 3},
    {"N": 50},
]
SETTINGS = {"seed": 1}
