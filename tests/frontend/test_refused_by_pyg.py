"""What PyG's own functions refuse is refused compiled: leaves that stand for them know more."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch_geometric.typing
from torch import Tensor
from torch_geometric.experimental import set_experimental_mode
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import segment, softmax, to_dense_batch

from .contract import check

X = torch.linspace(-1, 1, 24).view(6, 4).requires_grad_()
GROUP, POINTER = torch.tensor([0, 0, 1, 1, 2, 2]), torch.tensor([0, 2, 4, 6])
EDGES = torch.tensor([[0, 1, 2, 2], [1, 0, 2, 1]])


def dense(x: Tensor, group: Tensor) -> Any:
    with set_experimental_mode(True, "disable_dynamic_shapes"):
        return to_dense_batch(x, group, max_num_nodes=3)


@pytest.mark.parametrize(
    "function, args",
    [
        (lambda x, p: segment(x, p, "mul"), (X, POINTER)),
        (lambda e: gcn_norm(e, flow="sideways"), (EDGES,)),
        (gcn_norm, (EDGES, torch.arange(4))),
        (dense, (X, GROUP)),
    ],
    ids=["reduction", "flow", "integer weights", "sizes"],
)
def test_arguments_that_pyg_refuses(function: Callable[..., Any], args: tuple[Any, ...]):
    with pytest.raises(Exception):
        function(*args)
    check(function, args)


def test_a_softmax_that_takes_torch_scatter(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch_geometric.typing, "WITH_TORCH_SCATTER", False)
    check(lambda x, p: softmax(x, ptr=p, dim=1), (X, torch.tensor([0, 2, 4])), (X, POINTER))
