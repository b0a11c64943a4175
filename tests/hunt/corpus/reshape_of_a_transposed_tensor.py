"""A reshape of a transposed tensor is a view with columns in front."""


def function(x):
    return x.reshape(-1, 2, 2)


ARGUMENTS = {
    "x": "N 4, transposed",
}
CALLS = [
    {"N": 3},
]
SETTINGS = {"dtype": "float64", "seed": 11095}
