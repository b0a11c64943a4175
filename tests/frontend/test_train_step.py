"""`gnnc.train_step`: the numbers of torch's optimizers, in one program where that is possible."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer, RMSprop
from torch_geometric.nn import GATConv, GCNConv, RGCNConv, SAGEConv

import gnnc
from gnnc.runtime import toolchain

N, E, WIDTH, CLASSES = 60, 300, 6, 4

MakeOptimizer = Callable[[Any], Optimizer]

OPTIMIZERS: dict[str, MakeOptimizer] = {
    "adam": lambda p: Adam(p, lr=0.01),
    "adam-decay": lambda p: Adam(p, lr=0.01, weight_decay=0.1, betas=(0.8, 0.9), eps=1e-4),
    "amsgrad": lambda p: Adam(p, lr=0.01, amsgrad=True),
    "adamw": lambda p: AdamW(p, lr=0.01, weight_decay=0.1),
    "adamw-amsgrad": lambda p: AdamW(p, lr=0.01, amsgrad=True),
    "adam-fused": lambda p: Adam(p, lr=0.01, fused=True),
    "sgd": lambda p: SGD(p, lr=0.1),
    "sgd-decay": lambda p: SGD(p, lr=0.1, weight_decay=0.1),
    "momentum": lambda p: SGD(p, lr=0.1, momentum=0.9, dampening=0.5, weight_decay=0.01),
    "nesterov": lambda p: SGD(p, lr=0.1, momentum=0.9, nesterov=True),
}


class Net(nn.Module):
    """Two layers, with batch normalisation between them where wanted."""

    def __init__(self, first: nn.Module, second: nn.Module, norm: bool = False) -> None:
        super().__init__()
        self.first, self.second = first, second
        self.norm = nn.BatchNorm1d(8) if norm else nn.Identity()

    def forward(self, x: Tensor, *edges: Tensor) -> Tensor:
        return self.second(torch.tanh(self.norm(self.first(x, *edges))), *edges)


def sage(norm: bool = False) -> Net:
    return Net(SAGEConv(WIDTH, 8, bias=not norm), SAGEConv(8, CLASSES), norm)


def data(seed: int = 0, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(N, WIDTH, generator=g, dtype=torch.float64).to(dtype)
    return (
        x,
        torch.randint(0, N, (2, E), generator=g),
        torch.randint(0, CLASSES, (N,), generator=g),
    )


def loss_of(model: nn.Module) -> Callable[..., Tensor]:
    return lambda x, *rest: F.cross_entropy(model(x, *rest[:-1]), rest[-1])


def plain_step(model: nn.Module, optimizer: Optimizer, *args: Tensor) -> Tensor:
    optimizer.zero_grad()
    loss = loss_of(model)(*args)
    loss.backward()
    optimizer.step()
    return loss.detach()


def train_both(count: int, a: nn.Module, o: Optimizer, step: Any, *args: Tensor) -> None:
    """So many steps of torch's and of ours, in turns."""
    for _ in range(count):
        plain_step(a, o, *args)
        step(*args)


def assert_same(a: nn.Module, b: nn.Module, tolerance: float = 1e-5) -> None:
    for (name, p), q in zip(a.state_dict().items(), b.state_dict().values(), strict=True):
        torch.testing.assert_close(
            p, q, atol=tolerance, rtol=tolerance, msg=lambda m: f"{name}: {m}"
        )


def assert_same_state(a: Optimizer, b: Optimizer) -> None:
    """What a checkpoint would hold."""
    x, y = a.state_dict(), b.state_dict()
    assert x["param_groups"] == y["param_groups"]
    assert x["state"].keys() == y["state"].keys()
    for k, state in x["state"].items():
        assert state.keys() == y["state"][k].keys()
        for name, value in state.items():
            torch.testing.assert_close(value, y["state"][k][name], atol=1e-5, rtol=1e-4)


def in_one_program(step: Any) -> bool:
    return gnnc.explain(step).graphs == 1 and not gnnc.explain(step).fallbacks


