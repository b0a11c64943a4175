"""Crash: gradients of an embedding that are sparse."""

from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(3, 4, sparse=True)

    def forward(self, k):
        return self.emb(k)


ARGUMENTS = {
    "k": "N, < 3",
}
CALLS = [
    {"N": 50},
]
SETTINGS = {"seed": 1}
