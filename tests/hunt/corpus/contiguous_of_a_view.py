"""What is contiguous is its own contiguous(): one tensor, returned twice."""


def function(x):
    positive = (x > 0).data
    columns = x[:, :2]
    return positive.contiguous(), positive, columns.double(), columns


ARGUMENTS = {
    "x": "N 4",
}
CALLS = [
    {"N": 3},
]
SETTINGS = {"dtype": "float64", "seed": 14749}
