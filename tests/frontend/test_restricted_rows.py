"""Losses on some rows of a graph: restrict-rows computes what they need, and the numbers stay."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, SAGEConv
from torch_geometric.utils import trim_to_layer

import gnnc
from gnnc.frontend.torch import compile as compiling
from gnnc.frontend.torch.loader import NeighborLoader
from gnnc.passes.driver import pipelines

N, E, WIDTH, CLASSES = 300, 700, 6, 4

LAYERS = {
    "gcn": GCNConv,
    "sage": SAGEConv,
    "sage-max": lambda i, o: SAGEConv(i, o, aggr="max"),
    "gat": lambda i, o: GATConv(i, o, heads=2, concat=False),
}


class Net(nn.Module):
    def __init__(self, layer, depth=2, p=0.0, norm=False):
        super().__init__()
        widths = [WIDTH, *[8] * (depth - 1), CLASSES]
        self.layers = nn.ModuleList(
            layer(a, b) for a, b in zip(widths[:-1], widths[1:], strict=True)
        )
        self.norm = nn.BatchNorm1d(8) if norm else nn.Identity()
        self.p = p

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        for layer in self.layers[:-1]:
            x = F.dropout(torch.tanh(self.norm(layer(x, edges))), self.p, self.training)
        return self.layers[-1](x, edges)


class Masked(nn.Module):
    """The loss on the rows that a mask or an index takes."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, edges, y, rows):
        return F.cross_entropy(self.model(x, edges)[rows], y[rows])


class Prefix(Masked):
    """The loss on the first rows."""

    def forward(self, x, edges, y, rows):
        return F.cross_entropy(self.model(x, edges)[:12], y[:12])


def data(seed: int = 0):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(N, WIDTH, generator=g, dtype=torch.float64)
    edges = torch.randint(0, N, (2, E), generator=g)
    return x, edges, torch.randint(0, CLASSES, (N,), generator=g)


def rows_of(how: str, count: int = 12) -> Tensor:
    mask = torch.zeros(N, dtype=torch.bool)
    mask[torch.randperm(N, generator=torch.Generator().manual_seed(1))[:count]] = True
    return mask if how == "mask" else mask.nonzero().view(-1)


def each(out, y):
    return F.cross_entropy(out, y, reduction="none")


FORMS = {
    "compared": lambda out, y, m: F.cross_entropy(out[m.long() == 1], y[m.long() == 1]),
    "of two masks": lambda out, y, m: F.cross_entropy(out[m & (y > 0)], y[m & (y > 0)]),
    "ignored": lambda out, y, m: F.cross_entropy(out, torch.where(m, y, -100)),
    "where": lambda out, y, m: torch.where(m, each(out, y), 0.0).sum() / m.sum(),
    "where not": lambda out, y, m: torch.where(~m, 0.0, each(out, y)).sum(),
    "masked_fill": lambda out, y, m: each(out, y).masked_fill(~m, 0.0).sum(),
    "rows of where": lambda out, y, m: torch.where(m.unsqueeze(1), out, 0.0).square().sum(),
    "times": lambda out, y, m: (each(out, y) * m).sum() / m.sum(),
    "times numbers": lambda out, y, m: (m.to(out.dtype) * each(out, y)).sum(),
    "selected later": lambda out, y, m: each(out, y)[m].mean(),
    "masked_select": lambda out, y, m: torch.masked_select(each(out, y), m).mean(),
    "numbers of rows": lambda out, y, m: out[m.nonzero().view(-1)].square().mean(),
    "gathered": lambda out, y, m: -out.log_softmax(1)[m].gather(1, y[m].unsqueeze(1)).mean(),
    "paired": lambda out, y, m: -out.log_softmax(1)[m.nonzero().view(-1), y[m]].mean(),
    "both": lambda out, y, m: torch.where(m, torch.where(y > 0, each(out, y), 0.0), 0.0).sum(),
    "two losses": lambda out, y, m: (each(out, y) * m).sum() + out[m].square().sum(),
}
"""Losses on the rows of a mask, as they are written."""


def loss_of(how: str) -> type[Masked]:
    return Prefix if how == "prefix" else Masked


@pytest.fixture
def restricted(monkeypatch):
    """How many values each program that is compiled has restricted."""
    from gnnc.passes.inter import restrict_rows as module

    counts: list[int] = []
    plain = module.restrict_rows

    def counted(*args, **kwargs):
        counts.append(plain(*args, **kwargs))
        return counts[-1]

    monkeypatch.setattr(module, "restrict_rows", counted)
    return counts


@pytest.fixture(autouse=True)
def _passes_run(monkeypatch, tmp_path):
    """No program comes from the cache."""
    monkeypatch.setenv("GNNC_CACHE", str(tmp_path))


