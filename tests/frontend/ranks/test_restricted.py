"""Losses on some rows, on ranks: what these need is computed, and sent, and the numbers stay."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD
from torch_geometric.data import Data

import gnnc
from gnnc.frontend.torch.ranks.call_start import LEAST, Begun, begun, chosen_by
from gnnc.passes.inter import restrict_rows as restricting
from gnnc.runtime.ranks import virtual
from gnnc.runtime.ranks.communicator import Communicator
from gnnc.runtime.ranks.errors import Disagreement
from gnnc.runtime.ranks.exchanges import Exchanges

from .cut_models import CLASSES, LAYERS, check, graph, hetero_graph, hetero_net, net

NODES, EDGES = 120, 200
LONG = pytest.mark.long


def sgd(parameters: Any) -> SGD:
    return SGD(parameters, lr=0.1)


def with_mask(keeps: Callable[[Tensor], Tensor] = lambda i: i % 15 == 14) -> Data:
    """A graph whose mask keeps few nodes, among them the last, which has no edge."""
    data = graph(NODES, EDGES, 1)
    data.train_mask = keeps(torch.arange(NODES))
    return data


@pytest.fixture
def restricted(monkeypatch: Any, tmp_path: Any) -> list[int]:
    """How many values are restricted of each program over ranks; none comes from the cache."""
    monkeypatch.setenv("GNNC_CACHE", str(tmp_path))
    counts, plain = list[int](), restricting.restrict_rows

    def counted(func: Any, *args: Any, **kwargs: Any) -> int:
        count = plain(func, *args, **kwargs)
        if any("rank:" in str(a.type) for a in func.body.block.args):
            counts.append(count)
        return count

    monkeypatch.setattr(restricting, "restrict_rows", counted)
    return counts


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        pytest.param(name, ranks, marks=[] if quick else LONG)
        for name in LAYERS
        for ranks in (2, 3)
        for quick in [(name, ranks) in (("gcn", 2), ("sage", 3), ("gat", 3))]
    ],
)
def test_models_train_as_on_one_rank(
    monkeypatch: Any, name: str, ranks: int, restricted: list[int]
) -> None:
    check(monkeypatch, net(f"{name}-plain"), with_mask(), ranks, sgd, 1e-11)
    assert restricted and min(restricted) > 4


def test_the_mask_of_one_rank_alone(monkeypatch: Any, restricted: list[int]) -> None:
    """Two ranks have nothing of the loss, and one of them reads nothing that it needs."""
    owner = torch.arange(NODES) * 3 // NODES
    data = with_mask(lambda i: i % 15 == 3)
    data.train_mask[owner > 0] = False
    check(monkeypatch, net("gcn-plain"), data, 3, sgd, 1e-11, owner=owner)
    assert min(restricted) > 4


@LONG
@pytest.mark.parametrize("name", ["gcn", "sage-max", "gat"])
def test_in_chunks(monkeypatch: Any, name: str, restricted: list[int]) -> None:
    check(monkeypatch, net(f"{name}-plain"), with_mask(), 3, sgd, 1e-11, chunks=2)
    assert min(restricted) > 4


@LONG
@pytest.mark.parametrize("name", ["sage", "gat", "hgt"])
def test_types_of_nodes(monkeypatch: Any, name: str, restricted: list[int]) -> None:
    data = hetero_graph((40, 80, 9), 150)
    data["paper"].train_mask = torch.arange(80) % 16 == 1
    check(monkeypatch, hetero_net(name), data, 3, sgd, 1e-11)
    assert restricted


def test_many_rows_restrict_nothing(monkeypatch: Any, restricted: list[int]) -> None:
    """Nine tenths of all, and few of one rank."""
    owner = (torch.arange(NODES) < 12).long()
    data = with_mask(lambda i: i >= 11)
    check(monkeypatch, net("sage-plain"), data, 2, sgd, 1e-11, owner=owner, steps=1)
    assert restricted == [0] * len(restricted)


def each(out: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(out, y, reduction="none")


FORMS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "selected": lambda out, y, m: out[m].square().sum(),
    "ignored": lambda out, y, m: F.cross_entropy(out, torch.where(m, y, -100)),
    "where": lambda out, y, m: torch.where(m, each(out, y), 0.0).sum() / m.sum(),
    "times": lambda out, y, m: (each(out, y) * m).sum(),
    "of two masks": lambda out, y, m: F.cross_entropy(out[m & (y > 0)], y[m & (y > 0)]),
}


@pytest.mark.parametrize(
    "form", [pytest.param(f, marks=[] if f == "ignored" else LONG) for f in FORMS]
)
def test_forms_of_losses(form: str, restricted: list[int]) -> None:
    data, model = with_mask(), net("sage-plain").eval()
    data.y[data.train_mask] = 1

    def gradients(part: Data, model: nn.Module) -> list[Tensor]:
        step = gnnc.train_step(
            lambda: FORMS[form](model(part.x, part.edge_index), part.y, part.train_mask),
            sgd(model.parameters()),
        )
        step()
        return [p.detach().clone() for p in model.parameters()]

    def work(_: Any) -> list[Tensor]:
        mine, part = gnnc.distribute(copy.deepcopy(model), data)
        return gradients(part, mine)

    wanted = gradients(data, gnnc.compile(copy.deepcopy(model)))
    for found in virtual.run(3, work):
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-11)
    assert min(restricted) > 4


def test_indices_of_own_nodes(restricted: list[int]) -> None:
    """Each rank has as many as it likes, also none; the sizes of all decide."""
    data, model = with_mask(lambda i: (i < 40) & (i % 8 == 1)), net("gcn-plain").eval()
    owner = torch.arange(NODES) // 40

    def gradients(part: Data, model: nn.Module) -> list[Tensor]:
        at = part.train_mask.nonzero().view(-1)
        y = part.y[at]
        step = gnnc.train_step(
            lambda: each(model(part.x, part.edge_index)[at], y).sum(), sgd(model.parameters())
        )
        step(), step()
        return [p.detach().clone() for p in model.parameters()]

    def work(_: Any) -> list[Tensor]:
        mine, part = gnnc.distribute(copy.deepcopy(model), data, owner=owner)
        return gradients(part, mine)

    wanted = gradients(data, gnnc.compile(copy.deepcopy(model)))
    for found in virtual.run(3, work):
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-11)
    assert min(restricted) > 4


def test_calls_without_a_step(restricted: list[int]) -> None:
    """What a compiled model and torch's backward give."""

    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net("gat-plain")

        def forward(self, x: Tensor, edges: Tensor, mask: Tensor) -> Tensor:
            return self.net(x, edges)[mask].square().sum()

    data, model = with_mask(), Masked().eval()

    def gradients(part: Data, model: nn.Module) -> list[Tensor]:
        loss = model(part.x, part.edge_index, part.train_mask)
        loss.backward()
        return [loss.detach(), *(p.grad for p in model.parameters() if p.grad is not None)]

    def work(_: Any) -> list[Tensor]:
        mine, part = gnnc.distribute(copy.deepcopy(model), data)
        return gradients(part, mine)

    wanted = gradients(data, copy.deepcopy(model))
    for found in virtual.run(2, work):
        torch.testing.assert_close(found, wanted, rtol=1e-11, atol=1e-11)
    assert min(restricted) > 4


