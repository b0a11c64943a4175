"""Sizes of 0 and 1: programs give eager's values, gradients and errors for every size, in whatever
order sizes come, and tell them apart only where they ask."""

from __future__ import annotations

import copy
import math
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

import torch.nn.functional as F  # noqa: E402
import torch.utils._pytree as pytree  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch_geometric.nn import GCNConv, HANConv, HeteroConv, SAGEConv, global_mean_pool  # noqa: E402
from torch_geometric.utils import scatter, softmax  # noqa: E402

import gnnc  # noqa: E402
from gnnc.frontend.torch.capture.capture import asked_sizes, dynamo_compile  # noqa: E402

# eager's warning of a variance of one number; under pytest it would be raised
pytestmark = pytest.mark.filterwarnings("ignore:.*degrees of freedom is <= 0")

ORDERS = ((50, 0, 1, 2, 3), (0, 50, 3, 1, 2), (1, 3, 0, 2, 50))


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()


def arguments(n: int, m: int) -> tuple[Tensor, ...]:
    """n nodes with features and a row for all, m edges (none without nodes) with a weight each."""
    g = torch.Generator().manual_seed(100 * n + m)
    x = torch.randn(n, 3, generator=g, dtype=torch.float64)
    e = torch.randint(0, max(n, 1), (2, m if n else 0), generator=g)
    w = torch.rand(e.size(1), 1, generator=g, dtype=torch.float64)
    return x.requires_grad_(), e, w.requires_grad_()


# ---------------------------------------------------------------- what asks


