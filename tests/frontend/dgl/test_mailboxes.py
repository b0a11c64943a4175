"""Reduce functions of users: traced for all degrees at once, with the values and gradients of DGL,
which calls them for each degree; those that cannot be traced so run as in DGL, and that is told.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import gnnc
from gnnc.bench.dgl_shim import install

install()
dgl = pytest.importorskip("dgl", reason="dgl has no wheel for this Python or machine")
ours = importlib.import_module("gnnc.dgl")
fn = dgl.function

SIZES = ((30, 18, 70), (45, 25, 90), (12, 7, 25))
HEADS, WIDTH = 2, 4


class Reduce(nn.Module):
    """`update_all` with a reduce function, which is given the parameters that it may use.

    Messages are `m` (width), `e` (1), `k` (heads, width) and `s` (none).
    """

    def __init__(self, function: Callable[[Any, Any], Tensor]) -> None:
        super().__init__()
        self.function = function
        self.linear, self.narrow = nn.Linear(WIDTH, WIDTH), nn.Linear(2 * WIDTH, 1)
        self.network = nn.Sequential(nn.Linear(WIDTH, 6), nn.ReLU(inplace=True), nn.Linear(6, 3))
        self.norm, self.gru = nn.LayerNorm(WIDTH), nn.GRUCell(WIDTH, WIDTH)
        self.bias = nn.Parameter(torch.randn(HEADS, WIDTH))

    def message(self, edges: Any) -> dict[str, Tensor]:
        m = edges.src["x"] * edges.data["w"]
        many = m.unsqueeze(1) * self.bias
        return {"m": m, "e": edges.data["w"].sin(), "k": many, "s": m.sum(1)}

    def reduce(self, nodes: Any) -> dict[str, Tensor]:
        return {"h": self.function(self, nodes)}

    def forward(self, g: Any, x: Tensor, w: Tensor) -> Tensor:
        with g.local_scope():
            g.ndata["x"], g.edata["w"] = x, w
            g.update_all(self.message, self.reduce)
            return g.ndata["h"]


def graph(n: int, e: int) -> Any:
    """Half of the nodes have no message, others one, and some many; edges may be parallel."""
    return dgl.graph((torch.randint(n, (e,)), torch.randint(n // 2, (e,))), num_nodes=n)


def sample(n: int, m: int, e: int) -> tuple[Any, ...]:
    return graph(n, e), torch.randn(n, WIDTH), torch.rand(e, 1) + 0.5


def leaves(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x.detach().clone().requires_grad_()
    return {k: leaves(v) for k, v in x.items()} if isinstance(x, dict) else x


def tensors(x: Any) -> list[Tensor]:
    if isinstance(x, dict):
        return [t for v in x.values() for t in tensors(v)]
    return [x] if isinstance(x, Tensor) else []


def run(f: Callable[..., Any], model: nn.Module, args: tuple[Any, ...]) -> list[Tensor]:
    """The results, and the gradients of all arguments and parameters."""
    args = tuple(leaves(x) for x in args)
    results = tensors(f(*args))
    wanted = [t for x in args for t in tensors(x)] + list(model.parameters())
    loss = sum(x.sin().sum() for x in results)
    grads = torch.autograd.grad(loss, wanted, allow_unused=True)  # pyright: ignore
    zeros = [torch.zeros_like(x) if g is None else g for x, g in zip(wanted, grads, strict=True)]
    return [x.detach() for x in results] + zeros


def compare(model: nn.Module, make: Callable[..., tuple[Any, ...]]) -> list[Any]:
    """Compiled against DGL's eager calls, with DGL's graph and with ours; what was told of them."""
    reports = []
    for convert in (lambda g: g, ours.from_dgl):
        compiled = gnnc.compile(copy.deepcopy(model))
        for sizes in SIZES:
            g, *args = make(*sizes)
            expected = run(model, model, (g, *args))
            found = run(compiled, compiled, (convert(g), *args))
            torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)
        reports.append(gnnc.explain(compiled))
    return reports


def check(model: nn.Module, make: Callable[..., tuple[Any, ...]]) -> None:
    for report in compare(model, make):
        assert report.fallbacks == []
        assert len(report.programs) == 1


def mean_and_more(p: Reduce, nodes: Any) -> Tensor:
    m = nodes.mailbox["m"]
    return torch.cat([m.mean(1), m.max(1).values, torch.min(m, dim=1)[0], m.std(1, False)], -1)


def by_hand(p: Reduce, nodes: Any) -> Tensor:
    power = (nodes.mailbox["e"] - nodes.mailbox["e"].max(1, keepdim=True)[0]).exp()
    return p.linear((power * nodes.mailbox["m"]).sum(1) / power.sum(1))


def attention(p: Reduce, nodes: Any) -> Tensor:
    m = nodes.mailbox["m"]
    x = nodes.data["x"].unsqueeze(1).repeat(1, m.shape[1], 1)
    alpha = F.softmax(F.leaky_relu(p.narrow(torch.cat([m, x], dim=-1)), 0.2), dim=1)
    return F.elu((alpha * m).sum(dim=1))


def dot_attention(p: Reduce, nodes: Any) -> Tensor:
    x, m = p.linear(nodes.data["x"]), nodes.mailbox["m"]
    score = (x.unsqueeze(1) * m).sum(-1, keepdim=True) / WIDTH**0.5
    return (score.softmax(1) * m).sum(1)


def heads(p: Reduce, nodes: Any) -> Tensor:
    k = nodes.mailbox["k"]
    alpha = torch.softmax((k * p.bias).sum(-1), dim=1).unsqueeze(-1)
    return (alpha * k).sum(1).view(-1, HEADS * WIDTH)


def tree(p: Reduce, nodes: Any) -> Tensor:
    c, forget = nodes.mailbox["m"], torch.sigmoid(p.linear(nodes.mailbox["m"]))
    total = p.network(torch.sum(nodes.mailbox["m"], 1))
    i, o, u = torch.chunk(total, 3, 1)
    return torch.sigmoid(o) * torch.tanh(torch.sigmoid(i) * u.tanh() + (forget * c).sum(1))


def moments(p: Reduce, nodes: Any) -> Tensor:
    m = nodes.mailbox["m"]
    variance = torch.relu((m * m).mean(dim=-2) - m.mean(dim=-2) ** 2)
    return torch.cat([torch.sqrt(variance + 1e-5), torch.var(m, 1, unbiased=False)], dim=1)


def unbiased(p: Reduce, nodes: Any) -> Tensor:
    m = nodes.mailbox["m"]
    several = torch.where(m.shape[1] * torch.ones_like(m[:, :, 0]) > 1, 1.0, 0.0).amax(1)
    return several.unsqueeze(-1) * (m.sum(1) / m.shape[1]) ** 2


def distances(p: Reduce, nodes: Any) -> Tensor:
    apart = nodes.data["x"][:, None] - nodes.mailbox["m"]
    near = apart.pow(2).sum(dim=2, keepdim=True).clamp(min=1e-3)
    return nodes.data["x"] + (apart / (near.sqrt() + 1)).mean(dim=1)


def reshaped(p: Reduce, nodes: Any) -> Tensor:
    k = nodes.mailbox["k"]
    flat = k.view(k.shape[0], k.shape[1], -1).reshape(k.size(0), k.size(1), WIDTH, HEADS)
    return flat.transpose(2, 3).permute(0, 1, 3, 2).flatten(2).max(dim=1)[0]


def picked(p: Reduce, nodes: Any) -> Tensor:
    m = nodes.mailbox["m"]
    return torch.stack([m[..., 0].sum(1), m[:, :, 1:3].sum(-1).amin(1), m[:, :, -1].mean(1)], 1)


def expanded(p: Reduce, nodes: Any) -> Tensor:
    m, x = nodes.mailbox["m"], nodes.data["x"].unsqueeze(1)
    return (x.expand_as(m) * m + x.expand(-1, m.shape[1], -1).cos()).mean(1)


def norms(p: Reduce, nodes: Any) -> Tensor:
    m = nodes.mailbox["m"]
    return torch.cat([m.norm(dim=1), m.norm(p=2, dim=-1).sum(1, keepdim=True)], 1)


def normalized(p: Reduce, nodes: Any) -> Tensor:
    return F.normalize(p.linear(nodes.mailbox["m"].sum(1)), p=2, dim=-1)


def cell(p: Reduce, nodes: Any) -> Tensor:
    return p.gru(nodes.mailbox["m"].sum(1), nodes.data["x"])


def by_degree(p: Reduce, nodes: Any) -> Tensor:
    m = nodes.mailbox["m"]
    return p.linear(m.sum(1) / m.shape[1]) * (1 + 1 / m.size(1)) - m.shape[1] ** 2


def logarithms(p: Reduce, nodes: Any) -> Tensor:
    m = nodes.mailbox["m"]
    return m.log_softmax(1).mean(1) + torch.logsumexp(m, 1)


def masked(p: Reduce, nodes: Any) -> Tensor:
    m = nodes.mailbox["m"]
    return torch.where(m > 0, m, 0.1 * m).sum(1) + m.masked_fill(m < 0, 0.5).amax(1)


def numbers(p: Reduce, nodes: Any) -> Tensor:
    s = nodes.mailbox["s"]
    return p.linear((s.softmax(dim=1).unsqueeze(2) * nodes.mailbox["m"]).sum(1)) + s.sum(1)[:, None]


def inverse(p: Reduce, nodes: Any) -> Tensor:
    """What would be infinite at nodes without messages, and NaN in gradients of weights."""
    total, spread = nodes.mailbox["e"].sum(1), nodes.mailbox["s"].std(1, False)
    return p.linear(nodes.data["x"] / total + spread[:, None])


def in_place(p: Reduce, nodes: Any) -> Tensor:
    """Another name for the messages sees what is done to them."""
    m = other = nodes.mailbox["m"] * 2
    m += 1
    m *= nodes.data["x"].unsqueeze(1)
    m -= nodes.mailbox["e"]
    m += p.linear.weight[0]
    h = other.sum(1)
    h /= 3
    return h


def attention_by_products(p: Reduce, nodes: Any) -> Tensor:
    m, x = nodes.mailbox["m"], p.linear(nodes.data["x"])
    score = torch.bmm(x.unsqueeze(1), m.transpose(1, 2)) / WIDTH**0.5
    return torch.bmm(torch.softmax(score, dim=-1), m).squeeze(1)


def scores_of_nodes(p: Reduce, nodes: Any) -> Tensor:
    m = nodes.mailbox["m"]
    score = m @ p.linear(nodes.data["x"]).unsqueeze(2)
    return (score.softmax(1) * m).sum(1)


def outer_products(p: Reduce, nodes: Any) -> Tensor:
    m, k = nodes.mailbox["m"], nodes.mailbox["k"]
    by_rows = (m.unsqueeze(2) * m.unsqueeze(3)).sum(1)
    by_product = torch.bmm(m.transpose(1, 2), m) + m.permute(0, 2, 1) @ k[:, :, 0]
    return by_rows.flatten(1) - by_product.tanh().flatten(1)


def turned_round(p: Reduce, nodes: Any) -> Tensor:
    m = nodes.mailbox["m"]
    turned = m.transpose(1, 2) * 2
    scores = turned.mean(1).softmax(1)[..., None] * turned.transpose(-1, -2)
    return torch.cat([turned.sum(-1), m.permute(0, 2, 1).amax(dim=2), scores.sum(1)], 1)


def einsums(p: Reduce, nodes: Any) -> Tensor:
    m, x, k = nodes.mailbox["m"], nodes.data["x"], nodes.mailbox["k"]
    score = torch.einsum("bmi,ij,bj->bm", m, p.linear.weight, x)
    of_heads = torch.einsum("bmhi, hi -> bmh", k, p.bias).softmax(1)
    return torch.einsum("bm,bmi->bi", score, m) + torch.einsum("bmh,bmhi->bi", of_heads, k)


def outermost(p: Reduce, nodes: Any) -> Tensor:
    m, k = nodes.mailbox["m"], nodes.mailbox["k"]
    first = p.linear(m[:, 0]) / m[:, 0] - m.select(1, -1) * k[:, 0, 1]
    return torch.cat([first, k[:, -1].sum(1), m[:, -1, :2], nodes.mailbox["s"][:, 0, None]], 1)


def of_batch_size(p: Reduce, nodes: Any) -> Tensor:
    m = nodes.mailbox["m"]
    each = m.new_ones((nodes.batch_size(), m.shape[1], 1)) * m
    return (m.new_zeros(nodes.batch_size(), WIDTH) + each.sum(1)).view(nodes.batch_size(), 2, -1)


FUNCTIONS: dict[str, Callable[[Any, Any], Tensor]] = {
    "sum": lambda p, nodes: nodes.mailbox["m"].sum(1),
    "sum-plus-one": lambda p, nodes: nodes.mailbox["m"].sum(1) + 1,
    "torch-sum": lambda p, nodes: torch.sum(nodes.mailbox["m"] * nodes.mailbox["e"], dim=1),
    "mean-of-heads": lambda p, nodes: nodes.mailbox["k"].mean(dim=(1, 2)),
    "max-of-network": lambda p, nodes: p.network(nodes.mailbox["m"]).max(dim=1)[0],
    "layer-norm": lambda p, nodes: p.norm(nodes.mailbox["m"]).tanh().sum(1),
    "product": lambda p, nodes: torch.matmul(nodes.mailbox["k"], p.linear.weight).sum(1),
    "self": lambda p, nodes: nodes.data["x"] * 2 + nodes.mailbox["m"].mean(1),
    "operators": lambda p, nodes: 2 - (nodes.mailbox["m"] @ p.linear.weight - p.bias[0]).sum(1),
    "reversed": lambda p, nodes: (1 - 2 / (nodes.mailbox["m"] ** 2 + 1)).sum(-2),
    "softmax-of-features": lambda p, nodes: nodes.mailbox["m"].softmax(-1).mean(1),
    "weight-first": lambda p, nodes: (p.bias * nodes.mailbox["k"]).sum(1) - p.bias,
    "positive": lambda p, nodes: p.bias[:1, 0] * (nodes.mailbox["m"] > 0).sum(1),
    "parts": lambda p, nodes: sum(t.amax(1) for t in nodes.mailbox["m"].split(2, dim=-1)),
    "mean-and-more": mean_and_more,
    "by-hand": by_hand,
    "attention": attention,
    "dot-attention": dot_attention,
    "heads": heads,
    "tree": tree,
    "moments": moments,
    "several": unbiased,
    "distances": distances,
    "reshaped": reshaped,
    "picked": picked,
    "expanded": expanded,
    "norms": norms,
    "normalized": normalized,
    "cell": cell,
    "by-degree": by_degree,
    "logarithms": logarithms,
    "masked": masked,
    "numbers": numbers,
    "inverse": inverse,
    "in-place": in_place,
    "einsum": lambda p, nodes: torch.einsum("ndk,hk->nh", nodes.mailbox["m"], p.bias),
    "einsums": einsums,
    "prod": lambda p, nodes: (
        nodes.mailbox["m"].prod(1) + nodes.mailbox["k"].prod(-1).mean((1, 2))[:, None]
    ),
    "attention-by-products": attention_by_products,
    "scores-of-nodes": scores_of_nodes,
    "outer-products": outer_products,
    "outermost": outermost,
    "turned-round": turned_round,
    "batch-size": of_batch_size,
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    check(Reduce(FUNCTIONS[name]), sample)


def test_the_first_message_is_that_of_the_least_edge() -> None:
    """Also where a graph holds its edges in another order than that of their numbers."""

    def by_target(n: int, m: int, e: int) -> tuple[Any, ...]:
        source, target = graph(n, e).edges()
        in_order, starts = target.argsort(), torch.zeros(n + 1, dtype=torch.int64)
        starts[1:] = target.bincount(minlength=n).cumsum(0)
        g = dgl.graph(("csc", (starts, source[in_order], torch.randperm(e))))
        return g, torch.randn(n, WIDTH), torch.rand(e, 1) + 0.5

    check(Reduce(outermost), by_target)


def by_cases(p: Reduce, nodes: Any) -> Tensor:
    m = nodes.mailbox["m"]
    return m.sum(1) if m.shape[1] == 1 else 2 * m.sum(1)


UNSUPPORTED: dict[str, Callable[[Any, Any], Tensor]] = {
    "median": lambda p, nodes: nodes.mailbox["m"].median(dim=1).values,
    "sort": lambda p, nodes: torch.sort(nodes.mailbox["m"], dim=1)[0][:, 0],
    "einsum of nodes or messages": lambda p, nodes: torch.einsum(
        "ndk,nek->nk", nodes.mailbox["m"], nodes.mailbox["m"]
    ),
    "an index of nodes or messages": lambda p, nodes: nodes.mailbox["m"][:, :1].sum(1),
    "messages that are transposed": lambda p, nodes: (
        nodes.mailbox["m"].transpose(1, 2).mul(p.linear.weight[:1].T).sum(2)
    ),
    "a reduction of all nodes": lambda p, nodes: nodes.data["x"] - nodes.mailbox["m"].mean(),
    "dimension 0": lambda p, nodes: nodes.mailbox["m"].sum(1) - nodes.data["x"].mean(0),
    "the number of nodes": lambda p, nodes: nodes.mailbox["m"].sum(1) / nodes.batch_size(),
    "a condition on the number": by_cases,
    "several nodes or messages": lambda p, nodes: (
        nodes.mailbox["m"].view(nodes.mailbox["m"].shape[0], -1).cumsum(1)[:, -1:]
    ),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_cannot_be_traced_runs_by_degrees(name: str) -> None:
    for report in compare(Reduce(UNSUPPORTED[name]), sample):
        assert "gnnc.dgl cannot trace" in report.fallbacks[0]
        assert name in report.fallbacks[0]


def test_a_recurrent_network_over_messages_runs_by_degrees() -> None:
    layer = dgl.nn.pytorch.SAGEConv(WIDTH, 3, "lstm")
    for report in compare(layer, lambda n, m, e: (graph(n, e), torch.randn(n, WIDTH))):
        assert report.fallbacks


def breaks(p: Reduce, nodes: Any) -> Tensor:
    h = nodes.mailbox["m"].sum(1)
    torch._dynamo.graph_break()
    return h + nodes.mailbox["m"].median(1)[0]


def test_a_function_that_leaves_the_trace_runs_by_degrees() -> None:
    for report in compare(Reduce(breaks), sample):
        assert report.fallbacks


def test_torch_traces_it_too() -> None:
    """The whole call is one graph of Dynamo's, also for a compiler that is not ours."""
    model, sizes = Reduce(attention), SIZES[:2]
    compiled = torch.compile(copy.deepcopy(model), backend="eager", fullgraph=True, dynamic=True)
    for g, *args in (sample(*s) for s in sizes):
        g = ours.from_dgl(g)
        expected, found = run(model, model, (g, *args)), run(compiled, compiled, (g, *args))
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)


