"""PyG's `coalesce` inside of a model: the sort comes first, and the model is one program behind it,
with and without duplicates."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv
from torch_geometric.utils import coalesce, to_undirected

from .contract import check

DUPLICATES = torch.tensor([[0, 1, 1, 2, 4, 0, 1], [1, 0, 0, 3, 1, 1, 4]])
NONE_TWICE = torch.tensor([[3, 1, 0, 2], [0, 0, 2, 1]])
NOTHING = torch.empty(2, 0, dtype=torch.int64)


class Changed(nn.Module):
    """A layer on edges that are changed before."""

    def __init__(self, change: Callable[..., Any]) -> None:
        super().__init__()
        self.change, self.conv = change, GCNConv(4, 3)

    def forward(self, x: Tensor, edges: Tensor, *weights: Tensor) -> Any:
        changed = self.change(edges, x.size(0), *weights)
        if isinstance(changed, Tensor):
            return self.conv(x, changed), changed
        return self.conv(x, *changed), changed


CHANGES: dict[str, Callable[..., Any]] = {
    "coalesce": lambda e, n: coalesce(e, num_nodes=n),
    "nodes-from-data": lambda e, n: coalesce(e),
    "by-column": lambda e, n: coalesce(e, None, n, sort_by_row=False),
    "undirected": lambda e, n: to_undirected(e, num_nodes=n),
    "undirected-from-data": lambda e, n: to_undirected(e),
}
WEIGHED: dict[str, Callable[..., Any]] = {
    "sum": lambda e, n, w: coalesce(e, w, n),
    "mean": lambda e, n, w: to_undirected(e, w, n, reduce="mean"),
    "mul": lambda e, n, w: coalesce(e, w, n, reduce="mul"),
    "max": lambda e, n, w: coalesce(e, w.detach(), n, reduce="max"),
}


def args(edges: Tensor, n: int = 6) -> tuple[Tensor, Tensor, Tensor]:
    count = edges.shape[1]
    weights = torch.linspace(0.5, 1.5, count) if count else torch.empty(0)
    return torch.linspace(-1, 1, n * 4).view(n, 4).sin(), edges, weights


CALLS = [args(e, n) for e, n in ((DUPLICATES, 6), (NONE_TWICE, 5))]


@pytest.mark.parametrize("name", CHANGES)
def test_edges(name: str):
    report = check(Changed(CHANGES[name]), *[a[:2] for a in CALLS])
    assert report.graphs == 1
    assert [r.split(":")[0] for r in report.fallbacks] == ["gnnc.coalesced"], report.fallbacks


@pytest.mark.parametrize("name", WEIGHED)
def test_weights(name: str):
    calls = [(x, e, w.requires_grad_()) for x, e, w in CALLS]
    report = check(Changed(WEIGHED[name]), *calls)
    assert report.graphs == 1
    assert [r.split(":")[0] for r in report.fallbacks] == ["gnnc.coalesced"], report.fallbacks


@pytest.mark.parametrize(
    "function, given",
    [
        (lambda e, w: coalesce(e, [w, w * 2], 6), (DUPLICATES, torch.linspace(0, 1, 7))),
        (lambda e, w: coalesce(e, w, 6, "min"), (DUPLICATES, torch.zeros(7).requires_grad_())),
        (lambda e, w: coalesce(e, w, 6, "max"), (NONE_TWICE, torch.zeros(4).requires_grad_())),
        (lambda e, w: coalesce(e, w, 6, "mean"), (DUPLICATES, torch.arange(7))),
        (lambda e, w: coalesce(e, w, 6), (DUPLICATES, torch.arange(7))),
        (lambda e: coalesce(e, is_sorted=True), (NONE_TWICE.sort().values,)),
        (lambda e: coalesce(e), (NOTHING,)),
        (lambda e: coalesce(e, num_nodes=2**32), (DUPLICATES,)),
        (lambda e, w: coalesce(e, w, 6, "middle"), (DUPLICATES, torch.ones(7))),
    ],
    ids=["list", "ties", "zeros", "integers", "integer sums", "sorted", "none", "overflow", "name"],
)
def test_what_pyg_gives_or_refuses(function: Callable[..., Any], given: tuple[Any, ...]):
    check(function, given)