def compared(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    if e.size(1) == 0:
        return x * 2
    return x[e[0]].sum(0)


def counted(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    return x * 3 if x.numel() > 0 else x.sum() + 1


def truth(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    return x * (e.size(1) or 7) if len(x) else x + 1


def alone(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    return x * 2 if len(x) == 1 else x - 1


def of_a_value(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    y = x[e[0]]
    return y.mean(0) if y.size(0) != 0 else x


def after_a_break(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    y = x * 2
    torch._dynamo.graph_break()
    return y[e[0]] if e.size(1) else y


def squeezed_rows(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    return w.squeeze() * 2


def squeezed_first(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    return w.squeeze(0) * 2


def largest(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    return x.max()


def largest_row(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    return x.amax(0)


def normalised(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    return F.batch_norm(x, None, None, training=True)


def named_rows(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    return x.view(x.size(0), -1) * 2


ASKING = {
    compared: 2,
    counted: 2,
    truth: 3,
    alone: 2,
    of_a_value: 2,
    after_a_break: 3,
    squeezed_rows: 2,
    squeezed_first: 2,
    largest: 1,
    largest_row: 1,
    normalised: 2,
    named_rows: 1,
}
"""With the number of programs that there may be, over all sizes."""


# ---------------------------------------------------------------- what does not


def at_least_one(x: Tensor, e: Tensor, w: Tensor) -> Any:
    return x / max(e.size(1), 1), x * min(x.size(0), 1), x.size(0) > 0, x.numel()


def squeezed(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    return x[e[0]] * w.squeeze(-1).unsqueeze(-1)


def weights_squeezed(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    return scatter(x[e[0]] * w.squeeze(-1).view(-1, 1), e[1], 0, x.size(0), "sum")


def means(x: Tensor, e: Tensor, w: Tensor) -> Any:
    return x.mean(0), x.mean(), x.sum(0), scatter(x[e[0]], e[1], 0, x.size(0), "mean")


def spread(x: Tensor, e: Tensor, w: Tensor) -> Any:
    y = x + torch.arange(x.size(0), dtype=x.dtype).unsqueeze(-1) ** 2
    return y.var(0), y.var(0, unbiased=False), y.var()


def softmaxes(x: Tensor, e: Tensor, w: Tensor) -> Any:
    return torch.softmax(x, 0), softmax(w.squeeze(-1), e[1], num_nodes=x.size(0))


def joined(x: Tensor, e: Tensor, w: Tensor) -> Any:
    return torch.cat([x, x[e[0]]]) * 2, torch.cat([x[:, 0], w[:, 0]])


def with_loops(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    loops = torch.arange(x.size(0))
    e = torch.cat([e, torch.stack([loops, loops])], 1)
    return torch.zeros_like(x).index_add(0, e[1], x[e[0]])


def repeated(x: Tensor, e: Tensor, w: Tensor) -> Any:
    return w.expand(-1, 3) * x[e[0]], w.expand(w.size(0), 3) * 2, x.view(-1, 3, 1).flatten(1) * 2


def kept(x: Tensor, e: Tensor, w: Tensor) -> Any:
    y = x[e[0]][e[0] != e[1]]
    return y * 2, y.mean(0), y.sum() / max(y.size(0), 1)


def by_stacked_factors(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    """torch asks whether what it turns lies without gaps, by comparisons in C++."""
    factors = torch.ones(2, 3, 4, dtype=x.dtype)
    return (x.unsqueeze(0) @ factors).sum(0)


FREE = (
    at_least_one,
    squeezed,
    weights_squeezed,
    means,
    spread,
    softmaxes,
    joined,
    with_loops,
    repeated,
    kept,
    by_stacked_factors,
)

IN_TORCH = {
    "empty": lambda x, e, w: (x[0:0] * 2, x[:1] * 2, x[:2] * 2),
    "first": lambda x, e, w: x[0] * 2,
    "last": lambda x, e, w: x[-1] * 2,
    "flat": lambda x, e, w: x.reshape(-1) * 2,
    "gram": lambda x, e, w: (x.t() @ x, x @ x.t()),
    "squeezed twice": lambda x, e, w: torch.squeeze(w, (0, 1)) * 2,
}
"""What has no rule: what is asked of sizes there is right, too."""


# ---------------------------------------------------------------- comparison


def outcome(f: Callable[..., Any], args: Sequence[Tensor]) -> Any:
    """Results and gradients, or the type of what is raised."""
    mine = [x.detach().clone().requires_grad_(x.requires_grad) for x in args]
    try:
        results = pytree.tree_leaves(f(*mine))
    except Exception as error:
        return type(error)
    total = [
        (y * torch.cos(torch.arange(y.numel())).view(y.shape)).sum() for y in results if wants(y)
    ]
    if total:
        torch.stack(total).sum().backward()
    grads = [torch.zeros_like(x) if x.grad is None else x.grad for x in mine if wants(x)]
    return [*results, *grads]


def wants(x: Any) -> bool:
    return isinstance(x, Tensor) and x.requires_grad


def assert_alike(got: Any, want: Any, where: object) -> None:
    if isinstance(want, type) or isinstance(got, type):
        assert got is want, where
        return
    for x, y in zip(got, want, strict=True):
        assert type(x) is type(y), where
        if isinstance(y, Tensor):
            assert (x.shape, x.dtype) == (y.shape, y.dtype), where
            assert torch.allclose(x, y, rtol=1e-9, atol=1e-11, equal_nan=True), where
        else:
            assert x == y, where


def check(f: Callable[..., Any], compiled: Callable[..., Any], order: Sequence[int]) -> None:
    for n in order:
        for m in (n, n + 2) if n < 50 else (50, 0, 1):
            args = arguments(n, m)
            assert_alike(outcome(compiled, args), outcome(f, args), (n, m))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("order", ORDERS, ids=lambda o: f"{o[0]}-first")
@pytest.mark.parametrize("f", [*ASKING, *FREE, *IN_TORCH.values()])
def test_captured(f: Callable[..., Any], order: Sequence[int]) -> None:
    """What is traced is right for the sizes that its guards let through."""
    check(f, dynamo_compile(f, lambda gm, _: gm.forward, notice=lambda _: None), order)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("f", ASKING)
def test_one_program_for_each_answer(f: Callable[..., Any]) -> None:
    compiled = gnnc.compile(f)
    check(f, compiled, ORDERS[1])
    assert gnnc.explain(compiled).graphs <= ASKING[f]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("f", FREE)
def test_one_program_for_all(f: Callable[..., Any]) -> None:
    compiled = gnnc.compile(f)
    check(f, compiled, ORDERS[1])
    report = gnnc.explain(compiled)
    assert (report.graphs, report.fallbacks) == (1, [])


def test_a_question_that_torch_reasons_wrongly_about() -> None:
    """`3 * n == n` is true of no numbers; torch has concluded that 3 is 1."""

    def counted(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
        h = x.index_select(0, e[0]).flatten()
        return x.sum() if h.size(0) == e.size(1) else h.sum() * 2

    compiled = gnnc.compile(counted)
    for n, m in ((5, 5), (0, 0), (4, 2)):
        args = arguments(n, m)
        assert_alike(outcome(compiled, args), outcome(counted, args), (n, m))


@pytest.mark.parametrize("order", [(1, 1), (5, 1), (5, 5), (1, 5)], ids=str)
def test_rows_that_broadcast(order: tuple[int, int]) -> None:
    """[1, F] against [N, F], and [N, F] against [N, F]: two programs, in any order."""

    def added(x: Tensor, y: Tensor) -> Any:
        return (x + y) * 2, torch.where(x > 0, y, x), torch.maximum(x, y)

    def rows(n: int) -> Tensor:
        return torch.randn(n, 3, dtype=torch.float64, requires_grad=True)

    compiled = gnnc.compile(added)
    for n, m in (order, (5, 1), (1, 1), (5, 5), (0, 0), (0, 1), (1, 7), (7, 1), (3, 3)):
        args = rows(n), rows(m)
        assert_alike(outcome(compiled, args), outcome(added, args), (n, m))
    report = gnnc.explain(compiled)
    assert (report.graphs, report.fallbacks) == (3, [])  # which of the two is repeated


def test_weights_of_one_column() -> None:
    class Weighted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(3, 4)

        def forward(self, x: Tensor, e: Tensor, w: Tensor) -> Tensor:
            return self.conv(x, e, w.squeeze(-1))

    model = Weighted().double()
    compiled = gnnc.compile(copy.deepcopy(model))
    check(model, compiled, ORDERS[2])
    report = gnnc.explain(compiled)
    assert (report.graphs, report.fallbacks) == (1, [])


def test_pools_of_no_nodes() -> None:
    def pooled(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
        return global_mean_pool(x * 2, e[0, : x.size(0)] * 0, 2) if e.size(1) else x

    check(pooled, gnnc.compile(pooled), ORDERS[0])


# ---------------------------------------------------------------- many relations

RELATIONS = [("a", f"r{k}", "ab"[k % 2]) for k in range(20)]


class Related(nn.Module):
    """A heterogeneous layer on plain arguments."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, a: Tensor, b: Tensor, *edges: Tensor) -> tuple[Tensor, ...]:
        out = self.layer({"a": a, "b": b}, dict(zip(RELATIONS, edges, strict=True)))
        return tuple(y for y in out.values() if y is not None)


def related(seed: int) -> tuple[Tensor, ...]:
    """Half of the relations are empty, another half each time."""
    g, draw = torch.Generator().manual_seed(seed), random.Random(seed)
    edges = [torch.randint(0, 5, (2, draw.choice([0, 0, 1, 7])), generator=g) for _ in RELATIONS]
    nodes = [torch.randn(5, 4, generator=g, dtype=torch.float64) for _ in "ab"]
    return (*nodes, *edges)


@pytest.mark.parametrize("kind", ["sage", pytest.param("han", marks=pytest.mark.long)])
def test_any_of_twenty_relations_may_be_empty(kind: str) -> None:
    torch.manual_seed(0)
    if kind == "sage":
        layer: nn.Module = HeteroConv({r: SAGEConv((4, 4), 3) for r in RELATIONS})
    else:
        layer = HANConv(4, 4, (["a", "b"], RELATIONS), heads=2)
    model = Related(layer).double()
    compiled = gnnc.compile(copy.deepcopy(model))
    for seed in range(6):
        args = related(seed)
        assert_alike(outcome(compiled, args), outcome(model, args), seed)
    report = gnnc.explain(compiled)
    assert (report.graphs, report.fallbacks) == (1, [])


def test_answers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked_sizes, "MOST_ANSWERS", 3)

    def asking(a: Tensor, b: Tensor, c: Tensor, x: Tensor) -> Tensor:
        for e in (a, b, c):
            x = x * 2 + 1 if e.size(1) == 0 else x + x[e[0]].sum(0)
        return x

    compiled = gnnc.compile(asking)
    x = torch.randn(4, 3)
    for pattern in (*range(8), 0, 7):
        edges = [torch.randint(0, 4, (2, pattern >> k & 1)) for k in range(3)]
        assert torch.allclose(compiled(*edges, x), asking(*edges, x)), pattern
    report = gnnc.explain(compiled)
    assert report.graphs == 3
    (message,) = report.fallbacks
    assert "a.size()[1], b.size()[1], c.size()[1]" in message and "3 programs" in message


# ---------------------------------------------------------------- numbers that depend on data


def or_one(x: Tensor, m: Tensor) -> Tensor:
    return x * (m.sum().item() or 1)


def times_any(x: Tensor, m: Tensor) -> Tensor:
    return x * bool(m.any())


def if_counted(x: Tensor, m: Tensor) -> Tensor:
    return x * 2 if int(m.sum()) > 0 else x - 1


def if_any(x: Tensor, m: Tensor) -> Tensor:
    return x * 2 if m.any() else x - 1


def if_kept(x: Tensor, m: Tensor) -> Tensor:
    y = x[m]
    return y.mean(0) if y.size(0) else x


def kept_squeezed(x: Tensor, m: Tensor) -> Tensor:
    return x[m].squeeze(0) * 2


def kept_largest(x: Tensor, m: Tensor) -> Tensor:
    return x[m].max()


def kept_largest_columns(x: Tensor, m: Tensor) -> Tensor:
    return x[m].amax(0)


def kept_norm(x: Tensor, m: Tensor) -> Tensor:
    return x[m].norm(p=math.inf, dim=0)


def largest_with_loops(x: Tensor, m: Tensor) -> Tensor:
    return torch.cat([x[m], x]).max()


def positions_squeezed(x: Tensor, m: Tensor) -> Tensor:
    return x[m.nonzero().squeeze()] * 2


@pytest.mark.parametrize(
    "f",
    [
        or_one,
        times_any,
        if_counted,
        if_any,
        if_kept,
        kept_squeezed,
        positions_squeezed,
    ],
)
def test_numbers_that_only_running_tells(f: Callable[..., Any]) -> None:
    """They end in torch, which is told with the place."""
    compiled = gnnc.compile(f)
    for marks in ((), (0,), (2,), (0, 3), (0, 1, 2, 3)):
        x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
        m = torch.zeros(4, dtype=torch.bool)
        m[list(marks)] = True
        assert_alike(outcome(compiled, (x, m)), outcome(f, (x, m)), marks)
    messages = " ".join(gnnc.explain(compiled).fallbacks)
    assert re.search(rf"{re.escape(__file__)}:\d+", messages), messages


@pytest.mark.parametrize("f", [kept_largest, kept_largest_columns, kept_norm, largest_with_loops])
def test_extremes_of_rows_that_only_running_tells(f: Callable[..., Any]) -> None:
    """They are compiled; of no rows eager's exception is raised."""
    compiled = gnnc.compile(f)
    for marks in ((0, 1, 2, 3), (0,), (), (2,), (0, 3)):
        x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
        m = torch.zeros(4, dtype=torch.bool)
        m[list(marks)] = True
        assert_alike(outcome(compiled, (x, m)), outcome(f, (x, m)), marks)
    assert not gnnc.explain(compiled).fallbacks


def test_one_row_meets_rows_that_only_running_tells() -> None:
    """torch by itself would take the one row for many, and demand as many of the others."""

    def scaled(x: Tensor, m: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        return x[m] * w, torch.where(x[m] > 0, w, x[m])

    compiled = gnnc.compile(scaled)
    for marks, rows in (((0, 3), 1), ((), 1), ((2,), 1), ((0, 3), 2), ((1,), 1)):
        x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
        w = torch.randn(rows, 3, dtype=torch.float64, requires_grad=True)
        m = torch.zeros(4, dtype=torch.bool)
        m[list(marks)] = True
        assert_alike(outcome(compiled, (x, m, w)), outcome(scaled, (x, m, w)), (marks, rows))


def ranked(x: Tensor, e: Tensor, b: Tensor) -> Tensor:
    h = torch.zeros_like(x).index_add(0, e[1], x[e[0]])
    count = scatter(torch.ones_like(b), b, reduce="sum")  # the greatest number tells how many
    order = torch.sort(h.sum(1), stable=True)[1]  # torch does this
    return h[order] / count[b[order]].unsqueeze(-1)


def test_a_number_that_several_parts_count_rows_by() -> None:
    """A graph that is cut is cut there too, and what comes before the number is compiled."""
    g = torch.Generator().manual_seed(0)
    compiled = gnnc.compile(ranked)
    for n in (5, 8):
        x, e = torch.randn(n, 3, generator=g), torch.randint(0, n, (2, 9), generator=g)
        b = torch.arange(n) // 2
        torch.testing.assert_close(compiled(x, e, b), ranked(x, e, b))
    reasons = " ".join(gnnc.explain(compiled).fallbacks)
    assert "item: a number that counts rows" in reasons
    assert "which no input of the graph tells" not in reasons
    assert gnnc.explain(compiled).graphs > 0
