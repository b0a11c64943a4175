"""`gnnc.train_step`: what torch has to do, and what is refused."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD, Adam, Adamax, NAdam, Rprop
from torch.optim.lr_scheduler import ExponentialLR
from torch_geometric.nn import SAGEConv

import gnnc

from .train_steps import (
    CLASSES,
    OPTIMIZERS,
    WIDTH,
    MakeOptimizer,
    N,
    assert_same,
    assert_same_state,
    data,
    fallbacks,
    in_one_program,
    loss_of,
    plain_step,
    sage,
    train_both,
    twins,
)


@pytest.mark.parametrize(
    ("optimizer", "words"),
    [
        (lambda p: NAdam(p, lr=0.01), "NAdam has no rule: there are Adam, AdamW, SGD, Adagrad and"),
        (lambda p: Rprop(p, lr=0.01), "Rprop has no rule"),
    ],
    ids=["nadam", "rprop"],
)
def test_other_optimizers_do_their_own_steps(optimizer: MakeOptimizer, words: str) -> None:
    a, o, b, p, step = twins(sage, optimizer)
    args = data()
    for _ in range(3):
        torch.testing.assert_close(step(*args), plain_step(a, o, *args), atol=1e-5, rtol=1e-5)
    assert_same(a, b)
    assert_same_state(o, p)
    assert words in fallbacks(step)
    assert all(q.grad is None for q in b.parameters())


@pytest.mark.parametrize("kind", [torch.float16, torch.float64])
def test_counts_of_another_type(kind: torch.dtype) -> None:
    """A checkpoint may hold them, and come after steps that counted otherwise."""
    a, o, b, p, step = twins(sage, OPTIMIZERS["adam"])
    args = data()
    plain_step(a, o, *args)
    step(*args)
    for model, optimizer in ((a, o), (b, p)):
        for q in model.parameters():
            optimizer.state[q]["step"] = torch.tensor(3.0, dtype=kind)
    train_both(2, a, o, step, *args)
    assert_same(a, b)
    assert all(float(s["step"]) == 5 for s in p.state.values())
    assert in_one_program(step)


class Tied(nn.Module):
    """Two layers whose weights are two parameters in one piece of memory of 48 numbers, the second
    so many numbers behind the first."""

    def __init__(self, behind: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(SAGEConv(4, 4, root_weight=False) for _ in range(2))
        memory = torch.linspace(-1, 1, 48)
        for k, layer in enumerate(self.layers):
            layer.lin_l.weight.data = memory[k * behind :][:16].view(4, 4)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        first, second = self.layers
        return second(first(x[:, :4], edge_index).relu(), edge_index)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("behind", "apart"), [(0, False), (8, False), (16, True)])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_parameters_in_shared_memory(behind: int, apart: bool, accumulate: int) -> None:
    """torch updates what they share once for each."""
    a, b = Tied(behind), Tied(behind)
    b.load_state_dict(a.state_dict())
    o, p = (SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (a, b))
    step = gnnc.train_step(loss_of(b), p, accumulate=accumulate)
    args = data()
    for _ in range(3):
        for _ in range(accumulate):
            loss_of(a)(*args).backward()
            step(*args)
        o.step()
        o.zero_grad()
    assert_same(a, b)
    assert bool(fallbacks(step)) is not apart


def test_an_expanded_parameter_is_refused_as_in_torch() -> None:
    """Before others are updated that come after it."""
    a, o, b, _, step = twins(sage, OPTIMIZERS["sgd"])
    for model in (a, b):
        model.first.lin_l.bias.data = torch.zeros(1).expand(8)
    args = data()
    with pytest.raises(RuntimeError, match="single memory location"):
        plain_step(a, o, *args)
    with pytest.raises(RuntimeError, match="single memory location"):
        step(*args)
    assert_same(a, b)


def test_state_that_lacks_something_is_left_to_torch() -> None:
    """It is not made anew behind the user's back."""
    _, _, b, p, step = twins(sage, OPTIMIZERS["adam"])
    step(*data())
    p.param_groups[0]["amsgrad"] = True
    before = p.state_dict()["state"][0]["exp_avg"].clone()
    with pytest.raises(KeyError, match="max_exp_avg_sq"):
        step(*data())
    assert torch.equal(before, p.state_dict()["state"][0]["exp_avg"])
    assert "no max_exp_avg_sq" in fallbacks(step)


def test_a_loss_that_edits_a_parameter_is_differentiated_by_torch() -> None:
    model = SAGEConv(WIDTH, CLASSES)
    x, edge_index, y = data()

    def loss(x: Tensor) -> Tensor:
        out = F.cross_entropy(model(x, edge_index), y)
        with torch.no_grad():
            model.lin_l.bias.clamp_(0)
        return out

    step = gnnc.train_step(loss, SGD(model.parameters(), lr=0.1))
    before = [q.detach().clone() for q in model.parameters()]
    step(x)
    assert not any(torch.equal(q, r) for q, r in zip(model.parameters(), before, strict=True))
    assert "not in one program" in fallbacks(step)