def assert_same(a: nn.Module, b: nn.Module) -> None:
    for (name, p), q in zip(a.named_parameters(), b.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad, rtol=1e-9, atol=1e-11, msg=name)


def cases(*quick):
    """Every layer and way of taking rows; those that are not named are long."""
    every = [(name, how) for name in LAYERS for how in ("mask", "index", "prefix")]
    return [pytest.param(*c, marks=() if c in quick else pytest.mark.long) for c in every]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize(
    ("name", "how"),
    cases(("gcn", "mask"), ("sage", "index"), ("sage-max", "mask"), ("gat", "prefix")),
)
def test_losses(name, depth, how, restricted):
    torch.manual_seed(0)
    eager = loss_of(how)(Net(LAYERS[name], depth)).double()
    ours = copy.deepcopy(eager)
    compiled = gnnc.compile(ours, fullgraph=True)
    x, edges, y = data()
    for count in (12, 30, 0 if how != "prefix" else 12, 200):  # one program, many subsets
        rows = rows_of(how, count)
        eager.zero_grad()
        ours.zero_grad()
        a, b = eager(x, edges, y, rows), compiled(x, edges, y, rows)
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12, equal_nan=True)
        if count:
            a.backward()
            b.backward()
            assert_same(eager, ours)
    assert restricted[0] > 5


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("name", "how"), cases(("gcn", "index"), ("gat", "mask")))
def test_dropout_draws_as_without(name, how, restricted, monkeypatch):
    def gradients():
        torch.manual_seed(0)
        model = loss_of(how)(Net(LAYERS[name], p=0.5)).double()
        torch.compiler.reset()
        compiled = gnnc.compile(model, fullgraph=True)
        torch.manual_seed(5)
        loss = compiled(*data(), rows_of(how))
        loss.backward()
        return loss.detach(), [p.grad for p in model.parameters()]

    a = gradients()
    assert restricted[0] > 5
    monkeypatch.setattr(compiling, "note_subsets", lambda *args: None)
    monkeypatch.setattr(pipelines, "RESTRICT", ())
    b = gradients()
    assert len(restricted) == 1
    torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("name", "how"),
    cases(("gcn", "prefix"), ("sage", "mask"), ("sage-max", "index"), ("gat", "mask")),
)
def test_train_step(name, how, restricted):
    torch.manual_seed(0)
    eager = Net(LAYERS[name]).double()
    ours = copy.deepcopy(eager)
    a, b = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (eager, ours))
    loss = loss_of(how)
    step = gnnc.train_step(lambda *args: loss.forward(_Of(ours), *args), b)
    x, edges, y = data()
    rows = rows_of(how)
    for _ in range(3):
        a.zero_grad()
        wanted = loss.forward(_Of(eager), x, edges, y, rows)
        wanted.backward()
        a.step()
        torch.testing.assert_close(step(x, edges, y, rows), wanted.detach())
    for p, q in zip(eager.parameters(), ours.parameters(), strict=True):
        torch.testing.assert_close(p, q)
    assert restricted[0] > 5


class _Of:
    """What the losses above take for self."""

    def __init__(self, model):
        self.model = model


class Trimmed(Net):
    """Layer by layer on fewer nodes of a sampled batch, as users of PyG write it."""

    def forward(self, x, edges, met, found):
        for i, layer in enumerate(self.layers):
            x, edges, _ = trim_to_layer(i, met, found, x, edges)
            x = torch.tanh(layer(x, edges))
        return x[: met[0]]


@pytest.mark.parametrize("name", [pytest.param("gat", marks=pytest.mark.long), "sage"])
def test_each_layer_of_a_batch_gives_the_rows_that_the_next_one_reads(name, restricted):
    """No sum is computed at the nodes that the last hop has met, nor kept of them."""
    torch.manual_seed(0)
    eager = Trimmed(LAYERS[name], 3).double()
    ours = copy.deepcopy(eager)
    compiled = gnnc.compile(ours, fullgraph=True)
    g = torch.Generator().manual_seed(0)
    x = torch.randn(2000, WIDTH, generator=g, dtype=torch.float64)
    graph = Data(x=x, edge_index=torch.randint(0, 2000, (2, 16_000), generator=g))
    seeds = torch.arange(48)
    met: list[int] = []
    for batch in NeighborLoader(graph, [4, 4, 4], seeds, batch_size=8, num_workers=0, seed=0):
        met = batch.num_sampled_nodes
        args = batch.x, batch.edge_index, met, batch.num_sampled_edges
        eager.zero_grad()
        ours.zero_grad()
        a, b = eager(*args), compiled(*args)
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)
        a.square().sum().backward()
        b.square().sum().backward()
        assert_same(eager, ours)
    ((program,), (count,)) = gnnc.explain(compiled).programs, restricted
    rows = [set(p.rows.values()) for p in program.graphs()[-1].phases.values()]
    read = range(4 if name == "gat" else 3)  # attention reads products with all features
    assert set[int]().union(*rows) - {1} == {sum(met[: k + 1]) for k in read}
    assert count > 10


