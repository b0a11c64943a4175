"""Effects: the running statistics of no rows."""

from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(1)

    def forward(self, y):
        return self.norm(y)


ARGUMENTS = {
    "y": "N 1",
}
CALLS = [
    {"N": 3},
    {"N": 0, "after": "none"},
    {"N": 1, "after": "none"},
]
SETTINGS = {"seed": 1}
