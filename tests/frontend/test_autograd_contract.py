"""What autograd promises of a compiled call: None or a gradient, who requires one, and the
gradients between results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv

import gnnc

from .eagerly import assert_as_eager, gradients
from .models import CLASSES, NODES, WIDTH, graph


def summed(x: Tensor, edge_index: Tensor) -> Tensor:
    return torch.zeros_like(x).index_add(0, edge_index[1], x.index_select(0, edge_index[0]))


class Several(nn.Module):
    """Results of different parameters: of some, of none that wants a gradient, of no float."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.signs, self.apart = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, ...]:
        a = summed(self.a(x), edge_index)
        with torch.no_grad():
            measured = self.apart(x).sum()
        return a, self.b(x), torch.sign(self.signs(x)), self.apart(x).detach(), a > 0, measured


@pytest.mark.parametrize("used", [[0], [1], [2], [0, 1], [0, 1, 2]])
def test_what_a_loss_is_not_made_of_has_no_gradient(used: list[int]) -> None:
    x, edge_index = graph()

    def run(model: nn.Module) -> Any:
        z = x.clone().requires_grad_()
        results = model(z, edge_index)
        sum((k + 1) * results[i].square().sum() for k, i in enumerate(used)).backward()
        return [y.requires_grad for y in results], gradients(model), z.grad

    model = assert_as_eager(Several, run)
    assert gnnc.explain(model).fallbacks == []


def test_weights_that_are_not_used_do_not_decay() -> None:
    x, edge_index = graph()

    def run(model: nn.Module) -> Any:
        optimiser = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=0.5)
        for _ in range(3):
            optimiser.zero_grad()
            model(x, edge_index)[1].square().mean().backward()
            optimiser.step()
        return dict(model.named_parameters())

    assert_as_eager(Several, run)


def test_a_backward_of_one_result_leaves_the_history_of_the_others() -> None:
    """Its hooks are not called, and it is not freed."""
    _, edge_index = graph()

    def two(x: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, ...]:
        fixed = summed(z.detach(), edge_index)
        return summed(x, edge_index) * fixed, summed(y, edge_index).exp(), x.cos() * y

    def run(f: Callable[..., Any]) -> Any:
        torch.manual_seed(0)
        leaves = [torch.randn(NODES, WIDTH, requires_grad=True) for _ in range(3)]
        calls: list[Tensor] = []
        for leaf in leaves:
            leaf.register_hook(lambda d: calls.append(d.clone()))
        args = [leaf * leaf for leaf in leaves]
        for x in args:
            x.register_hook(lambda d: calls.append(d.clone()))
        first, second, both = f(*args)
        first.sum().backward()
        second.sum().backward()
        args[2].sum().backward()
        with pytest.raises(RuntimeError, match="second time"):
            both.sum().backward()
        return calls, [leaf.grad for leaf in leaves]

    expected, found = run(two), run(gnnc.compile(two))
    torch.testing.assert_close(found, expected)


def test_all_results_in_one_backward() -> None:
    """One compiled backward serves all results, also where they are of different arguments."""
    x, edge_index = graph()

    def run(model: nn.Module) -> Any:
        z = x.clone().requires_grad_()
        a, b, signs, *_ = model(z * 1, edge_index)
        loss = a.square().sum() + b.sum() + signs.sum()
        loss.backward(retain_graph=True)
        loss.backward(retain_graph=True)
        (d,) = torch.autograd.grad(loss, z, create_graph=True)
        (d * d).sum().backward()
        return gradients(model), z.grad

    assert_as_eager(Several, run)