def test_rows_that_nobody_needs_do_not_cross(monkeypatch: Any) -> None:
    """On a ring whose odd nodes are of another rank: the node of the mask reads a row of the first
    layer, and its gradient goes back; for that row and for its own, one of the features crosses."""
    ring = torch.arange(NODES)
    data = Data(
        x=torch.randn(NODES, 6, dtype=torch.float64),
        edge_index=torch.stack([ring, (ring + 1) % NODES]),
        y=ring % CLASSES,
        train_mask=ring == 50,
        num_nodes=NODES,
    )
    rows, plain = [0, 0], Exchanges.start

    def start(self: Exchanges, plan: str, sent: Any, received: Any) -> None:
        rows[self.communicator.rank] += len(received) * (received.dtype == np.float64)
        plain(self, plan, sent, received)

    monkeypatch.setattr(Exchanges, "start", start)
    check(monkeypatch, net("sage-plain"), data, 2, sgd, 1e-11, steps=3, owner=ring % 2)
    assert sum(rows) == 3 * (1 + 1 + 2)


# ---------------------------------------------------------------- how ranks agree


@pytest.mark.parametrize("late", [(), (1,), (0, 2)])
def test_ranks_that_choose_late_take_what_others_have(late: tuple[int, ...]) -> None:
    """In the second call some ranks have to choose again, with other numbers of their own."""

    def work(c: Communicator) -> list[tuple[int, ...]]:
        found = [chosen_by(c, [c.rank, 5])]
        begun(c, Begun(7, -7, 5, -5, 0, LEAST), found[0])
        if c.rank in late:
            found.append(chosen_by(c, [100, 100]))
        assert begun(c, Begun(7, -7, 5, -5, 0, c.rank), found[-1]) == (7, -7, 5, -5, 0, 2, 0)
        return found

    for rank, found in enumerate(virtual.run(3, work)):
        assert found == [(3, 15)] * (1 + (rank in late))


def test_ranks_that_choose_by_other_numbers() -> None:
    def work(c: Communicator) -> None:
        if c.rank == 0:
            chosen_by(c, [1, 2])
        begun(c, Begun(7, -7, 5, -5, 0, LEAST), ())

    with pytest.raises(Disagreement, match="how many numbers the program of a call is chosen by"):
        virtual.run(2, work)
