"""Kernels of ranks that are processes read rows of other ranks where they lie, in memory that these
export: on the emulated GPU, by threads that take each other for processes. It gives what one
process gives on the CPU, and bit for bit what threads give that share their addresses."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

import gnnc
from gnnc.runtime import exports
from gnnc.runtime.emulator.memory import device_pool
from gnnc.runtime.memory import CannotOpen
from gnnc.runtime.ranks.exchanges import ExportingExchanges
from gnnc.runtime.ranks.virtual import Virtual

from .cut_models import Net, adam, arguments, graph, net, on_ranks

TOLERANCE = 1e-9
READS = ["kernels read rows of other ranks where they lie"]
Found = tuple[list[float], dict[str, Tensor], list[str]]
"""Losses, gradients and parameters, and what was chosen."""


def exercised(
    model: Net, data: Any, steps: int = 2, before: Callable[[], None] = lambda: None, **options: Any
) -> Found:
    """Forward and backward, and then some steps of training; `before` is called before each."""
    x, edges, y, mask = arguments(model, data)
    before()
    model(x, *edges).square().sum().backward()
    state = {f"gradient of {k}": given(p) for k, p in model.named_parameters()}
    optimizer = adam(model.parameters())
    optimizer.zero_grad()
    step = gnnc.train_step(
        lambda: F.cross_entropy(model(x, *edges)[mask], y[mask]), optimizer, **options
    )
    losses: list[float] = []
    for _ in range(steps):
        before()
        losses.append(step().item())
    state |= {k: v.clone() for k, v in model.state_dict().items()}
    return losses, state, gnnc.explain(step).choices


def given(parameter: Tensor) -> Tensor:
    """Its gradient."""
    assert parameter.grad is not None
    return parameter.grad.clone()


def of_rank(model: Net, data: Data, owner: Tensor | None = None, **more: Any) -> Found:
    """What a rank finds."""
    mine, part = gnnc.distribute(copy.deepcopy(model), data, owner=owner)
    return exercised(mine, part, **more)


def alone(monkeypatch: pytest.MonkeyPatch, model: Net, data: Data, **more: Any) -> Found:
    """What one process finds on the CPU."""
    monkeypatch.delenv("GNNC_TARGET", raising=False)
    compiled = gnnc.compile(copy.deepcopy(model))
    return on_ranks(monkeypatch, 0, lambda: exercised(compiled, data, **more))[0]


def assert_same(every: list[Found], want: Found) -> None:
    losses, state, _ = want
    for other_losses, other, _ in every:
        torch.testing.assert_close(other_losses, losses, rtol=0, atol=TOLERANCE)
        for key, x in state.items():
            torch.testing.assert_close(other[key], x, rtol=TOLERANCE, atol=TOLERANCE, msg=key)
            assert torch.equal(other[key], every[0][1][key]), f"ranks have another {key}"


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("GNNC_TARGET", "cuda-emulated")
    return monkeypatch


def on_processes(monkeypatch: pytest.MonkeyPatch, ranks: int, work: Callable[[], Any]) -> list[Any]:
    monkeypatch.setattr(Virtual, "shares_memory", False)
    return on_ranks(monkeypatch, ranks, work)


def test_the_bits_are_those_of_ranks_that_share_their_addresses(
    emulated: pytest.MonkeyPatch,
) -> None:
    """What is read lies where it was computed, or is a copy of what torch has made."""
    shown: list[bool] = []
    show = exports.show

    def noted(memory: Any, region: Any) -> Any:
        found = show(memory, region)
        shown.append(found.region.kept is None)
        return found

    model, data = net("sage-plain"), graph(30, 120)
    work = lambda: of_rank(model, data, steps=1)  # noqa: E731
    shared = on_ranks(emulated, 2, work)
    emulated.setattr("gnnc.runtime.ranks.exchanges.show", noted)
    exported = on_processes(emulated, 2, work)
    for (losses, state, chosen), (other_losses, other, _) in zip(exported, shared, strict=True):
        assert losses == other_losses and chosen == READS
        assert all(torch.equal(state[k], other[k]) for k in other)
    assert set(shown) == {True, False}
    assert_same(exported, alone(emulated, model, data, steps=1))


def test_ranks_that_cannot_reach_each_other_have_messages(emulated: pytest.MonkeyPatch) -> None:
    """One that cannot open what another shows is enough; all know why."""

    def refused(*given: Any) -> Any:
        if gnnc.rank() == 1:
            raise CannotOpen("too far away")
        return exports.see(*given)

    def publish(*_: Any) -> None:
        raise AssertionError("nothing is published")

    emulated.setattr("gnnc.runtime.ranks.reachable.see", refused)
    emulated.setattr(ExportingExchanges, "publish", publish)
    model, data = net("sage-plain"), graph(12, 40)
    every = on_processes(emulated, 2, lambda: of_rank(model, data, steps=1))
    said = "rank 1 cannot open memory of rank 0: too far away"
    for _, _, chosen in every:
        assert chosen == [f"rows of other ranks come by messages through the host: {said}"]


def test_messages_that_are_asked_for(emulated: pytest.MonkeyPatch) -> None:
    model, data = net("sage-plain"), graph(12, 40)
    work = lambda: of_rank(model, data, steps=1, remote_reads=False)  # noqa: E731
    for _, _, chosen in on_processes(emulated, 2, work):
        assert chosen == []


def test_programs_for_the_cpu_have_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GNNC_TARGET", raising=False)
    model, data = net("sage-plain"), graph(12, 40)
    every = on_processes(monkeypatch, 2, lambda: of_rank(model, data, steps=1))
    assert all(chosen == [] for _, _, chosen in every)


def test_a_target_that_distribute_was_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks decide together when the graph is cut, not when one of them compiles."""
    monkeypatch.delenv("GNNC_TARGET", raising=False)
    model, data = net("sage-plain"), graph(12, 40)
    work = lambda: of_rank(model, data, steps=1, target="cuda-emulated")  # noqa: E731
    for _, _, (chosen,) in on_processes(monkeypatch, 2, work):
        assert "gnnc.distribute was not asked for programs for the target cuda-emulated" in chosen


def test_buffers_that_move_are_found_again(emulated: pytest.MonkeyPatch) -> None:
    """Memory is given back between steps, so that what others have open is what was there once; it
    is closed, and what is there now opened."""
    names: set[bytes] = set()
    most = [0]
    see = exports.see

    def noted(memory: Any, handle: Any, size: int) -> Any:
        names.add(handle.name)
        found = see(memory, handle, size)
        most[0] = max(most[0], len(names & {name for _, name in exports._opened}))
        return found

    emulated.setattr("gnnc.runtime.ranks.exchanges.see", noted)
    model, data = net("gcn"), graph(30, 120)
    work = lambda: of_rank(model, data, steps=4, before=device_pool.release)  # noqa: E731
    every = on_processes(emulated, 2, work)
    still = on_processes(emulated, 2, lambda: of_rank(model, data, steps=4))
    for (losses, state, _), (other_losses, other, _) in zip(every, still, strict=True):
        assert losses == other_losses and all(torch.equal(state[k], other[k]) for k in other)
    assert len(names) > most[0], "what is not published any more is closed"