class Applied(Reduce):
    """An apply function sees zeros where the reduce function was not called, and old features."""

    def apply_node(self, nodes: Any) -> dict[str, Tensor]:
        assert nodes.mailbox is None
        return {"h": self.linear(nodes.data["h"] + nodes.data["x"]).relu()}

    def forward(self, g: Any, x: Tensor, w: Tensor) -> Tensor:
        with g.local_scope():
            g.ndata["x"], g.edata["w"] = x, w
            g.update_all(self.message, self.reduce, self.apply_node)
            return g.ndata["h"]


def test_an_apply_function() -> None:
    check(Applied(dot_attention), sample)


class Overwritten(Reduce):
    """Old features are not kept at nodes without messages."""

    def forward(self, g: Any, x: Tensor, w: Tensor) -> Tensor:
        with g.local_scope():
            g.ndata["h"] = g.ndata["x"] = x
            g.edata["w"] = w
            g.update_all(dgl.function.u_mul_e("x", "w", "m"), self.reduce)
            return g.ndata["h"]


def test_a_field_that_was_there() -> None:
    check(Overwritten(lambda p, nodes: nodes.mailbox["m"].sum(1) + nodes.data["h"] + 1), sample)


class Typed(Reduce):
    """`multi_update_all` with a user's function and a known one, then `update_all` of one type."""

    def __init__(self, cross: str) -> None:
        super().__init__(dot_attention)
        self.cross = cross

    def forward(self, g: Any, x: dict[str, Tensor], w: Tensor) -> dict[str, Tensor]:
        with g.local_scope():
            g.ndata["x"] = x
            g.edges["plays"].data["w"] = g.edges["follows"].data["w"] = w
            known = (fn.copy_u("x", "m"), fn.sum("m", "h"))
            each = {"plays": (self.message, self.reduce), "likes": known}
            each["follows"] = (self.message, self.reduce, self.halved)
            g.multi_update_all(each, self.cross, lambda nodes: {"y": nodes.data["h"].tanh()})
            g.update_all(self.message, lambda nodes: {"z": self.reduce(nodes)["h"]}, etype="plays")
            return {"y": g.nodes["user"].data["y"], "z": g.nodes["game"].data["z"]}

    def halved(self, nodes: Any) -> dict[str, Tensor]:
        return {"h": nodes.data["h"] / 2}


