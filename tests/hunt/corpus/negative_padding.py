"""Edges of numbers: padding_idx counted from the end."""

from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(3, 4, padding_idx=-1)

    def forward(self, k):
        return self.emb(k)


ARGUMENTS = {
    "k": "N, < 3",
}
CALLS = [
    {"N": 50},
]
SETTINGS = {"seed": 1}