def twins(
    make: Callable[[], nn.Module], optimizer: MakeOptimizer, seed: int = 0
) -> tuple[nn.Module, Optimizer, nn.Module, Optimizer, Any]:
    torch.manual_seed(seed)
    a = make()
    b = copy.deepcopy(a)
    o, p = optimizer(a.parameters()), optimizer(b.parameters())
    return a, o, b, p, gnnc.train_step(loss_of(b), p)


# ---------------------------------------------------------------- the same numbers


LONG = ("adam-decay", "adamw-amsgrad", "adam-fused", "sgd-decay")
"""Options that others have as well, in another combination."""


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.long] if n in LONG else []) for n in OPTIMIZERS]
)
def test_steps_are_those_of_torch(name: str) -> None:
    a, o, b, p, step = twins(sage, OPTIMIZERS[name])
    args = data()
    for _ in range(6):
        loss = step(*args)
        torch.testing.assert_close(loss, plain_step(a, o, *args), atol=1e-5, rtol=1e-5)
        assert not loss.requires_grad
        assert all(q.grad is None for q in b.parameters())
    assert_same(a, b)
    assert_same_state(o, p)
    assert in_one_program(step)


@pytest.mark.parametrize(
    ("make", "edge_types"),
    [
        (lambda: Net(GCNConv(WIDTH, 8), GCNConv(8, CLASSES)), None),
        (lambda: Net(GATConv(WIDTH, 4, heads=2), GATConv(8, CLASSES)), None),
        (lambda: sage(norm=True), None),
        (lambda: Net(RGCNConv(WIDTH, 8, 5), RGCNConv(8, CLASSES, 5, num_bases=3)), 5),
        (lambda: Net(RGCNConv(WIDTH, 8, 5, num_blocks=2), RGCNConv(8, CLASSES, 5)), 5),
    ],
    ids=["gcn", "gat", "sage-norm", "rgcn-bases", "rgcn-blocks"],
)
def test_layers_train_alike(make: Callable[[], nn.Module], edge_types: int | None) -> None:
    a, o, b, _, step = twins(make, OPTIMIZERS["momentum"])
    x, edge_index, y = data()
    types = [] if edge_types is None else [torch.arange(E) % edge_types]
    train_both(5, a, o, step, x, edge_index, *types, y)
    assert_same(a, b)
    assert in_one_program(step)


@pytest.mark.parametrize(
    "layer",
    [GATConv, *(pytest.param(c, marks=pytest.mark.long) for c in (GCNConv, SAGEConv))],
)
def test_the_update_changes_nothing_before_it(layer: type[nn.Module]) -> None:
    """The passes over the graph are those of the loss with its gradients."""
    _, _, b, _, step = twins(lambda: Net(layer(WIDTH, 8), layer(8, CLASSES)), OPTIMIZERS["adam"])
    loss = gnnc.compile(loss_of(b))
    loss(*data()).backward()
    step(*data())

    def passes(compiled: Any) -> list[tuple[str, str]]:
        found = gnnc.explain(compiled).launches()
        kernels = [(k.kernel.split("_", 2)[-1], k.domain) for k in found]
        return [k for k in kernels if "segment" in k[0] or "outer" in k[0]]

    assert passes(step) == passes(loss)


def test_double_precision_is_exact_to_its_own_digits() -> None:
    a, o, b, _, step = twins(lambda: sage().double(), OPTIMIZERS["adam-decay"])
    args = data(dtype=torch.float64)
    train_both(10, a, o, step, *args)
    assert_same(a, b, 1e-12)


def test_shared_and_single_numbers() -> None:
    """One parameter of two layers has one gradient; a parameter may be a number."""

    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = GCNConv(WIDTH, WIDTH), GCNConv(WIDTH, WIDTH)
            self.second.lin.weight = self.first.lin.weight
            self.scale = nn.Parameter(torch.tensor(1.5))

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            h = self.second(torch.tanh(self.first(x, edge_index)), edge_index)
            return h * self.scale

    for name in ("adam-decay", "nesterov"):
        a, o, b, p, step = twins(Tied, OPTIMIZERS[name])
        args = data()
        train_both(4, a, o, step, *args)
        assert_same(a, b)
        assert_same_state(o, p)
        assert in_one_program(step)


