"""DGL's layers, and code that is written for its graphs, compiled with dgl installed: one program
for graphs of all sizes, with DGL's values and gradients, and nothing left to torch.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import gnnc
import gnnc.dgl

from ..train_steps import in_one_program, train_any
from .compiled import batch, block, check, dgl, eager, graph, relations, run

fn, conv = dgl.function, dgl.nn.pytorch


def mlp(a: int, b: int) -> nn.Module:
    return nn.Sequential(nn.Linear(a, b), nn.Tanh())


LAYERS: dict[str, Callable[[], nn.Module]] = {
    "agnn": lambda: conv.AGNNConv(),
    "appnp": lambda: conv.APPNPConv(3, 0.1),
    "dot-gat": lambda: conv.DotGatConv(8, 4, 3),
    "edge": lambda: conv.EdgeConv(8, 5),
    "gat": lambda: conv.GATConv(8, 4, 3),
    "gat-residual": lambda: conv.GATConv(8, 4, 3, residual=True, activation=torch.tanh),
    "gatv2": lambda: conv.GATv2Conv(8, 4, 3),
    "gated": lambda: conv.GatedGraphConv(8, 8, 2, 1),
    "gin-sum": lambda: conv.GINConv(mlp(8, 5), "sum", learn_eps=True),
    "gin-mean": lambda: conv.GINConv(mlp(8, 5), "mean"),
    "gin-max": lambda: conv.GINConv(mlp(8, 5), "max"),
    "graph": lambda: conv.GraphConv(8, 5),
    "graph-right": lambda: conv.GraphConv(8, 12, norm="right", activation=torch.tanh),
    "graph-left": lambda: conv.GraphConv(8, 5, norm="left"),
    "graph-none": lambda: conv.GraphConv(8, 5, norm="none", bias=False),
    "sage-gcn": lambda: conv.SAGEConv(8, 5, "gcn"),
    "sage-mean": lambda: conv.SAGEConv(8, 5, "mean"),
    "sage-pool": lambda: conv.SAGEConv(8, 5, "pool"),
    "sg": lambda: conv.SGConv(8, 5, 2),
    "tag": lambda: conv.TAGConv(8, 5, 2),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    check(LAYERS[name](), lambda n, m, e: (graph(n, e), torch.randn(n, 8)))


OF_EDGES: dict[str, tuple[Callable[[], nn.Module], int]] = {
    "gmm": (lambda: conv.GMMConv(8, 4, 2, 3, "mean", residual=True), 2),
    "cf": (lambda: conv.CFConv(8, 5, 6, 4), 5),
    "egat": (lambda: conv.EGATConv(8, 5, 4, 3, 2), 5),
    "gated-gcn": (lambda: conv.GatedGCNConv(8, 5, 4), 5),
    "nn": (lambda: conv.NNConv(8, 4, nn.Linear(5, 32), "sum"), 5),
    "edge-gat": (lambda: conv.EdgeGATConv(8, 5, 4, 3), 5),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", OF_EDGES)
def test_layers_with_features_of_edges(name: str) -> None:
    make, width = OF_EDGES[name]

    def args(n: int, m: int, e: int) -> tuple[Any, ...]:
        g = graph(n, e)
        return g, torch.randn(n, 8), torch.randn(g.num_edges(), width)

    check(make(), args)


@pytest.mark.parametrize("norm", ["both", "none"])
def test_edge_weights(norm: str) -> None:
    class Weighted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = conv.GraphConv(8, 5, norm=norm)

        def forward(self, g: Any, x: Tensor, w: Tensor) -> Tensor:
            return self.layer(g, x, edge_weight=w)

    def args(n: int, m: int, e: int) -> tuple[Any, ...]:
        g = graph(n, e)
        return g, torch.randn(n, 8), torch.rand(g.num_edges())

    check(Weighted(), args)


TYPED: dict[str, Callable[[], nn.Module]] = {
    "plain": lambda: conv.RelGraphConv(8, 6, 4),
    "basis": lambda: conv.RelGraphConv(8, 6, 4, "basis", 2),
    "no-self-loop": lambda: conv.RelGraphConv(8, 6, 4, self_loop=False),
    "blocks": lambda: conv.RelGraphConv(8, 6, 4, "bdd", 2),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", TYPED)
def test_relations_as_numbers(name: str) -> None:
    def args(n: int, m: int, e: int) -> tuple[Any, ...]:
        g = graph(n, e)
        return g, torch.randn(n, 8), torch.randint(4, (g.num_edges(),))

    check(TYPED[name](), args)


@pytest.mark.parametrize("regularizer, bases", [(None, None), ("bdd", 2)])
def test_relations_in_order(regularizer: str | None, bases: int | None) -> None:
    class InOrder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = conv.RelGraphConv(8, 6, 4, regularizer, bases)

        def forward(self, g: Any, x: Tensor, types: Tensor) -> Tensor:
            return self.layer(g, x, types, presorted=True)

    def args(n: int, m: int, e: int) -> tuple[Any, ...]:
        g = graph(n, e)
        return g, torch.randn(n, 8), torch.randint(4, (g.num_edges(),)).sort()[0]

    check(InOrder(), args)


def test_hgt() -> None:
    def args(n: int, m: int, e: int) -> tuple[Any, ...]:
        g = graph(n, e)
        types = torch.randint(2, (n,)), torch.randint(3, (g.num_edges(),))
        return g, torch.randn(n, 12), *types

    check(conv.HGTConv(12, 4, 3, 2, 3, dropout=0.0), args)


def of_relations(make: Callable[[], nn.Module], aggregate: str) -> nn.Module:
    layers = {name: make() for name in ("follows", "plays", "liked")}
    return conv.HeteroGraphConv(layers, aggregate)


HETERO: dict[str, Callable[[], nn.Module]] = {
    "graph-sum": lambda: of_relations(
        lambda: conv.GraphConv(8, 5, allow_zero_in_degree=True), "sum"
    ),
    "sage-mean": lambda: of_relations(lambda: conv.SAGEConv(8, 5, "mean"), "mean"),
    "sage-max": lambda: of_relations(lambda: conv.SAGEConv(8, 5, "mean"), "max"),
    "gat-sum": lambda: of_relations(
        lambda: conv.GATConv((8, 8), 4, 2, allow_zero_in_degree=True), "sum"
    ),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", HETERO)
def test_heterographs(name: str) -> None:
    def args(n: int, m: int, e: int) -> tuple[Any, ...]:
        return relations(n, m, e), {"user": torch.randn(n, 8), "game": torch.randn(m, 8)}

    check(HETERO[name](), args)


def test_a_relation_without_edges() -> None:
    """SAGEConv asks whether there are edges, so this is a program of its own."""
    model = HETERO["sage-mean"]()
    compiled = gnnc.compile(model)
    for last in (40, 0, 30):
        args = relations(30, 18, 200, last), {k: torch.randn(n, 8) for k, n in WIDE.items()}
        torch.testing.assert_close(run(compiled, model, args), run(eager(model), model, args))
    report = gnnc.explain(compiled)
    assert report.fallbacks == [] and len(report.programs) == 2


WIDE = {"user": 30, "game": 18}


class Users(nn.Module):
    """Functions of users over features that they set."""

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(16, 1)
        self.out = nn.Linear(8, 5)

    def attention(self, edges: Any) -> dict[str, Tensor]:
        both = torch.cat([edges.src["x"], edges.dst["x"]], 1)
        return {"e": nn.functional.leaky_relu(self.score(both)) * edges.data["w"]}

    def forward(self, g: Any, x: Tensor, w: Tensor) -> Tensor:
        g = g.local_var()
        g.ndata["x"], g.edata["w"] = x, w
        g.apply_edges(self.attention)
        g.edata["a"] = dgl.ops.edge_softmax(g, g.edata.pop("e"))
        g.update_all(lambda edges: {"m": edges.src["x"] * edges.data["a"]}, fn.sum("m", "h"))
        g.apply_nodes(lambda nodes: {"h": self.out(nodes.data["h"]).tanh()})
        return g.ndata["h"]


def test_functions_of_users() -> None:
    def args(n: int, m: int, e: int) -> tuple[Any, ...]:
        g = graph(n, e)
        return g, torch.randn(n, 8), torch.rand(g.num_edges(), 1)

    check(Users(), args)


class Sampled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([conv.SAGEConv(8, 6, "mean"), conv.SAGEConv(6, 3, "mean")])

    def forward(self, blocks: list[Any], x: Tensor) -> Tensor:
        for layer, part in zip(self.layers, blocks, strict=True):
            x = layer(part, (x, x[: part.num_dst_nodes()])).tanh()
        return x


def test_blocks() -> None:
    def args(n: int, m: int, e: int) -> tuple[Any, ...]:
        return [block(n, m, e), block(m, m // 2, e // 2)], torch.randn(n, 8)

    check(Sampled(), args)


ON_BLOCKS: dict[str, Callable[[], nn.Module]] = {
    "gat-residual": lambda: conv.GATConv(8, 4, 3, residual=True),
    "gat-identity": lambda: conv.GATConv(8, 8, 3, residual=True),
    "gatv2-residual": lambda: conv.GATv2Conv(8, 4, 3, residual=True),
    "sage-gcn": lambda: conv.SAGEConv(8, 5, "gcn"),
    "sage-mean": lambda: conv.SAGEConv(8, 5, "mean"),
    "graph": lambda: conv.GraphConv(8, 5),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ON_BLOCKS)
def test_layers_that_find_the_targets_among_the_sources(name: str) -> None:
    def args(n: int, m: int, e: int) -> tuple[Any, ...]:
        src, dst = torch.randint(n, (e,)), torch.arange(e) % m
        return dgl.create_block((src, dst), n, m), torch.randn(n, 8)

    check(ON_BLOCKS[name](), args)


class Links(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = conv.SAGEConv(8, 6, "mean")

    def forward(self, g: Any, others: Any, x: Tensor) -> Tensor:
        h = self.layer(g, x)
        scores = [dgl.ops.u_dot_v(of, h, h).squeeze(1) for of in (g, others)]
        labels = torch.cat([torch.ones_like(scores[0]), torch.zeros_like(scores[1])])
        return nn.functional.binary_cross_entropy_with_logits(torch.cat(scores), labels)


def test_links_of_two_graphs() -> None:
    check(Links(), lambda n, m, e: (graph(n, e), graph(n, 2 * e, False), torch.randn(n, 8)))


class Reversed(nn.Module):
    def forward(self, g: Any, x: Tensor) -> Tensor:
        back = dgl.reverse(g)
        with back.local_scope():
            back.ndata["h"] = x
            back.update_all(fn.copy_u("h", "m"), fn.mean("m", "h"))
            return back.ndata["h"].tanh()


def test_a_reversed_graph() -> None:
    check(Reversed(), lambda n, m, e: (graph(n, e), torch.randn(n, 8)))


class Pooled(nn.Module):
    def __init__(self, pool: Callable[..., Tensor]) -> None:
        super().__init__()
        self.layer, self.out = conv.GraphConv(8, 6), nn.Linear(6, 3)
        self.pool = pool

    def forward(self, g: Any, x: Tensor) -> Tensor:
        h = self.layer(g, x).tanh()
        with g.local_scope():
            g.ndata["h"] = h
            return self.out(self.pool(g, "h"))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["sum_nodes", "mean_nodes", "max_nodes"])
def test_readouts_of_a_batch(name: str) -> None:
    def args(n: int, m: int, e: int) -> tuple[Any, ...]:
        g = batch(n, m, e)
        return g, torch.randn(g.num_nodes(), 8)

    check(Pooled(getattr(dgl, name)), args)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("asked", [False, True])
def test_layers_that_run_over_the_graphs_of_a_batch(asked: bool) -> None:
    """Of a graph that is no batch they get its number of nodes, whether DGL was asked for it or
    not."""

    def args(n: int, m: int, e: int) -> tuple[Any, ...]:
        g = graph(n, e)
        assert not asked or g.batch_num_nodes().tolist() == [n]
        return g, torch.randn(n, 8), None, torch.randn(n, 1)

    pna = conv.PNAConv(8, 6, ["mean", "max", "std"], ["identity"], 2.5, num_towers=2)
    check(pna, lambda n, m, e: args(n, m, e)[:2])
    check(conv.DGNConv(8, 6, ["dir1-av", "dir1-dx", "sum"], ["identity"], 2.5), args)


def test_numbers_of_nodes_as_tensors() -> None:
    def call(g: Any, x: Tensor) -> list[Tensor]:
        n = g.batch_num_nodes()
        return [x / n + x * n.double().sqrt() + n.max() - (1 - n), torch.cat([n, n]) * x.sum()]

    check(call, lambda n, m, e: (graph(n, e), torch.randn(n, 4)))


class Batched(nn.Module):
    """A batch that is made in the call, of graphs of which one is a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = conv.GraphConv(8, 6)

    def forward(self, graphs: list[Any], x: Tensor) -> Tensor:
        g = dgl.batch(graphs)
        with g.local_scope():
            g.ndata["h"] = self.layer(g, x).tanh()
            g.edata["e"] = dgl.ops.u_add_v(g, g.ndata["h"], g.ndata["h"])
            return dgl.mean_nodes(g, "h") + dgl.sum_edges(g, "e") + dgl.max_nodes(g, "h")


