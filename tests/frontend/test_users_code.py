"""Programs of users that went wrong once, silently or with an error that was gnnc's own: each is
now eager's in all that a caller can observe."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.nn import (
    ChebConv,
    GCNConv,
    HANConv,
    HGTConv,
    MemPooling,
    TAGConv,
    TGNMemory,
)
from torch_geometric.nn.models.tgn import IdentityMessage, LastAggregator
from torch_geometric.utils import scatter

import gnnc

from .contract import assert_same, check, observe
from .user_code import asserted, asserted_with_a_message

# Dynamo looks at `.grad` of every argument
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")


def drawn(*shape: int, seed: int = 0, grad: bool = True) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).requires_grad_(grad)


def edges(nodes: int, count: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, max(nodes, 1), (2, count), generator=generator)


def gathered(x: Tensor, e: Tensor) -> Tensor:
    return torch.zeros(x.size(0), x.size(1), dtype=x.dtype).index_add(0, e[1], x[e[0]])


X, E, IDX = drawn(4, 3), edges(4, 6), torch.tensor([0, 2, 2, 1, 3])


# ---------------------------------------------------------------- sizes 0 and 1


def no_edges(x: Tensor, e: Tensor) -> Tensor:
    if e.size(1) == 0:
        return x * 2
    return gathered(x, e)


def some_numbers(x: Tensor, e: Tensor) -> Tensor:
    m = x[e[0]]
    return gathered(x, e) + (m.mean() if m.numel() > 0 else 1.0)


def at_least_one(x: Tensor, e: Tensor) -> Tensor:
    return gathered(x, e) / max(e.size(1), 1)


def after_a_break(x: Tensor, e: Tensor) -> Tensor:
    h = gathered(x, e)
    torch._dynamo.graph_break()
    return h * 3 if e.size(1) == 0 else h / e.size(1)


def mean_of_edges(x: Tensor, e: Tensor) -> Tensor:
    return gathered(x, e) + x[e[0]].mean(0)


def squeezed_weights(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    return torch.zeros_like(x).index_add(0, e[1], x[e[0]] * w.squeeze(-1).unsqueeze(-1)), w.squeeze(
        -1
    )


def squeezed(x: Tensor, e: Tensor) -> Tensor:
    return (gathered(x, e) * 2).squeeze()


ASKED: list[Callable[..., Any]] = [
    no_edges,
    some_numbers,
    at_least_one,
    after_a_break,
    mean_of_edges,
    squeezed,
]


@pytest.mark.parametrize("order", [(6, 0, 1, 2), (0, 6, 1), (1, 0, 6)], ids=str)
@pytest.mark.parametrize("function", ASKED, ids=lambda f: f.__name__)
def test_sizes_that_the_program_asks_about(function: Any, order: tuple[int, ...]) -> None:
    check(function, *((X, edges(4, n)) for n in order))


@pytest.mark.parametrize("order", [(4, 1, 3), (1, 4)], ids=str)
def test_one_node(order: tuple[int, ...]) -> None:
    check(squeezed, *((drawn(n, 3), edges(n, 5)) for n in order))


@pytest.mark.parametrize("order", [(6, 1, 0), (1, 6), (0, 6)], ids=str)
def test_weights_that_are_squeezed(order: tuple[int, ...]) -> None:
    check(squeezed_weights, *((X, edges(4, n), drawn(n, 1, seed=1)) for n in order))


def test_gcn_with_weights_that_are_squeezed() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(3, 2)

        def forward(self, x: Tensor, e: Tensor, w: Tensor) -> Tensor:
            return self.conv(x, e, w.squeeze(-1))

    torch.manual_seed(0)
    check(Net(), *((X, edges(4, n), drawn(n, 1, grad=False).abs()) for n in (6, 1, 5)))


def test_an_empty_relation_of_han() -> None:
    meta = (["a", "b"], [("a", "to", "b"), ("b", "to", "a")])
    torch.manual_seed(0)
    net = HANConv(4, 8, meta, heads=2).eval()

    def args(n: int, m: int) -> Any:
        x = {"a": drawn(3, 4, grad=False), "b": drawn(5, 4, seed=1, grad=False)}
        forth = torch.stack([edges(3, n)[0], edges(5, n, 1)[1]])
        back = torch.stack([edges(5, m)[0], edges(3, m, 1)[1]])
        return x, {("a", "to", "b"): forth, ("b", "to", "a"): back}

    check(net, args(6, 4), args(0, 4), args(6, 0))


# ---------------------------------------------------------------- autograd


def energy(pos: Tensor, e: Tensor, w: Tensor) -> Tensor:
    d = (pos[e[0]] - pos[e[1]]).pow(2).sum(-1)
    return scatter((-d).exp() @ w if d.dim() > 1 else (-d).exp() * w, e[1], 0, pos.size(0))


def test_forces_in_a_loss() -> None:
    def loss(f: Callable[..., Tensor], pos: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        out = f(pos, E, w)
        (force,) = torch.autograd.grad(out.sum(), pos, create_graph=True)
        return torch.autograd.grad(force.pow(2).sum() + out.sum(), [pos, w])

    pos, w = drawn(4, 3), torch.tensor(1.3, requires_grad=True)
    want, got = loss(energy, pos, w), loss(gnnc.compile(energy), pos, w)
    for x, y in zip(want, got, strict=True):
        assert torch.allclose(x, y, rtol=1e-5)


def test_unused_parameters_have_no_gradient() -> None:
    def half(x: Tensor, e: Tensor, unused: Tensor, frozen: Tensor) -> Tensor:
        return gathered(x, e) + frozen.detach()

    check(half, (X, E, drawn(3), drawn(3, seed=2)))

    def apart(x: Tensor, e: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return gathered(x @ a, e), gathered(x @ b, e)

    def of_the_first(y: Any, args: Any) -> Any:
        return torch.autograd.grad(y[0].sum(), args[2:], retain_graph=True, allow_unused=True)

    def flags(y: Any, args: Any) -> Any:
        return [g is None for g in of_the_first(y, args)]

    check(apart, (X, E, drawn(3, 2), drawn(3, 2, seed=1)), after=flags)


def test_hgt_leaves_what_it_does_not_use_alone() -> None:
    graph = HeteroData()
    graph["p"].x, graph["q"].x = drawn(5, 4, grad=False), drawn(4, 4, seed=1, grad=False)
    graph["p", "to", "q"].edge_index = torch.stack([edges(5, 7)[0], edges(4, 7, 1)[1]])
    torch.manual_seed(0)
    check(HGTConv(4, 8, graph.metadata(), heads=2), (graph.x_dict, graph.edge_index_dict))


def between_results(y: Any, args: Any) -> Any:
    h, out = y
    return torch.autograd.grad(out.sum(), h, retain_graph=True, allow_unused=True)


def test_gradients_between_results() -> None:
    def two(x: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
        h = gathered(x, e).tanh()
        return h, gathered(h, e) * h

    check(two, (X, E), after=between_results)

    def retained(y: Any, args: Any) -> Any:
        y[0].retain_grad()
        y[1].sum().backward(retain_graph=True)
        return y[0].grad

    check(two, (X, E), after=retained)


def test_gradients_inside_no_grad() -> None:
    def nested(x: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            h = gathered(x, e)
            with torch.enable_grad():
                k = gathered(x * 2, e)
        return h + x, k

    check(nested, (X, E))


def test_requires_grad_of_functions_that_are_flat() -> None:
    def flat(x: Tensor, e: Tensor) -> tuple[Tensor, ...]:
        h = gathered(x, e)
        return h.sign(), h.floor(), h**0, h > 0, h

    check(flat, (X, E))


def test_batched_gradients() -> None:
    f = gnnc.compile(lambda x, e: gathered(x * x, e))

    def jacobian(g: Any) -> Tensor:
        y = g(X, E)
        return torch.autograd.grad(y, X, torch.eye(12).view(12, 4, 3), is_grads_batched=True)[0]

    assert torch.allclose(jacobian(f), jacobian(lambda x, e: gathered(x * x, e)), rtol=1e-5)


def test_a_checkpoint_around_a_norm() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(3)

        def forward(self, x: Tensor, e: Tensor) -> Tensor:
            return gathered(checkpoint(self.norm, x, use_reentrant=False), e)

    check(Net(), (X, E))


def test_sparse_gradients_of_an_embedding() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(6, 3, sparse=True)

        def forward(self, i: Tensor, e: Tensor) -> Tensor:
            return gathered(self.table(i), e)

    torch.manual_seed(0)
    net = Net()
    check(net, (torch.tensor([0, 5, 5, 1]), E))
    assert net.table.weight.grad is not None and net.table.weight.grad.is_sparse


# ---------------------------------------------------------------- edits and aliases


def clamped_without_gradient(x: Tensor, e: Tensor) -> Tensor:
    h = x * 3
    with torch.no_grad():
        h.clamp_(min=0)
    return gathered(h, e)


def relu_by_position(x: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
    h = gathered(x, e)
    y = F.relu(h, True)
    return y, h * 2


def leaky_by_position(x: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
    h = gathered(x, e)
    y = F.leaky_relu(h, 0.1, True)
    return y * 1, h * 2


def transposed(x: Tensor, e: Tensor) -> tuple[Tensor, ...]:
    h = gathered(x, e)
    return h.t(), h.t().contiguous(), x.t().contiguous(), x.t() + 1


@pytest.mark.parametrize(
    "function",
    [clamped_without_gradient, relu_by_position, leaky_by_position, transposed],
    ids=lambda f: f.__name__,
)
def test_edits(function: Any) -> None:
    check(function, (X, E))


def test_weights_clamped_in_forward() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(drawn(3, 2, seed=3).detach())

        def forward(self, x: Tensor, e: Tensor) -> Tensor:
            with torch.no_grad():
                self.w.clamp_(min=0)
            return gathered(x @ self.w, e)

    net = Net()
    own = copy.deepcopy(net)
    check(net, (X, E), (X * 2, E))
    own(X, E)
    assert torch.equal(own.w, net.w)


@pytest.mark.parametrize(
    "activation",
    [nn.ReLU(True), nn.LeakyReLU(0.1, True), nn.ELU(inplace=True), nn.Dropout(0.0, True)],
    ids=lambda m: type(m).__name__,
)
def test_modules_that_edit_what_others_read(activation: nn.Module) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.activation = activation

        def forward(self, x: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
            h = gathered(x, e)
            y = self.activation(h)
            return y + 1, h * 2

    check(Net(), (X, E))


def test_an_argument_with_a_history_that_is_edited() -> None:
    class First(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act, self.lin = nn.ReLU(inplace=True), nn.Linear(3, 2)

        def forward(self, h: Tensor, e: Tensor) -> Tensor:
            return gathered(self.lin(self.act(h)), e)

    torch.manual_seed(0)
    net = First()
    own, compiled = copy.deepcopy(net), gnnc.compile(net)

    def around(f: nn.Module) -> Callable[..., Any]:
        def whole(x: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
            h = x * 2
            return f(h, e), h

        return whole

    assert_same(observe(around(own), (X, E)), observe(around(compiled), (X, E)))


@pytest.mark.parametrize("edit", [F.relu_, lambda h: h.mul_(3), lambda h: F.elu(h, 1.0, True)])
def test_an_argument_with_a_history_that_a_function_edits(edit: Any) -> None:
    def first(h: Tensor, e: Tensor, w: Tensor) -> Tensor:
        return gathered(edit(h) @ w, e)

    compiled = gnnc.compile(first)

    def around(f: Callable[..., Any]) -> Callable[..., Any]:
        def whole(x: Tensor, e: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
            h = x * 2
            return f(h, e, w), h

        return whole

    args = (X, E, drawn(3, 2))
    assert_same(observe(around(first), args), observe(around(compiled), args))


def edited_later(y: Any, args: Any) -> Any:
    with torch.no_grad():
        for z in y:
            z.add_(1.0)
    return [z.detach().clone() for z in (*y, *args)]


def test_results_that_are_views() -> None:
    def views(x: Tensor, e: Tensor) -> tuple[Tensor, ...]:
        h = gathered(x.detach(), e)
        return x.view(-1), x[:, 1], h, h.view(-1), h[:, :2], h + 0

    check(views, (X.detach(), E), after=edited_later)


def test_the_data_of_an_index_replaced() -> None:
    f = gnnc.compile(gathered)
    e = E.clone()
    f(X, e)
    e.data = edges(4, 6, 9)
    assert torch.allclose(f(X, e), gathered(X, e))


# ---------------------------------------------------------------- arguments

ARGUMENTS: dict[str, Callable[[Tensor], Any]] = {
    "cat axis": lambda h: torch.cat([h, h * 2], axis=1),
    "stack axis": lambda h: torch.stack([h, h * 2], axis=1).sum(axis=1),
    "mean keepdims": lambda h: h.mean(axis=1, keepdims=True),
    "softmax axis": lambda h: torch.softmax(h, axis=-1),
    "add in the old way": lambda h: torch.add(h, 2, h),
    "add_ in the old way": lambda h: h.clone().add_(0.1, h),
    "rsub alpha": lambda h: torch.rsub(h, h * 3, alpha=2),
    "sub alpha": lambda h: h.sub(h * 3, alpha=2),
    "max other": lambda h: torch.max(h, other=h * 2),
    "where as a method": lambda h: h.where(h > 0, -h),
    "where as a method, a number": lambda h: h.where(h > 0, 2.0),
    "floor division": lambda h: torch.div(h * 8, 2, rounding_mode="floor"),
    "truncated division": lambda h: torch.div(h * 8, 2, rounding_mode="trunc"),
    "sum as double": lambda h: h.sum(1, dtype=torch.float64),
}


@pytest.mark.filterwarnings("ignore:This overload of add:UserWarning")
@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(name: str) -> None:
    check(lambda x, e: ARGUMENTS[name](gathered(x, e)), (X, E))


# ---------------------------------------------------------------- effects


@pytest.mark.parametrize("function", [asserted, asserted_with_a_message])
def test_assertions_on_tensors(function: Any) -> None:
    f = gnnc.compile(function)
    assert torch.allclose(f(X, E, torch.ones(3)), function(X, E, torch.ones(3)))
    for _ in range(2):
        with pytest.raises((AssertionError, RuntimeError)):
            f(X, E, -torch.ones(3))


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 2)

    def forward(self, x: Tensor, e: Tensor) -> Tensor:
        return gathered(self.lin(x), e)


def test_hooks_registered_after_the_first_call() -> None:
    torch.manual_seed(0)
    net = gnnc.compile(Plain())
    first = net(X, E)
    handle = net.lin.register_forward_hook(lambda m, args, y: y * 2)
    net.register_forward_hook(lambda m, args, y: y + 1)
    bias = gathered(net.lin.bias.expand(4, 2), E)
    assert bias.shape == first.shape
    assert torch.allclose(net(X, E), first * 2 + 1, atol=1e-6)
    handle.remove()
    assert torch.allclose(net(X, E), first + 1, atol=1e-6)
    seen: list[Any] = []
    net.lin.register_full_backward_hook(lambda m, given, got: seen.append(m))
    net(X, E).sum().backward()
    assert seen == [net.lin]


def test_a_forward_replaced() -> None:
    net = gnnc.compile(Plain())
    net(X, E)
    net.forward = lambda x, e: x * 2
    assert torch.equal(net(X, E), X * 2)
    other = gnnc.compile(Plain())
    other(X, E)
    other.lin.forward = lambda x: x[:, :2]
    assert torch.allclose(other(X, E), gathered(X[:, :2], E))


def test_a_batch_made_inside() -> None:
    def batched(x: Tensor, e: Tensor) -> Batch:
        b = Batch.from_data_list([Data(x=x, edge_index=e), Data(x=x * 2, edge_index=e)])
        b.h = gathered(b.x, b.edge_index)
        return b

    want, got = batched(X, E), gnnc.compile(batched)(X, E)
    assert got.num_graphs == want.num_graphs == 2
    for key in ("x", "edge_index", "batch", "ptr", "h"):
        assert torch.equal(got[key], want[key]), key


def test_the_sizes_of_an_edge_index() -> None:
    from torch_geometric import EdgeIndex

    def sized(x: Tensor, e: Any) -> Any:
        return gathered(x, e.as_tensor()) * e.get_sparse_size(0)

    e = EdgeIndex(E, sparse_size=(7, 4))
    assert torch.allclose(gnnc.compile(sized)(X, e), sized(X, e))


# ---------------------------------------------------------------- numbers

NAN = torch.tensor([[float("nan"), 1.0, -0.0], [0.0, float("inf"), -1.0], [2.0, 2.0, 2.0]])
LOOPS = torch.arange(3).repeat(2, 1)

NUMBERS: dict[str, Callable[[Tensor], Any]] = {
    "std": lambda h: h.std(1),
    "std of rows": lambda h: h.std(0),
    "var": lambda h: h.var(1, unbiased=False).sqrt(),
    "relu": F.relu,
    "clamp": lambda h: h.clamp(-0.5, 0.5),
    "clamp_min": lambda h: h.clamp(min=0),
    "abs": torch.abs,
    "maximum": lambda h: torch.maximum(h, torch.zeros(())),
    "minimum": lambda h: torch.minimum(h, torch.ones(())),
    "gelu": lambda h: F.gelu(h.clamp(max=9.0)),  # at inf torch depends on the place of a number
    "leaky_relu": lambda h: F.leaky_relu(h, 0.1),
    "elu": lambda h: F.elu(h.detach()),  # and that at NaN here
    "sigmoid": torch.sigmoid,
    "max of columns": lambda h: h.max(1),
    "argmax": lambda h: h.argmax(1),
    "min of columns": lambda h: h.min(dim=1).values,
    "amax": lambda h: h.amax(1),
    "max of all": lambda h: h.max(),
    "power 0": lambda h: h**0,
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name: str) -> None:
    def function(x: Tensor, e: Tensor) -> Any:
        return (
            tuple(NUMBERS[name](gathered(x, e)))
            if "max of c" in name
            else NUMBERS[name](gathered(x, e))
        )

    ties = torch.tensor([[3.0, 1.0, 3.0], [3.0, 0.0, 0.0], [2.0, 2.0, 2.0]])
    check(function, (NAN.clone().requires_grad_(), LOOPS), (ties.requires_grad_(), LOOPS))


def test_a_negative_padding_index() -> None:
    def embedded(i: Tensor, table: Tensor, e: Tensor) -> Tensor:
        return gathered(F.embedding(i, table, padding_idx=-1), e)

    check(embedded, (torch.tensor([0, 5, 5, 1]), drawn(6, 3), E))


def test_constants_of_float32_in_float64() -> None:
    def scaled(x: Tensor, e: Tensor) -> Tensor:
        return gathered(x, e) * torch.tensor(0.1) + torch.full((1,), 0.3, dtype=torch.float32)

    check(scaled, (X.detach().double().requires_grad_(), E))


def test_integers_divided_by_zero() -> None:
    def divided(x: Tensor, e: Tensor, k: Tensor) -> Tensor:
        return gathered(x, e)[k[0] // k[1]]

    good = torch.tensor([[5, 3, 2], [2, 1, 3]])
    check(divided, (X, E, good), (X, E, good * torch.tensor([[1], [0]])))

    def of_edges(x: Tensor, e: Tensor, k: Tensor) -> Tensor:
        return gathered(x, e) * (k[0] // k[1]).sum()

    check(of_edges, (X, E, good), (X, E, good * torch.tensor([[1], [0]])))


# ---------------------------------------------------------------- crashes


def anywhere(x: Tensor, e: Tensor) -> Tensor:
    return torch.zeros_like(x).index_add(0, e[1], x.index_select(0, e[0]))


@pytest.mark.parametrize("first", [True, False])
def test_tensors_on_another_device(first: bool) -> None:
    f = gnnc.compile(anywhere)
    if not first:
        f(X, E)
    away = torch.empty(4, 3, device="meta")
    assert f(away, E.to("meta")).device.type == "meta"
    for args in ((away, E), (X, E.to("meta"))):
        with pytest.raises((RuntimeError, NotImplementedError)) as want:
            anywhere(*args)
        with pytest.raises(want.type):
            f(*args)
    assert torch.allclose(f(X, E), anywhere(X, E))


def test_memory_of_tgn() -> None:
    def memory() -> TGNMemory:
        torch.manual_seed(0)
        return TGNMemory(6, 2, 4, 4, IdentityMessage(2, 4, 4), LastAggregator())

    def steps(net: TGNMemory, call: Callable[..., Any]) -> list[Tensor]:
        out = []
        src, dst = torch.tensor([0, 1, 2]), torch.tensor([3, 4, 5])
        for k in range(3):
            n_id = torch.tensor([0, 3, 5, 1])
            z, last = call(n_id)
            (z.sum()).backward()
            net.update_state(src, dst, torch.arange(3) + 3 * k, drawn(3, 2, seed=k, grad=False))
            net.detach()
            out += [z.detach(), last.clone()]
        return out + [p.grad for p in net.parameters() if p.grad is not None]

    own, net = memory(), memory()
    compiled = gnnc.compile(net)
    for x, y in zip(steps(own, own), steps(net, compiled), strict=True):
        assert torch.allclose(x, y, atol=1e-5)


def test_memory_pooling() -> None:
    torch.manual_seed(0)
    check(MemPooling(3, 4, heads=2, num_clusters=2), (X, torch.tensor([0, 0, 1, 1])))


def test_scripted_layers_after_a_compilation() -> None:
    gnnc.compile(gathered)(X, E)
    conv = GCNConv(3, 2)
    with pytest.warns(DeprecationWarning):
        scripted = torch.jit.script(conv)
    assert torch.allclose(scripted(X, E), conv(X, E))


def number_or_one(x: Tensor, e: Tensor, m: Tensor) -> Tensor:
    return gathered(x, e) / (m.sum().item() or 1)


def times_any(x: Tensor, e: Tensor, m: Tensor) -> Tensor:
    return gathered(x, e) * bool(m.any())


@pytest.mark.parametrize("function", [number_or_one, times_any], ids=lambda f: f.__name__)
def test_numbers_that_depend_on_data(function: Any) -> None:
    some, none = torch.tensor([True, False, True]), torch.zeros(3, dtype=torch.bool)
    check(function, (X, E, some), (X, E, none), (X, E, some))


def test_negative_indices() -> None:
    def items(x: Tensor, e: Tensor, i: Tensor) -> Tensor:
        return gathered(x, e)[i] * 2

    check(items, (X, E, IDX), (X, E, IDX - 4), (X, E, IDX + 40))

    def selected(x: Tensor, e: Tensor, i: Tensor) -> Tensor:
        return gathered(x, e).index_select(0, i)

    check(selected, (X, E, IDX), (X, E, IDX - 4))


@pytest.mark.parametrize("weights", [False, True])
def test_products_between_hops(weights: bool) -> None:
    torch.manual_seed(0)
    w = (torch.rand(6),) if weights else ()
    check(TAGConv(16, 32, K=3), (drawn(4, 16), E, *w))


def test_numbers_of_graphs_read_through_a_batch() -> None:
    torch.manual_seed(0)
    ring = torch.stack([torch.arange(4), torch.arange(4).roll(1)])
    ring = torch.cat([ring, ring.flip(0)], 1)
    batch, top = torch.tensor([0, 0, 1, 1]), torch.tensor([2.0, 1.5])
    check(ChebConv(3, 2, K=3), (X, ring, None, batch, top))


def test_index_add_of_a_squeezed_tensor() -> None:
    def added(x: Tensor, e: Tensor) -> Tensor:
        m = (x[e[0]] @ torch.ones(3, 1)).squeeze()
        return torch.zeros(x.size(0)).index_add(0, e[1], m)

    check(added, (X, E), (X, edges(4, 9)))
