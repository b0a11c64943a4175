"""`gnnc.train_step` on ranks that train the same parameters, each on a batch of its own: the
numbers of one process that has all batches, and on all ranks the same parameters to the bit."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import gnnc
from gnnc.frontend.tools.models import Net
from gnnc.frontend.torch.ranks import replicas
from gnnc.runtime.ranks import virtual
from gnnc.runtime.ranks.communicator import Communicator
from gnnc.runtime.ranks.errors import Disagreement

STEPS = 6
Batch = tuple[Tensor, Tensor, Tensor, Tensor]
CLOSE = {"rtol": 1e-10, "atol": 1e-12}


def batches(sizes: Sequence[Sequence[tuple[int, int]]]) -> list[list[Batch]]:
    """For each step a batch a rank, of so many nodes and edges, with the number of nodes of all."""
    g = torch.Generator().manual_seed(0)
    out: list[list[Batch]] = []
    for step in sizes:
        total = torch.tensor(float(sum(n for n, _ in step)), dtype=torch.float64)
        out.append(
            [
                (
                    torch.randn(n, 5, generator=g, dtype=torch.float64),
                    torch.randint(n, (2, e), generator=g),
                    torch.randint(3, (n,), generator=g),
                    total,
                )
                for n, e in step
            ]
        )
    return out


OTHERS = [[(20 + k + 7 * r, 60 + 5 * r + k) for r in range(2)] for k in range(STEPS)]
"""Each rank has other sizes in each step."""
UNEVEN = [[(30, 90), (1, 0)], [(9, 30), (40, 7)], [(2, 0), (25, 80)], [(30, 0), (31, 90)]]
"""Among them batches of a node alone, for which Dynamo traces a program of its own."""


MODEL = Net("sage", (5, 8, 3)).double()


class Training:
    """A model with its optimizer, the same wherever one is made."""

    def __init__(self) -> None:
        self.model: nn.Module = copy.deepcopy(MODEL)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)

    def loss(self, x: Tensor, edges: Tensor, y: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
        out = self.model(x, edges)
        return F.cross_entropy(out, y, reduction="sum") / total, out.argmax(1)

    def alone(self, steps: list[list[Batch]], accumulate: int, clip: float | None) -> list[float]:
        losses: list[float] = []
        for k, step in enumerate(steps, 1):
            loss = torch.stack([self.loss(*b)[0] for b in step]).sum()
            loss.backward()
            losses.append(loss.item())
            if k % accumulate == 0:
                if clip is not None:
                    nn.utils.clip_grad_norm_(self.model.parameters(), clip)
                self.optimizer.step()
                self.optimizer.zero_grad()
        return losses

    def state(self) -> list[Tensor]:
        return [p.detach().clone() for p in self.model.parameters()]


def on_ranks(
    steps: list[list[Batch]], **options: Any
) -> list[tuple[list[float], list[Tensor], list[str]]]:
    """Of each rank the losses, the parameters in the end, and what ran in torch."""

    def work(c: Communicator) -> tuple[list[float], list[Tensor], list[str]]:
        mine = Training()
        step = gnnc.train_step(mine.loss, mine.optimizer, ranks=c, **options)
        losses: list[float] = []
        for batch in steps:
            loss, classes = step(*batch[c.rank])
            assert classes.shape == batch[c.rank][2].shape  # of its own rows
            losses.append(loss.item())
        return losses, mine.state(), gnnc.explain(step).fallbacks

    return virtual.run(len(steps[0]), work)


def compare(
    steps: list[list[Batch]], found: Any, accumulate: int = 1, clip: float | None = None
) -> None:
    wanted = Training()
    losses = wanted.alone(steps, accumulate, clip)
    for got, parameters, _ in found:
        np.testing.assert_allclose(got, losses, rtol=1e-10)
        torch.testing.assert_close(parameters, wanted.state(), **CLOSE)
    for _, parameters, _ in found[1:]:
        assert all(map(torch.equal, parameters, found[0][1]))


@pytest.mark.parametrize(
    ("accumulate", "clip"), [(1, None), (2, 0.1), pytest.param(3, None, marks=pytest.mark.long)]
)
def test_ranks_train_as_one_process_with_all_batches(accumulate: int, clip: float | None) -> None:
    steps = batches(OTHERS)
    found = on_ranks(steps, accumulate=accumulate, clip_grad_norm=clip)
    assert not any(fallbacks for *_, fallbacks in found)
    compare(steps, found, accumulate, clip)


def test_ranks_with_programs_of_their_own_send_the_same() -> None:
    steps = batches(UNEVEN)
    found = on_ranks(steps)
    compare(steps, found)


def test_a_step_is_one_message() -> None:
    sent: list[tuple[int, int]] = []

    class Counted:
        def __init__(self, inner: Communicator) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def all_reduce(self, array: Any, kind: Any) -> Any:
            sent.append((self.inner.rank, array.size))
            return self.inner.all_reduce(array, kind)

    steps = batches(OTHERS)

    def work(c: Communicator) -> None:
        mine = Training()
        step = gnnc.train_step(mine.loss, mine.optimizer, ranks=c)
        for batch in steps:
            step(*batch[c.rank])

    virtual.run(2, work, wrap=Counted)  # type: ignore[arg-type]
    numbers = 1 + sum(p.numel() for p in Training().model.parameters())
    assert sorted(sent) == [(r, numbers) for r in range(2) for _ in range(STEPS)]


def test_what_runs_in_torch_is_summed_there() -> None:
    def watch(training: Training) -> None:
        for p in training.model.parameters():
            p.register_hook(lambda g: g)

    steps = batches(OTHERS)
    # a rank of several has no torch to fall back to; a process of argo is one alone with a batch
    found = [step_in_torch(steps, watch, accumulate) for accumulate in (1, 2)]
    for accumulate, each in enumerate(found, 1):
        assert all("hook" in fallbacks[0] for *_, fallbacks in each)
        compare(steps, each, accumulate)


def step_in_torch(
    steps: list[list[Batch]], change: Callable[[Training], object], accumulate: int
) -> list[Any]:
    from gnnc.runtime.ranks import world
    from gnnc.runtime.ranks.alone import Alone

    def work(c: Communicator) -> Any:
        world.set_of_thread(Alone())
        mine = Training()
        change(mine)
        step = gnnc.train_step(mine.loss, mine.optimizer, ranks=c, accumulate=accumulate)
        losses = [step(*batch[c.rank])[0].item() for batch in steps]
        return losses, mine.state(), gnnc.explain(step).fallbacks

    return virtual.run(len(steps[0]), work)


@pytest.mark.parametrize("what", ["parameters", "state", "options"])
def test_ranks_that_begin_otherwise_are_told_so(what: str) -> None:
    (step,) = batches(OTHERS[:1])

    def work(c: Communicator) -> None:
        mine = Training()
        if what == "parameters" and c.rank == 1:
            with torch.no_grad():
                next(mine.model.parameters())[0, 0] += 1e-9
        if what == "state" and c.rank == 1:
            mine.alone([step], 1, None)
            mine.model.load_state_dict(Training().model.state_dict())
        if what == "options" and c.rank == 1:
            mine.optimizer.param_groups[0]["lr"] = 0.02
        before = mine.state()
        try:
            gnnc.train_step(mine.loss, mine.optimizer, ranks=c)(*step[c.rank])
        finally:
            assert all(map(torch.equal, before, mine.state()))

    with pytest.raises(Disagreement, match="the parameters that they train"):
        virtual.run(2, work)


def test_a_rank_alone_needs_nobody() -> None:
    from gnnc.runtime.ranks.alone import Alone

    steps = [step[:1] for step in batches(OTHERS)]
    mine, plain = Training(), Training()
    step = gnnc.train_step(mine.loss, mine.optimizer, ranks=Alone())
    other = gnnc.train_step(plain.loss, plain.optimizer)
    for (batch,) in steps:
        assert torch.equal(step(*batch)[0], other(*batch)[0])
    assert all(map(torch.equal, mine.state(), plain.state()))


def test_gradients_that_some_ranks_lack_are_of_the_others() -> None:
    def work(c: Communicator) -> list[Any]:
        a, b, half, nobody = (nn.Parameter(torch.ones(2, dtype=t)) for t in KINDS)
        if c.rank == 0:
            a.grad = torch.full((2,), 3.0)
        b.grad = torch.full((2,), 1.5 + c.rank, dtype=torch.float64)
        half.grad = torch.full((2,), 0.5, dtype=torch.bfloat16)
        replicas.sum_gradients([a, b, half, nobody], c)
        return [None if p.grad is None else p.grad.tolist() for p in (a, b, half, nobody)]

    KINDS = (torch.float32, torch.float64, torch.bfloat16, torch.float32)
    assert virtual.run(2, work) == [[[3.0, 3.0], [4.0, 4.0], [1.0, 1.0], None]] * 2


def test_all_get_the_numbers_of_the_first() -> None:
    def work(c: Communicator) -> list[float]:
        model = nn.Linear(2, 1)
        with torch.no_grad():
            model.weight.fill_(c.rank)
        replicas.make_same(model.parameters(), c)
        return model.weight.detach().flatten().tolist()

    assert virtual.run(3, work) == [[0.0, 0.0]] * 3
