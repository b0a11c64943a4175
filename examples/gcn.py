"""A two-layer GCN of PyTorch Geometric, compiled by adding one line to its class."""

import torch
import torch.nn.functional as F
from torch_geometric.nn import GCNConv

import gnnc
from gnnc.frontend.tools.datasets import citation


class GCN(torch.nn.Module):
    def __init__(self, features: int, hidden: int, classes: int):
        super().__init__()
        self.first = GCNConv(features, hidden)
        self.second = GCNConv(hidden, classes)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        x = F.dropout(F.relu(self.first(x, edge_index)), training=self.training)
        return self.second(x, edge_index)


def main() -> None:
    task = citation()
    x, edge_index, y = (torch.from_numpy(a) for a in (task.x, task.edge_index, task.y))
    model = gnnc.compile(GCN(x.shape[1], 16, task.classes))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for epoch in range(100):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x, edge_index)[task.train], y[task.train])
        loss.backward()
        optimizer.step()
        if epoch % 20 == 19:
            print(f"epoch {epoch + 1:3}  loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        right = model(x, edge_index).argmax(1) == y
    print(f"test accuracy {right[task.test].float().mean().item():.1%}")
    print(gnnc.explain(model))


if __name__ == "__main__":
    main()
