"""An edit of a detached view by a tensor that has a gradient: the view has its history then."""


def function(z, y):
    v1 = z.detach()
    v1.add_(z)
    h = y * 2
    v2 = h.detach()
    v2.mul_(y)
    return v1, v2 * 1, h


ARGUMENTS = {
    "z": "P 1, leaf",
    "y": "P 1, leaf",
}
CALLS = [
    {"P": 1},
    {"P": 3, "after": "between"},
]
SETTINGS = {"dtype": "float64", "values": "normal", "seed": 7888}