def test_a_subclass_may_do_something_else() -> None:
    class Mine(SGD):
        pass

    _, _, _, _, step = twins(sage, lambda p: Mine(p, lr=0.1))
    step(*data())
    assert "Mine has no rule" in fallbacks(step)


def test_hooks_are_called() -> None:
    a, o, b, p, step = twins(sage, OPTIMIZERS["adam"])
    args = data()
    seen: list[str] = []
    step(*args)
    plain_step(a, o, *args)
    assert in_one_program(step)
    handle = p.register_step_post_hook(lambda *_: seen.append("step"))
    step(*args)
    plain_step(a, o, *args)
    handle.remove()
    step(*args)
    plain_step(a, o, *args)
    assert seen == ["step"]
    assert_same(a, b)
    assert "the optimizer has hooks" in fallbacks(step)


@pytest.mark.parametrize("scheduled", [False, True])
def test_a_step_of_the_users_own_is_called(scheduled: bool) -> None:
    """Also where it looks like that of a schedule, which it calls."""
    a, o, b, p, step = twins(sage, OPTIMIZERS["adam"])
    if scheduled:
        ExponentialLR(o, 0.9), ExponentialLR(p, 0.9)
    args = data()
    train_both(1, a, o, step, *args)
    assert in_one_program(step)
    seen: list[str] = []
    kept = p.step

    @functools.wraps(kept)
    def watched(*given: Any) -> Any:
        seen.append("step")
        return kept(*given)

    p.step = watched  # type: ignore[method-assign]
    train_both(2, a, o, step, *args)
    assert seen == ["step", "step"]
    assert_same(a, b)
    assert_same_state(o, p)
    assert "a step that is not its class's" in fallbacks(step)


def test_a_parameter_with_a_hook_is_differentiated_by_torch() -> None:
    a, o, b, _, step = twins(sage, OPTIMIZERS["sgd"])
    for model in (a, b):
        model.second.lin_l.weight.register_hook(lambda g: 2 * g)
    args = data()
    train_both(2, a, o, step, *args)
    assert_same(a, b)
    assert "hook" in fallbacks(step)


def test_an_input_that_wants_a_gradient_gets_one() -> None:
    model = SAGEConv(WIDTH, CLASSES)
    x, edge_index, y = data()
    x.requires_grad_()
    step = gnnc.train_step(loss_of(model), SGD(model.parameters(), lr=0.1))
    want = torch.autograd.grad(loss_of(model)(x, edge_index, y), x)[0]
    step(x, edge_index, y)
    torch.testing.assert_close(x.grad, want)
    assert "wants a gradient" in fallbacks(step)


def test_a_loss_in_two_graphs_is_updated_once() -> None:
    """A part of it is a number too, and must not be taken for the loss."""

    def penalty(w: Tensor) -> Tensor:
        total = w.square().sum()
        torch._dynamo.graph_break()
        return total

    torch.manual_seed(0)
    a = sage()
    b = copy.deepcopy(a)
    o, p = SGD(a.parameters(), lr=0.1), SGD(b.parameters(), lr=0.1)
    args = data()

    def loss(model: nn.Module) -> Callable[..., Tensor]:
        return lambda *args: penalty(model.first.lin_l.weight) + loss_of(model)(*args)

    step = gnnc.train_step(loss(b), p)
    for _ in range(2):
        o.zero_grad()
        loss(a)(*args).backward()
        o.step()
        step(*args)
    assert_same(a, b)
    assert "not in one program" in fallbacks(step)


def test_autocast_leaves_the_step_to_torch() -> None:
    model = SAGEConv(WIDTH, CLASSES)
    before = model.lin_l.weight.detach().clone()
    step = gnnc.train_step(loss_of(model), SGD(model.parameters(), lr=0.1))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        step(*data())
    assert not torch.equal(before, model.lin_l.weight)
    assert "autocast" in fallbacks(step)


def test_features_of_inference_mode_are_refused_as_in_torch() -> None:
    a, o, b, p, step = twins(sage, lambda q: SGD(q, lr=0.1))
    x, edge_index, y = data()
    with torch.inference_mode():
        z = x.clone()
    train_both(1, a, o, step, x, edge_index, y)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
        step(z, edge_index, y)
    train_both(2, a, o, step, x, edge_index, y)
    assert_same(a, b)
    assert "made in inference mode" in fallbacks(step)


@pytest.mark.parametrize("rule", [Adam, Adamax])  # one program, and an update of torch's
@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
def test_a_step_trains_whatever_the_mode_around_it(rule: Any, mode: Any) -> None:
    a, o, b, p, step = twins(sage, lambda q: rule(q, lr=0.01))
    args = data()
    with mode():
        for _ in range(2):
            step(*args)
    train_both(2, a, o, lambda *args: None, *args)
    train_both(2, a, o, step, *args)
    assert_same(a, b)
    assert_same_state(o, p)
    assert not any(v.is_inference() for s in p.state.values() for v in s.values())