@pytest.mark.parametrize("name", [pytest.param("gat", marks=pytest.mark.long), "sage"])
def test_features_of_a_batch_are_read_by_number(name):
    """Nothing is computed at the nodes that no batch has: `x[n_id]` reads, and copies nothing."""
    torch.manual_seed(0)
    eager = Trimmed(LAYERS[name], 3).double()
    ours = copy.deepcopy(eager)
    a, b = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (eager, ours))
    g = torch.Generator().manual_seed(0)
    x = torch.randn(2000, WIDTH, generator=g, dtype=torch.float64)
    y = torch.randint(0, CLASSES, (2000,), generator=g)
    graph = Data(edge_index=torch.randint(0, 2000, (2, 16_000), generator=g), num_nodes=2000)
    step = gnnc.train_step(lambda n, *args: F.cross_entropy(ours(x[n], *args), y[n[:8]]), b)
    seeds = torch.arange(48)
    sampled = 0
    for batch in NeighborLoader(graph, [4, 4, 4], seeds, batch_size=8, num_workers=0, seed=0):
        args = batch.edge_index, batch.num_sampled_nodes, batch.num_sampled_edges
        a.zero_grad()
        wanted = F.cross_entropy(eager(x[batch.n_id], *args), y[batch.n_id[:8]])
        wanted.backward()
        a.step()
        torch.testing.assert_close(step(batch.n_id, *args), wanted.detach())
        sampled = len(batch.n_id)
    for p, q in zip(eager.parameters(), ours.parameters(), strict=True):
        torch.testing.assert_close(p, q)
    assert gnnc.explain(step).fallbacks == []
    program = gnnc.explain(step).programs[-1]
    sizes = [
        phase.counts[living.rows[1]]
        for phase in program.graphs()[-1].phases.values()
        for kind in ("temporary", "output")
        for living in phase.phase.layout.living[kind]
    ]
    assert 100 < max(sizes) <= sampled < 1000


def test_statistics_stop_it(restricted):
    torch.manual_seed(0)
    eager = Masked(Net(GCNConv, norm=True)).double()
    ours = copy.deepcopy(eager)
    compiled = gnnc.compile(ours, fullgraph=True)
    x, edges, y = data()
    rows = rows_of("mask")
    eager(x, edges, y, rows).backward()
    compiled(x, edges, y, rows).backward()
    assert_same(eager, ours)
    torch.testing.assert_close(eager.model.norm.running_var, ours.model.norm.running_var)
    assert 0 < restricted[0] < 10


def test_most_rows_are_all(restricted):
    torch.manual_seed(0)
    model = Masked(Net(GCNConv)).double()
    gnnc.compile(model, fullgraph=True)(*data(), rows_of("mask", 280)).backward()
    assert restricted == [0]


def test_inference(restricted):
    torch.manual_seed(0)
    model = Masked(Net(GATConv)).double().eval()
    args = (*data(), rows_of("mask"))
    with torch.no_grad():
        torch.testing.assert_close(gnnc.compile(model, fullgraph=True)(*args), model(*args))
    assert restricted[0] > 5


@pytest.mark.one_in(2)
@pytest.mark.parametrize("form", FORMS)
def test_forms(form, restricted):
    """Values and gradients, of a mask that later keeps more, fewer and all."""
    torch.manual_seed(0)
    eager = Net(GCNConv).double()
    ours = copy.deepcopy(eager)
    compiled = gnnc.compile(lambda x, e, y, m: FORMS[form](ours(x, e), y, m), fullgraph=True)
    x, edges, y = data()
    for count in (12, 30, 3, N):
        rows = rows_of("mask", count)
        eager.zero_grad()
        ours.zero_grad()
        a, b = FORMS[form](eager(x, edges), y, rows), compiled(x, edges, y, rows)
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)
        a.backward()
        b.backward()
        assert_same(eager, ours)
    assert restricted[0] > 5


def test_rows_that_may_not_be_finite_stay(restricted):
    """Infinity times 0 is no number: rows that may hold it are not left out."""
    torch.manual_seed(0)
    eager = Net(GCNConv).double()
    ours = copy.deepcopy(eager)

    def loss(model, x, e, m):
        return ((1e5 * model(x, e).sum(1)).exp() * m).sum()

    compiled = gnnc.compile(lambda *args: loss(ours, *args), fullgraph=True)
    x, edges, _ = data()
    rows = rows_of("mask")
    a, b = loss(eager, x, edges, rows), compiled(x, edges, rows)
    assert a.isnan() and b.isnan()
    assert restricted == [0]
