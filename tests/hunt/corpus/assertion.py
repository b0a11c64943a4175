"""Effects: an assertion on a tensor."""


def function(x):
    assert (x.abs() < 1).all(), "too large"
    return x * 2


ARGUMENTS = {
    "x": "N 4",
}
CALLS = [
    {"N": 50},
]
SETTINGS = {"seed": 1}