def test_parameters_in_any_layout() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            flat = torch.randn(2 * WIDTH * CLASSES)
            self.weight = nn.Parameter(flat[: WIDTH * CLASSES].view(CLASSES, WIDTH).t())
            self.other = nn.Parameter(flat[WIDTH * CLASSES :].view(WIDTH, CLASSES))
            self.columns = nn.Parameter(torch.randn(CLASSES, N))

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            h = x @ (self.weight * torch.tanh(self.other)) + self.columns.t()
            return torch.zeros_like(h).index_add(0, edge_index[1], h[edge_index[0]])

    a, o, b, p, step = twins(Odd, OPTIMIZERS["adam"])
    args = data()
    train_both(4, a, o, step, *args)
    assert_same(a, b)
    assert_same_state(o, p)
    assert in_one_program(step)


def test_a_large_table_is_updated_in_pieces() -> None:
    class Wide(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(WIDTH, 5000))
            self.conv = GCNConv(5000, CLASSES)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(torch.tanh(x @ self.weight), edge_index)

    a, o, b, p, step = twins(Wide, OPTIMIZERS["adam"])
    args = data()
    train_both(3, a, o, step, *args)
    assert_same(a, b)
    assert_same_state(o, p)
    assert "intra.pieces" in _dumped(step)


def _dumped(step: Any) -> str:
    """What says so in the C of the program."""
    source = gnnc.explain(step).programs[0].program.source
    return "intra.pieces" if "pieces = " in source else source


# ---------------------------------------------------------------- the optimizer stays the owner


def test_groups_have_rates_of_their_own_and_schedules_are_followed() -> None:
    def groups(model: nn.Module) -> Optimizer:
        first, second = model.first.parameters(), model.second.parameters()
        return Adam(
            [{"params": first, "lr": 0.1, "weight_decay": 0.01}, {"params": second}], lr=0.01
        )

    torch.manual_seed(0)
    a = sage()
    b = copy.deepcopy(a)
    o, p = groups(a), groups(b)
    step = gnnc.train_step(loss_of(b), p)
    schedules = [torch.optim.lr_scheduler.ExponentialLR(q, 0.5) for q in (o, p)]
    args = data()
    for _ in range(4):
        train_both(1, a, o, step, *args)
        for schedule in schedules:
            schedule.step()
    assert_same(a, b)
    assert_same_state(o, p)
    assert in_one_program(step)


def test_checkpoints_go_on_where_they_were() -> None:
    a, o, b, p, step = twins(sage, OPTIMIZERS["adam"])
    args = data()
    train_both(3, a, o, step, *args)
    p.load_state_dict(copy.deepcopy(o.state_dict()))  # of torch's own making, into ours
    o.load_state_dict(copy.deepcopy(p.state_dict()))
    train_both(3, a, o, step, *args)
    assert_same(a, b)
    assert_same_state(o, p)
    assert in_one_program(step)


def test_another_graph_or_rate_compiles_nothing() -> None:
    _, _, _, p, step = twins(sage, OPTIMIZERS["adam"])
    step(*data())
    before = toolchain.stats().compiled
    for seed in range(3):
        p.param_groups[0]["lr"] *= 0.5
        p.param_groups[0]["weight_decay"] = 0.1
        step(*data(seed))
    assert toolchain.stats().compiled == before
    assert in_one_program(step)


def test_an_option_that_changes_the_rule_makes_another_program() -> None:
    a, o, b, p, step = twins(sage, OPTIMIZERS["sgd"])
    args = data()
    for momentum in (0.0, 0.9, 0.9, 0.0):
        for q in (o, p):
            q.param_groups[0]["momentum"] = momentum
        plain_step(a, o, *args)
        step(*args)
    assert_same(a, b)
    assert gnnc.explain(step).graphs == 2


