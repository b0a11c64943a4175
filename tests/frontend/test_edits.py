"""Edits in place: followed through views where that is exact, else in torch, with equal results."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

import gnnc

from .alias_programs import Program, assert_as_eager

# Dynamo looks for the gradient of arguments that are part of the caller's graph
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")

Tensors = tuple[Tensor, ...]


# ------------------------------------------------------------ edits that are compiled


def through_views(x: Tensor, w: Tensor, b: Tensor, i: Tensor) -> Tensors:
    h = x @ w
    v = h.t()
    v.mul_(2)
    c = h[:, 1]
    c += 1
    h.narrow(1, 2, 1).add_(1)
    return h.index_select(0, i), v


def inplace_by_position(x: Tensor, w: Tensor, b: Tensor, i: Tensor) -> Tensors:
    h = x @ w
    y, z = F.relu(h, True), F.leaky_relu(b, 0.1, True)
    return (h + y).index_select(0, i), z


def of_an_argument(x: Tensor, w: Tensor, b: Tensor, i: Tensor) -> Tensors:
    x.mul_(2)
    x[:, 0].add_(1)
    return (x.index_select(0, i) @ w,)


def gives_an_argument_a_gradient(x: Tensor, w: Tensor, b: Tensor, i: Tensor) -> Tensors:
    b.add_(x @ w)
    return (b.index_select(0, i),)


def of_a_column(x: Tensor, w: Tensor, b: Tensor, i: Tensor) -> Tensors:
    b[:, 1].add_(1)
    b[:, 0] += x[:, 1].detach()
    return ((b * x).index_select(0, i),)


def by_masks(x: Tensor, w: Tensor, b: Tensor, i: Tensor) -> Tensors:
    h = x @ w
    h[b[:, 0] > 0] = 0
    h[:, 1] = b[:, 1]
    h[:, 0] += x[:, 1]
    return (h.index_select(0, i),)


def without_gradients(x: Tensor, w: Tensor, b: Tensor, i: Tensor) -> Tensors:
    with torch.no_grad():
        h = x @ w
        h.clamp_(min=0)
        h[:, 0].mul_(2)
    return (h + x).index_select(0, i), h


def of_one_row(x: Tensor, w: Tensor, b: Tensor, i: Tensor) -> Tensors:
    h = x @ w
    h[0] = 1
    return (h.index_select(0, i),)


COMPILED = (
    of_one_row,
    through_views,
    inplace_by_position,
    of_an_argument,
    gives_an_argument_a_gradient,
    of_a_column,
    by_masks,
    without_gradients,
)


@pytest.mark.parametrize("program", COMPILED, ids=lambda f: f.__name__)
def test_edits_are_compiled(program: Program):
    report = assert_as_eager(program)
    assert report.graphs == 1
    assert not report.fallbacks


# ------------------------------------------------------ edits that torch has to make


def under_no_grad(x: Tensor, w: Tensor, b: Tensor, i: Tensor) -> Tensors:
    h = x * 3
    with torch.no_grad():
        h.clamp_(min=0)
    return (h.index_select(0, i) @ w,)


def through_data(x: Tensor, w: Tensor, b: Tensor, i: Tensor) -> Tensors:
    h = x @ w
    h.data.clamp_(min=0)
    h.detach().mul_(2)
    return ((h @ w).index_select(0, i),)


def of_an_argument_through_data(x: Tensor, w: Tensor, b: Tensor, i: Tensor) -> Tensors:
    b.data.add_(1)
    return ((b @ w).index_select(0, i),)


def of_a_parameter(x: Tensor, w: Tensor, b: Tensor, i: Tensor) -> Tensors:
    with torch.no_grad():
        w.clamp_(-0.5, 0.5)
    return ((x @ w).index_select(0, i),)


def of_what_backward_needs(x: Tensor, w: Tensor, b: Tensor, i: Tensor) -> Tensors:
    h = x.exp()
    z = (h * h).index_select(0, i)
    h.add_(1)
    return z, h


def of_a_view_that_backward_needs(x: Tensor, w: Tensor, b: Tensor, i: Tensor) -> Tensors:
    h = x @ w
    h[:, 0].relu_()
    h[:, 0].mul_(2)
    return (h.index_select(0, i),)


def to_out(x: Tensor, w: Tensor, b: Tensor, i: Tensor) -> Tensors:
    torch.add(b, 1, out=b)
    return (b.index_select(0, i),)


def of_all(x: Tensor, w: Tensor, b: Tensor, i: Tensor) -> Tensors:
    h = x @ w
    h.zero_()
    return (h.index_select(0, i), (b @ w).index_select(0, i))


def of_a_shape(x: Tensor, w: Tensor, b: Tensor, i: Tensor) -> Tensors:
    h = x @ w
    y = h.exp()
    h.unsqueeze_(1)
    h.transpose_(0, 1)
    return (h.squeeze(0) + y).index_select(0, i), h


IN_TORCH = {
    under_no_grad: "its history stays",
    through_data: "its history stays",
    of_an_argument_through_data: "through .data",
    of_a_parameter: "its history stays",
    of_what_backward_needs: "backward needs",
    of_a_view_that_backward_needs: "may need the numbers",
    to_out: "out=",
    of_all: "overwrites all",
    of_a_shape: "changes the shape of a tensor in place",
}


@pytest.mark.parametrize("program", IN_TORCH, ids=lambda f: f.__name__)
def test_the_smallest_part_runs_in_torch(program: Program):
    report = assert_as_eager(program)
    assert any(IN_TORCH[program] in message for message in report.fallbacks), report.fallbacks
    assert report.graphs >= 1


def test_an_edit_that_reads_what_it_writes_is_refused_as_in_eager():
    def program(x: Tensor, w: Tensor, b: Tensor, i: Tensor) -> Tensors:
        b.index_add_(0, i[:5], b)
        return (b,)

    assert_as_eager(program)


@pytest.mark.parametrize("view", ["T", "mT"])
def test_edits_through_transposes_of_cubes(view: str):
    """`T` reverses all three dimensions, `mT` swaps two: the sizes do not tell them apart."""
    numbers = torch.arange(27.0).view(3, 3, 3)

    def edit(x: Tensor, i: Tensor, cube: Tensor) -> Tensors:
        cube = cube * 2
        getattr(cube, view).mul_(numbers)
        return x.index_select(0, i).sum(), cube

    args = torch.ones(5, 3), torch.tensor([0, 2, 4]), numbers.flip(1)
    compiled = gnnc.compile(edit)
    for got, want in zip(compiled(*args), edit(*args), strict=True):
        assert torch.equal(got, want)
    assert gnnc.explain(compiled).fallbacks == []


def test_modes_cross_parts():
    def program(x: Tensor, w: Tensor, b: Tensor, i: Tensor) -> Tensors:
        with torch.no_grad():
            y = (x @ w).sort(0)[0]
            with torch.enable_grad():
                z = (x * 2).index_select(0, i)
            u = y @ w
        return y, z, u.index_select(0, i), (x.sort(0)[0] @ w).index_select(0, i)

    for grad_mode in (True, False):
        assert_as_eager(program, grad_mode)


# ------------------------------------------------------------------------- calls


def test_arguments_that_share_memory_at_a_later_call():
    def program(x: Tensor, y: Tensor, i: Tensor) -> Tensor:
        x.add_(1)
        y.mul_(2)
        return (x * y).index_select(0, i)

    call, i = gnnc.compile(program), torch.tensor([0, 4, 2])
    pairs = (
        lambda: (torch.ones(5, 3), torch.ones(5, 3)),
        lambda: (lambda t: (t, t.view(5, 3)))(torch.ones(5, 3)),
        lambda: (lambda t: (t[:5], t[2:7]))(torch.ones(9, 3)),
    )
    for make in pairs:
        mine, theirs = make(), make()
        assert torch.equal(call(*mine, i), program(*theirs, i))
        assert all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))
    assert any("shares" in message for message in gnnc.explain(call).fallbacks)


class Clamped(nn.Module):
    """Weights clamped in forward, and activations whose operand is read again."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.act = nn.Linear(3, 4), nn.ReLU(inplace=True)
        self.conv = GCNConv(4, 2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        with torch.no_grad():
            self.first.weight.clamp_(-0.2, 0.2)
        h = self.first(x)
        return self.conv(self.act(h) + h, edge_index)


def test_a_model_that_clamps_its_weights_trains_as_in_eager():
    torch.manual_seed(0)
    model, x = Clamped(), torch.randn(6, 3)
    edges = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
    other = gnnc.compile(copy.deepcopy(model))
    for net in (model, other):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
        for _ in range(3):
            optimizer.zero_grad()
            net(x, edges).square().sum().backward()
            optimizer.step()
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.allclose(p, q, atol=1e-5)


class Remembering(nn.Module):
    """Reads integers that its caller moves on between forward and backward, as TGN does."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.arange(6))
        self.conv = GCNConv(3, 2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv(x * self.seen.to(x.dtype).view(-1, 1), edge_index)


def test_integers_of_a_module_may_change_before_backward():
    torch.manual_seed(0)
    model, x = Remembering(), torch.randn(6, 3, requires_grad=True)
    edges = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
    gradients = []
    for net in (model, gnnc.compile(copy.deepcopy(model))):
        loss = net(x, edges).square().sum()
        net.seen += 1
        gradients.append(torch.autograd.grad(loss, [x, *net.parameters()]))
    for g, h in zip(*gradients, strict=True):
        assert torch.allclose(g, h, atol=1e-5)
