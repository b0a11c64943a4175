"""A reshape of columns is a view: the fake tensors of Dynamo make a copy."""


def function(x):
    heads = x[:, :2].reshape(-1, 2, 1)
    heads.mul_(2)
    return x * 1, heads, x[..., :1].flatten()


ARGUMENTS = {
    "x": "N 4",
}
CALLS = [
    {"N": 3},
    {"N": 5},
]
SETTINGS = {"dtype": "float64", "seed": 11125}