def test_arguments_of_another_type_are_refused() -> None:
    model = sage()
    with pytest.raises(TypeError, match="loss must be a function"):
        gnnc.train_step(3, SGD(model.parameters(), lr=0.1))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"optimizer must be a torch\.optim\.Optimizer, not list"):
        gnnc.train_step(loss_of(model), list(model.parameters()))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no_such_option"):
        gnnc.train_step(loss_of(model), SGD(model.parameters(), lr=0.1), no_such_option=1)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (lambda y: y, "240 numbers"),
        (lambda y: (y, y.sum()), "240 numbers"),
        (lambda y: 3.0, "got float"),
        (lambda y: None, "got NoneType"),
        (lambda y: [y.sum(), y], "got list"),
        (lambda y: {"loss": y.sum()}, "got dict"),
        (lambda y: (), "an empty tuple"),
        (lambda y: (3.0, y.sum()), "a tuple that begins with float"),
        (lambda y: (y.sum(), [{"here": {1, 2}}]), "set beside it"),
    ],
)
def test_other_returns_are_refused_and_change_nothing(
    loss: Callable[[Tensor], Any], words: str
) -> None:
    model = SAGEConv(WIDTH, CLASSES)
    x, edge_index, _ = data()
    before = copy.deepcopy(model.state_dict())
    step = gnnc.train_step(lambda x, e: loss(model(x, e)), SGD(model.parameters(), lr=0.1))
    with pytest.raises(TypeError, match=f"the loss must be a tensor of one number.*{words}"):
        step(x, edge_index)
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())


@pytest.mark.parametrize("detached", [False, True])
def test_a_loss_without_parameters_is_an_error_as_in_torch(detached: bool) -> None:
    model = SAGEConv(WIDTH, CLASSES)

    def loss(x: Tensor, edge_index: Tensor) -> Tensor:
        return (model(x, edge_index).detach() if detached else x).square().sum()

    step = gnnc.train_step(loss, SGD(model.parameters(), lr=0.1))
    with pytest.raises(RuntimeError, match="does not require grad"):
        step(*data()[:2])


def test_a_wrong_index_changes_nothing() -> None:
    a, _, b, p, step = twins(sage, OPTIMIZERS["momentum"])
    x, edge_index, y = data()
    step(x, edge_index, y)
    before, state = copy.deepcopy(b.state_dict()), copy.deepcopy(p.state_dict())
    edge_index = edge_index.clone()
    edge_index[0, 3] = N
    with pytest.raises(IndexError, match=r"is 60, but it must be between 0 and 59"):
        step(x, edge_index, y)
    assert all(torch.equal(before[k], v) for k, v in b.state_dict().items())
    for k, kept in state["state"].items():
        assert torch.equal(kept["momentum_buffer"], p.state_dict()["state"][k]["momentum_buffer"])


def test_fullgraph_raises_in_place_of_falling_back() -> None:
    model = sage()
    step = gnnc.train_step(loss_of(model), NAdam(model.parameters(), lr=0.1), fullgraph=True)
    with pytest.raises(RuntimeError, match="NAdam has no rule"):
        step(*data())


@pytest.mark.parametrize("optimizer", ["adam", "momentum"])
def test_an_index_from_the_end_runs_in_torch(optimizer: str) -> None:
    """Of the call that has one, the first or a later one."""
    x, edge_index, _ = data()
    rows = torch.arange(20)
    for first in (rows, rows - 20):
        a, o, b, p, _ = twins(sage, OPTIMIZERS[optimizer])

        def loss(model: nn.Module, rows: Tensor) -> Tensor:
            return model(x, edge_index)[rows].square().mean()

        step = gnnc.train_step(functools.partial(loss, b), p)
        for chosen in (first, rows - N, rows):
            o.zero_grad()
            loss(a, chosen).backward()
            o.step()
            step(chosen)
        assert_same(a, b)
        assert_same_state(o, p)
        assert "which the compiled program does not take" in fallbacks(step)
        with pytest.raises(IndexError, match=r"is 60, but it must be between 0 and 59 \(torch: "):
            step(rows + 41)


def test_a_loss_with_a_transform_of_torch_func() -> None:
    x, edge_index, _ = data()
    a, o, b, p, _ = twins(sage, OPTIMIZERS["sgd"])

    def loss(model: nn.Module) -> Tensor:
        return torch.func.vmap(lambda row: row.square().sum())(model(x, edge_index)).mean()

    step = gnnc.train_step(functools.partial(loss, b), p)
    for _ in range(2):
        o.zero_grad()
        loss(a).backward()
        o.step()
        step()
    assert_same(a, b)
    assert "a tensor within a transform of torch.func" in fallbacks(step)
