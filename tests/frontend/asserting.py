"""A model with assertions, in a module of its own: pytest rewrites those of test modules."""

from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from .models import WIDTH


class Asserting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(WIDTH, 4)

    def forward(self, x: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
        assert (weight >= 0).all(), "negative weights"
        assert weight.min() < 1
        return self.conv(x, edge_index, weight)
