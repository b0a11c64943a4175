"""Slices of the rows of a set (prefixes, suffixes, single rows, splits) are compiled: torch gives
the same values and gradients, for bounds from either end, beyond an end, and crossed.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch_geometric.nn import GATConv, HeteroLayerNorm, SAGEConv
from torch_geometric.utils import trim_to_layer

import gnnc

from .function_checks import check, drawn

BOUNDS = [(0, 5), (2, 7), (3, 99), (-4, -1), (0, -3), (-99, 2), (6, 3), (4, 4), (0, 0), (1, 2)]


def edges(count: int, sources: int, targets: int, seed: int = 0) -> Tensor:
    g = torch.Generator().manual_seed(seed)
    ends = (torch.randint(0, n, (count,), generator=g) for n in (sources, targets))
    return torch.stack(list(ends))


def compared(f: Callable[..., Tensor], calls: list[tuple[object, ...]]) -> None:
    """One program serves all calls: torch's values, and its gradients of the float tensors."""
    compiled = gnnc.compile(f)
    for args in calls:
        results: list[list[Tensor]] = []
        for g in (f, compiled):
            mine = [
                x.clone().requires_grad_() if isinstance(x, Tensor) and x.is_floating_point() else x
                for x in args
            ]
            leaves = [x for x in mine if isinstance(x, Tensor) and x.requires_grad]
            y = g(*mine)
            weight = torch.cos(torch.arange(y.numel(), dtype=y.dtype)).view(y.shape)
            grads = torch.autograd.grad((y * weight).sum(), leaves, allow_unused=True)
            results.append([y, *(x for x in grads if x is not None)])
        assert len(results[0]) == len(results[1])
        for want, got in zip(*results, strict=True):
            assert got.shape == want.shape
            torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-11)
    report = gnnc.explain(compiled)
    assert report.fallbacks == [] and report.kernels


def test_bounds_that_the_call_gives() -> None:
    def f(x: Tensor, lo: int, hi: int) -> Tensor:
        return x[lo:hi].tanh() * 2

    compared(f, [(drawn(n, 3).detach(), *b) for n in (9, 12) for b in BOUNDS])


def test_prefixes_and_suffixes() -> None:
    def f(x: Tensor, k: int) -> Tensor:
        return x[:k].sum(0) * x[k:].sum(0) + x[-k:].sum(0) * x[:-k].sum(0)

    compared(f, [(drawn(n, 3).detach(), k) for n, k in ((9, 2), (12, 5), (7, 7))])


CONSTANT: dict[str, Callable[[Tensor], list[Tensor]]] = {
    "the last row": lambda x: [x[-1] * x],
    "a row": lambda x: [x.select(0, 3).exp(), x[2, 1] * x],
    "few rows": lambda x: [x[2:5] @ torch.ones(4, 2, dtype=x.dtype), x[-2:] * 2],
    "all but one": lambda x: [x[1:] * 2, x[:-1].cos()],
    "beyond the end": lambda x: [x[3:1000] * 2],
    "no rows": lambda x: [x[7:3].sum() + x.sum()],
    "rows and columns": lambda x: [x[1:, 1:3] * x[1:, :2]],
    "a slice of a slice": lambda x: [x[2:][:-1][1:] * 2],
    "heads": lambda x: [x.view(-1, 2, 2)[3:].flatten(1) * 2],
    "narrow": lambda x: [x.narrow(0, 1, 4) * 2],
    "chunks": lambda x: [torch.stack([c.sum(0) for c in x.chunk(2)])],
    "split": lambda x: [torch.stack([c.sum(0) for c in x.split([3, x.size(0) - 3])])],
    "cut": lambda x: [torch.stack([c.sum(0) for c in torch.tensor_split(x, [2, 5])])],
    "turned round": lambda x: [torch.cat([x[4:], x[:4]]) * 2],
}


@pytest.mark.parametrize("name", CONSTANT)
def test_constant_bounds(name: str) -> None:
    check(CONSTANT[name], drawn(11, 4))


def test_split_at_numbers_of_the_call() -> None:
    def f(x: Tensor, k: int) -> Tensor:
        a, b = x.split([k, x.size(0) - k])
        c, d = x.tensor_split([k])
        return a.sum(0) * b.sum(0) + c.amax(0) * d.amax(0)

    compared(f, [(drawn(n, 3).detach(), k) for n, k in ((9, 2), (12, 5))])


def test_some_edges() -> None:
    def f(x: Tensor, e: Tensor, k: int) -> Tensor:
        src, dst = e[:, :k]
        return torch.zeros_like(x).index_add(0, dst, x[src]) - x[e[0]][k:].sum(0)

    compared(
        f, [(drawn(n, 3).detach(), edges(m, n, n), k) for n, m, k in ((9, 30, 8), (7, 20, 11))]
    )


def _halves(x: Tensor, k: int) -> Tensor:
    y = torch.zeros_like(x)
    y[:k], y[k:] = x[-k:], x[k:] * 2
    return y


