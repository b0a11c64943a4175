"""Rows that are counted by data (graphs of a batch, nodes of a mask) and meet those of an argument
or others: in calls where the two numbers differ there is eager's result, or its exception."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import global_add_pool, global_mean_pool
from torch_geometric.utils import degree

import gnnc
from gnnc.frontend.torch.importer.relations import SizesDiffer

X = torch.randn(6, 4, generator=torch.Generator().manual_seed(1))
Y = torch.randn(3, 4, generator=torch.Generator().manual_seed(2))
BATCH = torch.tensor([0, 0, 1, 1, 2, 2])
LABELS = torch.tensor([0, 1, 2])


def first(n: int) -> Tensor:
    return torch.arange(6) < n


def outcome(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    try:
        return f(*args)
    except Exception as error:
        return error


def same(f: Callable[..., Any], compiled: Callable[..., Any], args: tuple[Any, ...]) -> None:
    expected, found = outcome(f, args), outcome(compiled, args)
    if isinstance(expected, Exception):
        assert isinstance(found, type(expected)), found
    else:
        torch.testing.assert_close(found, expected)


def into_rows(x: Tensor, b: Tensor, y: Tensor) -> Tensor:
    return (torch.zeros(int(b[-1]) + 1, 4) + y)[b] + x


def added_at(x: Tensor, k: Tensor, y: Tensor) -> Tensor:
    h = x.relu()
    h[k] = h[k] + y
    return h


def checked(x: Tensor, b: Tensor, y: Tensor) -> Tensor:
    torch._check(int(b.max()) < 3)
    return x.relu() * y.sum()


POOLED = [
    *((X, BATCH, Y), (X, BATCH * 0, Y), (X, BATCH, Y[:1]), (X, BATCH * 0, Y[:1])),
    *((X, BATCH.clamp(max=1), Y), (X, BATCH, Y)),
]
MASKED = [(X, first(n), Y) for n in (3, 2, 4, 1, 0, 6)] + [(X, first(3), Y[:1])]

PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
    "sub": (lambda x, b, y: (global_mean_pool(x, b) - y).pow(2).mean(), POOLED),
    "turned": (lambda x, b, y: (y - global_mean_pool(x, b)).pow(2).mean(), POOLED),
    "cat": (lambda x, b, y: torch.cat([global_add_pool(x, b), y], 1).relu(), POOLED),
    "where": (lambda x, b, y: torch.where(y > 0, global_add_pool(x, b), y), POOLED),
    "product": (lambda x, b, y: global_add_pool(x, b).t() @ y, POOLED),
    "expand": (lambda x, b, y: y.expand(int(b.max()) + 1, 4) * 2, POOLED),
    "degree": (lambda x, b, y: degree(b).view(-1, 1) * y, POOLED),
    "zeros": (into_rows, POOLED),
    "mse": (lambda x, b, y: F.mse_loss(global_add_pool(x, b), y), POOLED),
    "cross entropy": (
        lambda x, b, y: F.cross_entropy(global_add_pool(x, b), y),
        [(X, b, LABELS) for b in (BATCH, BATCH * 0, BATCH.clamp(max=1))],
    ),
    "mask": (lambda x, k, y: (x[k] - y).pow(2).sum(), MASKED),
    "added at a mask": (added_at, MASKED),
    "pool of a mask": (lambda x, k, y: global_mean_pool(x[k], BATCH[k]) * y.sum(), MASKED),
    "pool of a mask minus rows": (
        lambda x, k, y: global_add_pool(x[k], BATCH[k]) - y,
        [MASKED[5], *MASKED],
    ),
    "two masks": (
        lambda x, k, m: (x[k] - x[m]).pow(2).sum(),
        [(X, first(a), 1 - first(b).long() == 0) for a, b in ((3, 3), (2, 3), (1, 3), (3, 1))],
    ),
    "narrow": (
        lambda x, b, y: x.narrow(0, 0, int(b.max())).relu() * y.sum(),
        [(X, BATCH, Y), (X, BATCH + 4, Y), (X, BATCH + 9, Y), (X, BATCH - 5, Y)],
    ),
    "checked": (checked, [(X, BATCH, Y), (X, BATCH + 1, Y)]),
}


@pytest.mark.filterwarnings("ignore:Using a target size:UserWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_of_rows_that_differ_are_eagers(name: str) -> None:
    """The program is made by the first call, in which they are one."""
    function, calls = PROGRAMS[name]
    compiled = gnnc.compile(function)
    same(function, compiled, calls[0])
    assert not gnnc.explain(compiled).fallbacks
    for args in calls[1:]:
        same(function, compiled, args)


class Normed(nn.Module):
    """Edits buffers, and has a part that torch runs, before numbers of rows meet."""

    def __init__(self) -> None:
        super().__init__()
        self.lin, self.norm, self.out = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 4)

    def forward(self, x: Tensor, b: Tensor, y: Tensor) -> Tensor:
        h = self.norm(self.lin(x)).cumsum(0)
        return self.out(global_add_pool(h, b)) - y


def test_what_a_call_edits_is_edited_once() -> None:
    eager = Normed()
    model = gnnc.compile(copy.deepcopy(eager))
    same(eager, model, POOLED[0])
    assert "cumsum" in gnnc.explain(model).fallbacks[0]
    for args in POOLED[1:]:
        same(eager, model, args)
        for a, b in zip(eager.buffers(), model.buffers(), strict=True):
            torch.testing.assert_close(b, a)


def test_hooks_that_ran_do_not_run_again() -> None:
    model, calls = gnnc.compile(Normed()), list[int]()
    model.register_forward_pre_hook(lambda *_: calls.append(1))
    model(*POOLED[0])
    outcome(model, POOLED[1])
    assert len(calls) == 2


def test_what_ran_before_a_graph_break_does_not_run_again() -> None:
    calls: list[int] = []

    def noted(x: Tensor, b: Tensor, y: Tensor) -> Tensor:
        x = x * 2
        torch._dynamo.graph_break()
        calls.append(len(calls))
        torch._dynamo.graph_break()
        return global_add_pool(x, b) - y

    compiled = gnnc.compile(noted)
    compiled(*POOLED[0])
    with pytest.raises(RuntimeError, match=r"Eq\(u\d+ \+ 1, s\d+\), where s\d+ is"):
        compiled(*POOLED[1])
    assert calls == [0, 1]


def test_fullgraph_raises() -> None:
    compiled = gnnc.compile(PROGRAMS["sub"][0], fullgraph=True)
    compiled(*POOLED[0])
    with pytest.raises(SizesDiffer, match=r"where s\d+ is y.shape\[0\]"):
        compiled(*POOLED[1])


class Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x: Tensor, batch: Tensor) -> Tensor:
        return global_mean_pool(self.lin(x).relu(), batch)


LOSSES = (
    *(F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss, F.binary_cross_entropy_with_logits),
    F.poisson_nll_loss,
)


@pytest.mark.filterwarnings("ignore:Using a target size:UserWarning")
@pytest.mark.parametrize("loss", LOSSES, ids=lambda f: f.__name__)
def test_a_loss_of_graphs_is_one_program_with_its_update(loss: Any) -> None:
    """Without a number of graphs: torch's losses ask whether sizes are the same."""
    eager, model = Pooled(), Pooled()
    model.load_state_dict(eager.state_dict())
    gnnc.compile(model)
    a = torch.optim.SGD(eager.parameters(), lr=0.1)
    step = gnnc.train_step(
        lambda x, b, y: loss(model(x, b), y), torch.optim.SGD(model.parameters(), lr=0.1)
    )

    def plain(x: Tensor, b: Tensor, y: Tensor) -> Tensor:
        a.zero_grad()
        value = loss(eager(x, b), y)
        value.backward()
        a.step()
        return value.detach()

    for k, (x, b, y) in enumerate(POOLED):
        same(plain, step, (x, b, (y > 0).float()))
        assert k > 0 or not gnnc.explain(step).fallbacks
        for p, q in zip(eager.parameters(), model.parameters(), strict=True):
            torch.testing.assert_close(q, p)


def test_notices_are_short_and_name_no_file_of_gnncs() -> None:
    """Neither where Dynamo stops within a substitute for a function of PyG's, nor where it cannot
    trace a loss."""

    def pooled(x: Tensor, b: Tensor, k: Tensor) -> Tensor:
        return global_mean_pool(x[k], b[k]) * 2

    compiled = gnnc.compile(pooled)
    for k in (first(4), first(0)):
        same(pooled, compiled, (X, BATCH, k))
    pointers = gnnc.compile(lambda b: torch._convert_indices_from_coo_to_csr(b, int(b.max()) + 1))
    pointers(BATCH)
    assert "data-dependent expression u0 + 1" in gnnc.explain(pointers).fallbacks[0]
    p = nn.Parameter(torch.ones(4))
    step = gnnc.train_step(
        lambda x, b, y: F.gaussian_nll_loss(global_mean_pool(x * p, b), y, y.abs()),
        torch.optim.SGD([p], lr=0.1),
    )
    step(X, BATCH, Y)
    told = [*gnnc.explain(compiled).fallbacks, *gnnc.explain(step).fallbacks]
    package = str(Path(gnnc.__file__).parent / "frontend")
    assert len(told) > 1
    assert not [m for m in told if "\n" in m or package in m]
