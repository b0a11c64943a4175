"""Edits: an embedding with a largest norm edits its weight."""

from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(3, 4, max_norm=1.0)

    def forward(self, k):
        return self.emb(k)


ARGUMENTS = {
    "k": "N, < 3",
}
CALLS = [
    {"N": 3},
]
SETTINGS = {"seed": 1}
