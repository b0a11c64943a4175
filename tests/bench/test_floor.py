"""The hand-written GCN gives the loss and the gradients of PyG's, whatever the widths."""

import pytest
import torch
import torch.nn.functional as F

from gnnc.bench.floor.gcn import Floor
from gnnc.frontend.tools.datasets import power_law
from gnnc.frontend.tools.models import Net


@pytest.mark.parametrize(
    "widths, nodes, edges",
    [
        ([8, 6, 6, 3], 50, 300),
        ([20, 16, 5], 90, 700),  # two layers
        ([130, 40, 40, 40, 19], 400, 3000),  # four, and no width a multiple of a vector
        ([5, 150, 150, 77], 300, 900),  # more vectors than one panel holds
        ([16, 32, 32, 64], 3, 4),  # fewer nodes than chunks
    ],
)
def test_equals_pyg(widths: list[int], nodes: int, edges: int):
    drawn = power_law("small", nodes, edges, widths[0], widths[-1])
    x, edge_index, y = map(torch.from_numpy, (drawn.x, drawn.edge_index, drawn.y))
    edge_index[:, :2] = edge_index[:1, :2]  # loops, which PyG replaces by its own
    torch.manual_seed(0)
    net = Net("gcn", widths)
    for conv in net.convs:
        torch.nn.init.normal_(conv.bias)
    model = Floor(net, edge_index, nodes)
    parameters = [*model.weights, *model.biases]
    loss = F.cross_entropy(net(x, edge_index), y)
    expected = torch.autograd.grad(loss, parameters)
    found = model(x, y)
    torch.testing.assert_close(found, loss.detach())
    torch.testing.assert_close(
        torch.autograd.grad(2 * found, parameters), [2 * g for g in expected]
    )


def test_trains():
    drawn = power_law("small", 60, 400, 12, 4)
    x, edge_index, y = map(torch.from_numpy, (drawn.x, drawn.edge_index, drawn.y))
    torch.manual_seed(0)
    model = Floor(Net("gcn", [12, 8, 4]), edge_index, 60)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = model(x, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]


def test_refuses_other_nets():
    edges = torch.zeros((2, 0), dtype=torch.int64)
    for widths in ([4, 3], [4, 8, 6, 3]):
        with pytest.raises(ValueError, match="net needs two layers or more"):
            Floor(Net("gcn", widths), edges, 5)
