"""Effects: a hook added after the first call."""

from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        return self.lin(x)


ARGUMENTS = {
    "x": "N 4, leaf",
}
CALLS = [
    {"N": 3},
    {"N": 3, "before": "hook"},
]
SETTINGS = {"seed": 1}