def relations(n: int, m: int, e: int) -> tuple[Any, ...]:
    def ends(a: int, b: int) -> tuple[Tensor, Tensor]:
        return torch.randint(a, (e,)), torch.randint(b // 2, (e,))

    data = {
        ("user", "follows", "user"): ends(n, n),
        ("user", "plays", "game"): ends(n, m),
        ("game", "likes", "user"): ends(m, n),
    }
    g = dgl.heterograph(data, num_nodes_dict={"user": n, "game": m})
    x = {"user": torch.randn(n, WIDTH), "game": torch.randn(m, WIDTH)}
    return g, x, torch.rand(e, 1)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("cross", ["sum", "mean", "stack", "max"])
def test_several_types(cross: str) -> None:
    check(Typed(cross), relations)


def test_a_graph_without_edges_sets_nothing() -> None:
    def sums(g: Any, x: Tensor) -> Tensor:
        with g.local_scope():
            g.ndata["h"] = x
            g.update_all(fn.copy_u("h", "m"), lambda nodes: {"h": nodes.mailbox["m"].sum(1)})
            return g.ndata["h"] * 2

    g, x = dgl.graph(([], []), num_nodes=5), torch.randn(5, 3)
    for given in (g, ours.from_dgl(g)):
        torch.testing.assert_close(gnnc.compile(sums)(given, x), sums(g, x))
