"""What a norm makes of a transposed tensor lies by rows; the fake tensors of Dynamo say as it
does. (Dynamo breaks the graph at the edit of b.)"""

from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm0 = nn.BatchNorm1d(4)

    def forward(self, x, b):
        v1 = self.norm0(x)
        b.add_(0.1, b)
        v3 = v1.amax(1)
        v1.view(-1).add_(1)
        return v3


ARGUMENTS = {
    "x": "N 4, transposed",
    "b": "4",
}
CALLS = [
    {"N": 3, "after": "none"},
    {"N": 3},
]
SETTINGS = {"dtype": "float64", "values": "normal", "seed": 9174}
