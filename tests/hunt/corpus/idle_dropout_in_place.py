"""A dropout that drops nothing does not edit, not even a leaf that nobody may edit."""

from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.Dropout(0.0, inplace=True)

    def forward(self, y):
        return self.act(y)


ARGUMENTS = {
    "y": "N 4, leaf",
}
CALLS = [
    {"N": 3},
]
SETTINGS = {"dtype": "float64", "seed": 12308}
