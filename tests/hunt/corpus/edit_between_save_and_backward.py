"""Edits: autograd refuses a backward through a tensor that was edited after it was saved."""

from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.act = nn.ReLU(inplace=True)

    def forward(self, y):
        h = self.lin(y)
        self.act(y)
        return h


ARGUMENTS = {
    "y": "N 4",
}
CALLS = [
    {"N": 2},
]
SETTINGS = {"seed": 1}
