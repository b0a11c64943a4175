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
from torch_geometric.data import Batch, Data
from torch_geometric.nn import (
    ChebConv,
    GCNConv,
    MemPooling,
    TAGConv,
    TGNMemory,
)
from torch_geometric.nn.models.tgn import IdentityMessage, LastAggregator

import gnnc

from .contract import check
from .user_code import asserted, asserted_with_a_message
from .users import IDX, E, X, drawn, edges, gathered

# Dynamo looks at `.grad` of every argument
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")


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


@pytest.mark.one_in(2)
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


class _Doubling(type):
    """Makes objects with twice what they are given."""

    def __call__(cls, x: Tensor) -> Any:
        return super().__call__(x * 2)


class _Held(metaclass=_Doubling):
    def __init__(self, x: Tensor) -> None:
        self.x = x


@pytest.mark.parametrize("wrap", [lambda x: Batch(x=x, batch=x[:, 0].long()), _Held])
def test_a_class_that_its_metaclass_makes_objects_of(wrap: Any) -> None:
    def pooled(x: Tensor, e: Tensor) -> Any:
        return wrap(gathered(x, e))

    compiled = gnnc.compile(pooled)
    want, got = pooled(X, E), compiled(X, E)
    assert type(got) is type(want)
    torch.testing.assert_close(got.x, want.x)
    report = gnnc.explain(compiled)
    assert report.graphs
    assert any("metaclass says what a call of it makes" in r for r in report.fallbacks)


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


@pytest.mark.one_in(2)
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


def test_a_padding_index_of_several_numbers_a_row() -> None:
    def embedded(table: Tensor, e: Tensor) -> Tensor:
        return F.embedding(torch.stack([e[0], e[1]], 1), table, padding_idx=0)

    assert not check(embedded, (drawn(4, 2), E)).fallbacks


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


MASKED: dict[str, tuple[Callable[..., Tensor], str]] = {
    "add": (lambda x, m: x[m] + x[:2], "must match the size"),
    "reshape": (lambda x, m: x[m].reshape(2, -1) * 2, "is invalid for input of size"),
    "cat": (lambda x, m: torch.cat([x[m], x[~m, :2]], 1), "must match except in dimension 1"),
}


@pytest.mark.parametrize("name", MASKED)
def test_sizes_of_masks_that_do_not_fit(name: str) -> None:
    """The message is that of the operation, not of what Dynamo assumes of its sizes."""
    function, message = MASKED[name]
    mask = torch.tensor([True, False, True, True])
    for f in (function, gnnc.compile(function)):
        with pytest.raises(RuntimeError, match=message):
            f(X, mask)


def test_an_argument_that_has_a_gradient() -> None:
    """Of the argument's own size, which torch asks in C++: it was taken for a question of layouts,
    and the call left to torch."""
    conv = GCNConv(4, 2).double()
    compiled: nn.Module = gnnc.compile(copy.deepcopy(conv))
    for n in (5, 8):
        x, e = drawn(n, 4, seed=n).detach().double().requires_grad_(), edges(n, 12)
        compiled(x, e).sum().backward()
        assert x.grad is not None
        with torch.no_grad():
            torch.testing.assert_close(compiled(x, e), conv(x, e))
    assert not gnnc.explain(compiled).fallbacks


NORMALISED: dict[str, Callable[[nn.Module], nn.Module]] = {
    "rows": nn.utils.parametrizations.weight_norm,
    "columns": lambda m: nn.utils.parametrizations.weight_norm(m, dim=1),
    "whole": lambda m: nn.utils.parametrizations.weight_norm(m, dim=None),
}


@pytest.mark.parametrize("name", NORMALISED)
def test_weights_made_of_a_length_and_a_direction(name: str) -> None:
    conv = GCNConv(4, 3).double()
    NORMALISED[name](conv.lin)
    compiled: nn.Module = gnnc.compile(copy.deepcopy(conv))
    x, e = drawn(5, 4, seed=5).detach().double(), edges(5, 12)
    for m in (conv, compiled):
        m(x, e).pow(2).sum().backward()
    torch.testing.assert_close(compiled(x, e), conv(x, e))
    for a, b in zip(compiled.parameters(), conv.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)
    assert not gnnc.explain(compiled).fallbacks
