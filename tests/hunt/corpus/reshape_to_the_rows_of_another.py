"""A view of a transposed tensor, in a shape that another argument tells."""


def function(x, m):
    return x.reshape(len(m), 2, 2)


ARGUMENTS = {
    "x": "N 4, transposed",
    "m": "N, bool",
}
CALLS = [
    {"N": 3},
]
SETTINGS = {"dtype": "float64", "seed": 3643}