def test_a_batch_that_is_made() -> None:
    def args(n: int, m: int, e: int) -> tuple[Any, ...]:
        graphs = [graph(n, e), batch(n, m, e), graph(m, e)]
        return graphs, torch.randn(sum(g.num_nodes() for g in graphs), 8)

    check(Batched(), args)


def test_apply_functions_see_infinities() -> None:
    """Where no edge leads, after a maximum; of their results the first has zeros there."""

    def call(g: Any, x: Tensor) -> Tensor:
        def finish(nodes: Any) -> dict[str, Tensor]:
            return {"first": nodes.data["h"] * 2, "second": nodes.data["h"].exp()}

        with g.local_scope():
            g.ndata["x"] = x
            g.update_all(fn.copy_u("x", "m"), fn.max("m", "h"), finish)
            return torch.cat([g.ndata["first"], g.ndata["second"]], 1)

    check(call, lambda n, m, e: (graph(n, n, loops=False), torch.randn(n, 4)))
    for n in (7, 12):
        real, x = graph(n, n, loops=False), torch.randn(n, 4)
        torch.testing.assert_close(call(gnnc.dgl.from_dgl(real), x), call(real, x))


def test_what_dgl_does_itself_is_no_program() -> None:
    """A check of values ends the trace. What follows is in torch, and not traced bit by bit."""

    class AsWritten(conv.EdgeWeightNorm):
        forward = inspect.unwrap(conv.EdgeWeightNorm.forward)

    class Normalised(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.layer = AsWritten("both"), conv.GraphConv(8, 5, norm="none")

        def forward(self, g: Any, x: Tensor, w: Tensor) -> Tensor:
            return self.layer(g, x, edge_weight=self.norm(g, w))

    model = Normalised()
    compiled = gnnc.compile(model)
    for n, e in ((20, 60), (31, 90)):
        g = graph(n, e)
        args = g, torch.randn(n, 8), torch.rand(g.num_edges()) + 0.5
        torch.testing.assert_close(run(compiled, model, args), run(eager(model), model, args))
    report = gnnc.explain(compiled)
    assert report.fallbacks and not any("/dgl/backend/" in told for told in report.fallbacks)


class Kept(nn.Module):
    def __init__(self, g: Any) -> None:
        super().__init__()
        self.g, self.layer = g, conv.GraphConv(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(self.g, x).tanh()


@pytest.mark.parametrize("library", [dgl, gnnc.dgl], ids=["dgl", "gnnc.dgl"])
def test_a_module_keeps_its_graph(library: Any) -> None:
    def ring(n: int) -> Any:
        return library.graph((torch.arange(n), torch.arange(n).roll(1)))

    model = Kept(ring(20))
    compiled = gnnc.compile(model)
    for n in (20, 33, 47):
        model.g = ring(n)
        args = (torch.randn(n, 8),)
        torch.testing.assert_close(run(compiled, model, args), run(eager(model), model, args))
    report = gnnc.explain(compiled)
    assert report.fallbacks == [] and len(report.programs) == 1


AROUND: dict[str, Any] = {}


@pytest.mark.parametrize("library", [dgl, gnnc.dgl], ids=["dgl", "gnnc.dgl"])
def test_a_graph_in_a_global_variable(library: Any) -> None:
    layer = conv.SAGEConv(8, 5, "mean")

    def function(x: Tensor) -> Tensor:
        return layer(AROUND["g"], x).tanh()

    compiled = gnnc.compile(function)
    for n in (20, 33, 47):
        AROUND["g"], x = (
            library.graph((torch.arange(n), torch.arange(n).roll(1))),
            torch.randn(n, 8),
        )
        torch.testing.assert_close(compiled(x), function(x))
    report = gnnc.explain(compiled)
    assert report.fallbacks == [] and len(report.programs) == 1


def test_edges_that_are_added_are_seen() -> None:
    model, g, x = conv.GraphConv(8, 5), graph(20, 60), torch.randn(20, 8)
    compiled = gnnc.compile(model)
    torch.testing.assert_close(compiled(g, x), eager(model)(g, x))
    g.add_edges(torch.tensor([0, 1, 2]), torch.tensor([5, 5, 5]))
    torch.testing.assert_close(compiled(g, x), eager(model)(g, x))


def test_features_that_a_call_sets_are_the_graphs() -> None:
    def sets(g: Any, x: Tensor) -> Tensor:
        g.ndata["h"] = x * 2
        g.update_all(fn.copy_u("h", "m"), fn.sum("m", "sum"))
        g.edata["w"] = torch.ones(g.num_edges(), 1) * 3
        del g.ndata["old"]
        return g.ndata["sum"] + 1

    graphs = [dgl.graph(([0, 1, 1], [1, 0, 0])) for _ in range(2)]
    x, compiled = torch.randn(2, 3), gnnc.compile(sets)
    for g, f in zip(graphs, (sets, compiled), strict=True):
        g.ndata["old"] = x
        result = f(g, x)
        torch.testing.assert_close(result, g.ndata["sum"] + 1)
    assert set(graphs[0].ndata) == set(graphs[1].ndata) == {"h", "sum"}
    for name in graphs[0].ndata:
        torch.testing.assert_close(graphs[1].ndata[name], graphs[0].ndata[name])
    torch.testing.assert_close(graphs[1].edata["w"], graphs[0].edata["w"])


def test_a_call_that_raises_sets_nothing() -> None:
    def sets(g: Any, x: Tensor) -> Tensor:
        g.ndata["h"] = x * 2
        raise ValueError("after all")

    g = dgl.graph(([0, 1, 1], [1, 0, 0]))
    with pytest.raises(ValueError, match="after all"):
        gnnc.compile(sets)(g, torch.randn(2, 3))


def test_nodes_without_edges_are_refused_as_dgl_does() -> None:
    model, g = conv.GATConv(8, 4, 2), dgl.graph(([0, 1], [1, 2]), num_nodes=4)
    compiled = gnnc.compile(model)
    with pytest.raises(dgl.DGLError, match="0-in-degree"):
        compiled(g, torch.randn(4, 8))
    g = dgl.add_self_loop(g)
    x = torch.randn(4, 8)
    torch.testing.assert_close(compiled(g, x), eager(model)(g, x))


def test_a_training_step() -> None:
    x, y = torch.randn(30, 8), torch.randint(5, (30,))
    g, models = graph(30, 90), [conv.GraphConv(8, 5) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    optimizers = [torch.optim.Adam(model.parameters(), 0.05) for model in models]

    def loss(model: nn.Module) -> Callable[..., Tensor]:
        return lambda: nn.functional.cross_entropy(model(g, x), y)

    step = gnnc.train_step(loss(models[1]), optimizers[1])
    for _ in range(20):
        expected = train_any(loss(models[0]), optimizers[0]).detach()
        torch.testing.assert_close(step(), expected, rtol=1e-9, atol=0)
    assert in_one_program(step)