class Layers(nn.Module):
    """Results that are made of each other."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = GCNConv(WIDTH, 8), GCNConv(8, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, ...]:
        h = self.first(x, edge_index).relu()
        z = self.second(h, edge_index)
        return h, z, F.log_softmax(z, dim=1)


def plain(h: Tensor, z: Tensor, y: Tensor) -> Any:
    (y[:, 0].sum() + h.sum()).backward()


def retained(h: Tensor, z: Tensor, y: Tensor) -> Any:
    h.retain_grad()
    z.retain_grad()
    (y[:, 0].sum() + h.sum()).backward()
    return h.grad, z.grad


def hooked(h: Tensor, z: Tensor, y: Tensor) -> Any:
    h.register_hook(lambda d: 2 * d)
    (y[:, 0].sum() + h.sum()).backward()


def asked_for(h: Tensor, z: Tensor, y: Tensor) -> Any:
    one = torch.autograd.grad(y[:, 0].sum(), [h, z], retain_graph=True)
    return one, torch.autograd.grad(y[:, 1].sum(), z, retain_graph=True), plain(h, z, y)


def only_for_leaves(h: Tensor, z: Tensor, y: Tensor) -> Any:
    y[:, 1].sum().backward(inputs=[h])
    return h.grad


def of_second_order(h: Tensor, z: Tensor, y: Tensor) -> Any:
    (d,) = torch.autograd.grad(y[:, 0].sum(), h, create_graph=True)
    d.square().sum().backward()
    return d


def twice(h: Tensor, z: Tensor, y: Tensor) -> Any:
    y[:, 0].sum().backward(retain_graph=True)
    h.retain_grad()
    z.square().sum().backward()
    return h.grad


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "look", [plain, retained, hooked, asked_for, only_for_leaves, of_second_order, twice]
)
def test_gradients_between_results(look: Callable[..., Any]) -> None:
    x, edge_index = graph()

    def run(model: nn.Module) -> Any:
        z = x.clone().requires_grad_()
        seen = look(*model(z, edge_index))
        return seen, z.grad, gradients(model)

    model = assert_as_eager(Layers, run)
    assert gnnc.explain(model).graphs == 1


def test_a_linked_result_is_freed_and_may_be_edited() -> None:
    x, edge_index = graph()

    def run(model: nn.Module) -> Any:
        h, z, _ = model(x, edge_index)
        shifted = z + h.sum()
        shifted.add_(1.0)
        shifted.square().sum().backward()
        found = {name: d.clone() for name, d in gradients(model).items() if d is not None}
        with pytest.raises(RuntimeError, match="second time"):
            shifted.sum().backward()
        return found

    assert_as_eager(Layers, run)


def test_the_gradient_of_attention_weights() -> None:
    x, edge_index = graph()

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GATConv(WIDTH, 4, heads=2)

        def forward(self, x: Tensor, edge_index: Tensor) -> Any:
            return self.conv(x, edge_index, return_attention_weights=True)

    def run(model: nn.Module) -> Any:
        out, (edges, alpha) = model(x, edge_index)
        alpha.retain_grad()
        out.square().sum().backward()
        return edges, alpha.grad, gradients(model)

    assert_as_eager(Attention, run)


def test_vectorised_gradients() -> None:
    x, edge_index = graph()

    def run(model: nn.Module) -> Any:
        z = x.clone().requires_grad_()
        y = model(z, edge_index)[0]
        several = torch.eye(y.numel()).view(-1, *y.shape)[:5]
        return torch.autograd.grad(y, z, several, is_grads_batched=True)

    assert_as_eager(Several, run)


class Modes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, ...]:
        with torch.no_grad():
            h = self.a(x)
            with torch.enable_grad():
                g = self.b(x).index_select(0, edge_index[0])
            k = g * 2
        return h, torch.zeros_like(x).index_add(0, edge_index[1], g), k


@pytest.mark.parametrize("outside", [torch.enable_grad, torch.no_grad])
def test_gradients_enabled_and_disabled_inside(outside: Any) -> None:
    x, edge_index = graph()

    def run(model: nn.Module) -> Any:
        with outside():
            results = model(x, edge_index)
        flags = [y.requires_grad for y in results]
        if any(flags):
            sum(y.sum() for y in results if y.requires_grad).backward()
        return flags, gradients(model)

    assert_as_eager(Modes, run)


class EnabledInside(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(WIDTH, 8)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        with torch.enable_grad():
            return self.conv(x, edge_index).relu()


def test_gradients_enabled_inside_a_call_without() -> None:
    x, edge_index = graph()

    def run(model: nn.Module) -> Any:
        with torch.no_grad():
            y = model(x, edge_index)
        y.square().sum().backward()
        return y, gradients(model)

    assert_as_eager(EnabledInside, run)


def test_inference_mode() -> None:
    x, edge_index = graph()

    def run(model: nn.Module) -> Any:
        with torch.inference_mode():
            y = model(x, edge_index)[0]
        return y, y.requires_grad, y.is_inference()

    assert_as_eager(Several, run)


def test_tensors_of_inference_mode() -> None:
    """Where torch refuses them, so does a compiled call, and nowhere else."""
    x, edge_index = graph()
    with torch.inference_mode():
        y, edges = x.clone(), edge_index.clone()

    def run(model: nn.Module) -> Any:
        seen: list[str] = []
        for args in ((y, edge_index), (x, edges), (x, edge_index)):
            try:
                model(*args)[0].sum().backward()
                seen.append("runs")
            except RuntimeError as error:
                assert "made in inference mode" in str(error) or "Inference tensors" in str(error)
                seen.append("raises")
        with torch.no_grad():
            return seen, model(y, edges), gradients(model)

    assert_as_eager(Several, run)


def test_tensors_of_inference_mode_are_not_edited_outside_of_it() -> None:
    with torch.inference_mode():
        x = torch.ones(NODES, WIDTH)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        gnnc.compile(lambda x: x.mul_(2))(x)


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled:UserWarning")
def test_anomalies_are_detected_in_torchs_operations() -> None:
    """Also in one whose numbers another operation puts away."""

    def loss(x: Tensor, edge_index: Tensor) -> Tensor:
        return torch.where(x > 0, summed(x * 0, edge_index).sqrt(), 0).sum() * 0

    x, edge_index = graph()
    with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="SqrtBackward0"):
        gnnc.compile(loss)(x.requires_grad_(), edge_index).backward()
    w = nn.Parameter(x.detach())
    step = gnnc.train_step(loss, torch.optim.SGD([w], 0.1))
    with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="SqrtBackward0"):
        step(w, edge_index)


def test_forward_mode_is_not_dropped() -> None:
    x, edge_index = graph()

    def run(model: nn.Module) -> Any:
        with torch.no_grad(), torch.autograd.forward_ad.dual_level():
            z = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
            return torch.autograd.forward_ad.unpack_dual(model(z, edge_index)[0]).tangent

    assert_as_eager(Several, run)


class Stateful(nn.Module):
    """Buffers that backward reads, and the user changes before it."""

    def __init__(self) -> None:
        super().__init__()
        self.time, self.memory = nn.Linear(1, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.register_buffer("last", torch.arange(NODES))
        self.register_buffer("state", torch.randn(NODES, WIDTH))

    def forward(self, edge_index: Tensor, now: Tensor) -> Tensor:
        age = (self.last[edge_index[0]] - now).float().view(-1, 1)
        messages = torch.cos(self.time(age)) + self.memory(self.state[edge_index[0]])
        return torch.zeros(NODES, WIDTH).index_add(0, edge_index[1], messages)


def test_buffers_changed_between_forward_and_backward() -> None:
    _, edge_index = graph()

    def run(model: Any) -> Any:
        y = model(edge_index, torch.arange(edge_index.shape[1]))
        model.last += 5
        model.state[edge_index[0]] *= 2
        y.square().sum().backward()
        return gradients(model)

    assert_as_eager(Stateful, run)