def _columns(x: Tensor, k: int) -> Tensor:
    y = x * 1
    y[k:, 1:3] = x[k:, :2]
    y[-2, 1] = 7
    y[3] = x[4]
    return y


def _in_place(x: Tensor, k: int) -> Tensor:
    y = x * 1
    y[:k] += 1
    y[:k].mul_(2)
    y.narrow(0, 1, 3).add_(x.mean(0))
    y[:k][0] = 5
    return y


def _nothing(x: Tensor, k: int) -> Tensor:
    y = x * 1
    y[100:], y[:0], y[5:2] = 5, 1, 3
    y[2:5] = torch.ones(3, 4, dtype=x.dtype)
    return y


def _turned(x: Tensor, k: int) -> Tensor:
    y, z = x.t() * 1, (x * 1).view(-1, 2, 2)
    y[:, :k] = 3.0
    z[:k, 1] = x[:k, :2]
    return y.t() + z.flatten(1)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("edit", [_halves, _columns, _in_place, _nothing, _turned])
def test_edits_of_some_rows(edit: Callable[[Tensor, int], Tensor]) -> None:
    compared(edit, [(drawn(n, 4).detach(), k) for n, k in ((9, 2), (12, 5))])


def test_a_row_that_is_not_there() -> None:
    compiled = gnnc.compile(lambda x: x[2] * 2)
    assert torch.equal(compiled(torch.ones(3, 2)), torch.full((2,), 2.0))
    with pytest.raises(IndexError, match="index 2 is out of bounds"):
        compiled(torch.ones(2, 2))


# ---------------------------------------------------------------- sampled batches


class Blocks(nn.Module):
    """Layers on message-flow blocks: the targets are the first of the sources."""

    def __init__(self, conv: Callable[[int, int], nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList([conv(4, 8), conv(8, 3)])

    def forward(self, x: Tensor, blocks: list[Tensor], targets: list[int], y: Tensor) -> Tensor:
        for layer, block, n in zip(self.layers, blocks, targets, strict=True):
            x = layer((x, x[:n]), block)
        return nn.functional.cross_entropy(x, y, reduction="none")


def batch(sizes: tuple[int, int, int], seed: int) -> tuple[object, ...]:
    n, middle, seeds = sizes
    blocks = [edges(40, n, middle, seed), edges(20, middle, seeds, seed + 1)]
    y = torch.randint(0, 3, (seeds,), generator=torch.Generator().manual_seed(seed))
    return drawn(n, 4, seed=seed).detach(), blocks, [middle, seeds], y


@pytest.mark.parametrize("conv", [SAGEConv, lambda i, o: GATConv(i, o, add_self_loops=False)])
def test_blocks(conv: Callable[[int, int], nn.Module]) -> None:
    """One program for batches of all sizes, the loss in it."""
    torch.manual_seed(0)
    model = Blocks(conv).double()
    compared(model, [batch((50, 20, 7), 1), batch((61, 25, 9), 2), batch((33, 12, 4), 3)])
    assert len(gnnc.explain(gnnc.compile(model)).fallbacks) == 0


class Trimmed(nn.Module):
    """PyG's trim_to_layer between layers, and a loss on the first rows."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([SAGEConv(4, 8), SAGEConv(8, 3)])

    def forward(
        self, x: Tensor, e: Tensor, nodes: list[int], links: list[int], y: Tensor
    ) -> Tensor:
        for i, layer in enumerate(self.layers):
            x, e, _ = trim_to_layer(i, nodes, links, x, e)
            x = layer(x, e).relu()
        seeds = nodes[0]
        return nn.functional.cross_entropy(x[:seeds], y[:seeds], reduction="none")


def sampled(nodes: list[int], links: list[int], seed: int) -> tuple[object, ...]:
    """Edges of hop k lead from its nodes to those of the hop before."""
    ends = [0]
    for n in nodes:
        ends.append(ends[-1] + n)
    hops = [edges(m, ends[k + 2], ends[k + 1], seed + k) for k, m in enumerate(links)]
    y = torch.randint(0, 3, (ends[-1],), generator=torch.Generator().manual_seed(seed))
    return drawn(ends[-1], 4, seed=seed).detach(), torch.cat(hops, 1), nodes, links, y


def test_trimmed_layers() -> None:
    torch.manual_seed(0)
    compared(
        Trimmed().double(),
        [sampled([4, 9, 20], [12, 30], 1), sampled([6, 11, 25], [17, 41], 2)],
    )


def test_runs_of_rows_that_pointers_bound() -> None:
    """Single rows that bound a set are read in other shapes beside it."""
    norm = HeteroLayerNorm(8, 3).double()
    weight, bias = torch.randn(2, 3, 8, dtype=torch.double)

    def normed(x: Tensor, ptr: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return functional_call(norm, {"weight": weight, "bias": bias}, (x, None, ptr))

    bounds = ([0, 3, 7, 9], [0, 0, 12, 12], [0, 4, 5, 6])
    x = torch.randn(12, 8, dtype=torch.double)
    compared(normed, [(x[: p[-1]], torch.tensor(p), weight, bias) for p in bounds])