def test_parameters_that_the_loss_is_not_made_of_stay() -> None:
    """torch leaves a parameter without a gradient alone; one whose gradient is 0 decays."""

    class Partly(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = SAGEConv(WIDTH, CLASSES)
            self.detached = nn.Parameter(torch.ones(CLASSES))
            self.unused = nn.Parameter(torch.ones(3))
            self.zero = nn.Parameter(torch.ones(CLASSES))

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(x, edge_index) * self.detached.detach() + self.zero.floor()

    a, o, b, p, step = twins(Partly, OPTIMIZERS["adamw"])
    args = data()
    train_both(3, a, o, step, *args)
    assert_same(a, b)
    assert_same_state(o, p)
    assert torch.equal(b.detached, torch.ones(CLASSES))
    assert in_one_program(step)


def test_state_lies_where_it_lay() -> None:
    """Nothing is swapped under the hands of who holds a parameter, and torch sees the edits."""
    _, _, b, p, step = twins(sage, OPTIMIZERS["adam"])
    args = data()
    step(*args)
    held = [*b.parameters(), *(v for s in p.state.values() for v in s.values())]
    before = [(x.data_ptr(), x._version, x.detach().clone()) for x in held]
    step(*args)
    for x, (address, version, old) in zip(held, before, strict=True):
        assert x.data_ptr() == address
        assert x._version > version
        assert not torch.equal(x, old)


def test_an_input_may_be_a_part_of_a_parameter() -> None:
    """What is written where an argument lies is read by others of that memory as it was."""

    class Embedding(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.randn(N, 8))
            self.first, self.second = SAGEConv(8, 8), SAGEConv(8, CLASSES)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            h = torch.tanh(self.first(self.table, edge_index)) * x
            return self.second(h, edge_index)

    torch.manual_seed(0)
    a = Embedding()
    b = copy.deepcopy(a)
    o, p = Adam(a.parameters(), lr=0.1), Adam(b.parameters(), lr=0.1)
    step = gnnc.train_step(loss_of(b), p)
    _, edge_index, y = data()
    for _ in range(4):
        plain_step(a, o, a.table.detach().flip(0).flip(0), edge_index, y)
        step(b.table.detach(), edge_index, y)
    assert_same(a, b)
    assert in_one_program(step)


def test_dropout_draws_anew_at_each_step() -> None:
    conv = GCNConv(WIDTH, CLASSES)
    x, edge_index, y = data()
    step = gnnc.train_step(
        lambda x: F.cross_entropy(F.dropout(conv(x, edge_index), 0.5), y),
        SGD(conv.parameters(), lr=0.0),
    )
    assert len({float(step(x)) for _ in range(4)}) == 4


# ---------------------------------------------------------------- what torch has to do


def fallbacks(step: Any) -> str:
    return "\n".join(gnnc.explain(step).fallbacks)


@pytest.mark.parametrize(
    ("optimizer", "words"),
    [
        (lambda p: RMSprop(p, lr=0.01), "RMSprop has no rule"),
        (lambda p: Adam(p, lr=0.01, maximize=True), "Adam with maximize=True has no rule"),
        (lambda p: SGD(p, lr=0.01, maximize=True), "SGD with maximize=True has no rule"),
    ],
    ids=["rmsprop", "adam-maximize", "sgd-maximize"],
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


# ---------------------------------------------------------------- errors


def test_arguments_of_another_type_are_refused() -> None:
    model = sage()
    with pytest.raises(TypeError, match="loss must be a function"):
        gnnc.train_step(3, SGD(model.parameters(), lr=0.1))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"optimizer must be a torch\.optim\.Optimizer, not list"):
        gnnc.train_step(loss_of(model), list(model.parameters()))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no_such_option"):
        gnnc.train_step(loss_of(model), SGD(model.parameters(), lr=0.1), no_such_option=1)


@pytest.mark.parametrize(
    "loss",
    [lambda y: y, lambda y: (y.sum(), y), lambda y: (y.sum(), y.argmax(1)), lambda y: 3.0],
)
def test_a_loss_of_several_numbers_is_refused(loss: Callable[[Tensor], Any]) -> None:
    model = SAGEConv(WIDTH, CLASSES)
    x, edge_index, _ = data()
    before = copy.deepcopy(model.state_dict())
    step = gnnc.train_step(lambda x, e: loss(model(x, e)), SGD(model.parameters(), lr=0.1))
    with pytest.raises(TypeError, match="the loss must be a tensor of one number"):
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
    step = gnnc.train_step(loss_of(model), RMSprop(model.parameters(), lr=0.1), fullgraph=True)
    with pytest.raises(RuntimeError, match="RMSprop has no rule"):
        step(*data())
