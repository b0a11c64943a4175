"""A graph whose tables are all made at once is the graph that is made set by set."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GraphConv, RGCNConv, SAGEConv

import gnnc
from gnnc.frontend.torch.calls.bound_program import BoundProgram
from gnnc.runtime import at_once
from gnnc.runtime.program import OnGraph, PhaseOnGraph

NODES, EDGES = 11, 40


class TwoSources(nn.Module):
    """What the ends of edges lead to are sets of their own, which the importer names in an order
    that is not that of the maps."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(5, 4)
        self.register_buffer("other", torch.randn(NODES, 5))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        sources, targets = edge_index
        messages = torch.cos(self.lin(x)[sources]) * self.lin(self.other[sources])
        return torch.zeros(NODES, 4).index_add(0, targets, messages)


class OfDrawnRows(nn.Module):
    """Edges lead to nodes, and nodes on to rows of a table, as those of batches do."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = SAGEConv(5, 4)
        self.register_buffer("table", torch.randn(5 * NODES, 5))
        self.register_buffer("drawn", torch.arange(NODES) * 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv(self.table[self.drawn], edge_index)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "sage": lambda: SAGEConv(5, 4),
    "max": lambda: SAGEConv(5, 4, aggr="max"),
    "gat": lambda: GATConv(5, 4, heads=2, add_self_loops=False),
    "graph": lambda: GraphConv(5, 4),
    "two sources": TwoSources,
    "loops": lambda: GCNConv(5, 4),
    "loops and attention": lambda: GATConv(5, 4, heads=2),
    "drawn rows": OfDrawnRows,
}

Made = list[tuple[BoundProgram, Sequence[Any], Sequence[int], OnGraph]]


def edges(seed: int = 0, count: int = EDGES) -> Tensor:
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.integers(0, NODES, (2, count)))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    """The graphs that programs make while the test runs, with what they make them of."""
    found: Made = []
    make = BoundProgram.make_graph

    def recorded(self: BoundProgram, args: Sequence[Any], sizes: Sequence[int]) -> OnGraph:
        graph = make(self, args, sizes)
        found.append((self, args, sizes, graph))
        return graph

    monkeypatch.setattr(BoundProgram, "make_graph", recorded)
    return found


def call(model: nn.Module, edge_index: Tensor, nodes: int = NODES) -> Tensor:
    torch.manual_seed(0)
    y = model(torch.randn(nodes, 5), edge_index)
    y.square().sum().backward()
    return y


def assert_same(a: PhaseOnGraph, b: PhaseOnGraph) -> None:
    assert list(a.sizes) == list(b.sizes)
    assert (a.counts, a.rows, a.table_bytes) == (b.counts, b.rows, b.table_bytes)
    assert a.placed() == b.placed()
    assert [x != 0 for x in a.fixed] == [x != 0 for x in b.fixed]
    for x, y in zip(a.keep, b.keep, strict=True):
        assert x.address == x.array.__array_interface__["data"][0]  # type: ignore[attr-defined]
        np.testing.assert_array_equal(x.array, y.array, strict=True)  # type: ignore[attr-defined]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("form", ["int64", "int32", "rows apart", "one edge", "no edge"])
def test_at_once_or_set_by_set(name: str, form: str, made: Made):
    forms = {
        "int64": edges(),
        "int32": edges().int(),
        "rows apart": torch.cat([edges(), edges(1)], 1)[:, :EDGES],
        "one edge": edges(count=1),
        "no edge": edges(count=0),
    }
    model = gnnc.compile(MODELS[name]())
    call(model, forms[form])
    bound, args, sizes, graph = made[-1]
    assert isinstance(graph.tables, at_once.TablesAtOnce)
    count = {s.name: n for s, n in zip(bound.imported.sets, sizes, strict=True)}
    other = bound.program.on_graph(*bound.structure_of(args, count))
    assert other.rows.keys() <= graph.rows.keys()
    for phase in bound.program.phases.values():
        assert_same(graph.phases[phase.name], other.phases[phase.name])
        for domain in phase.layout.domains[1:]:
            assert graph.tables.size(domain) == other.tables.size(domain)
        for _, b in phase.layout.tables:
            if b["kind"] == "offsets":
                groups = [
                    t.group(b["domain"], b["along"]).ptr for t in (graph.tables, other.tables)
                ]
                np.testing.assert_array_equal(*groups, strict=True)


def test_what_is_more_than_that_goes_the_other_way(made: Made, monkeypatch: pytest.MonkeyPatch):
    typed = gnnc.compile(RGCNConv(5, 4, 3))  # values are stored by pairs of node and relation
    typed(torch.randn(NODES, 5), edges(), torch.randint(3, (EDGES,)))
    assert made[-1][0].quick is None
    weighted = gnnc.compile(GCNConv(5, 4))  # the last loop of a node, which not all have
    weighted(torch.randn(NODES, 5), edges(), torch.rand(EDGES))
    quick = made[-1][0].quick
    assert not isinstance(made[-1][3].tables, at_once.TablesAtOnce)
    assert quick is not None and quick.has_partial
    model = gnnc.compile(MODELS["sage"]())
    want = call(model, edges())
    assert isinstance(made[-1][3].tables, at_once.TablesAtOnce)
    torch.testing.assert_close(call(model, edges().t().contiguous().t()), want)
    assert not isinstance(made[-1][3].tables, at_once.TablesAtOnce)
    monkeypatch.setattr(at_once, "LARGEST", EDGES - 1)
    torch.testing.assert_close(call(model, edges()), want)
    assert not isinstance(made[-1][3].tables, at_once.TablesAtOnce)


@pytest.mark.parametrize("wrong", [NODES, -1])
def test_a_wrong_index_is_named(wrong: int):
    model = gnnc.compile(MODELS["sage"]())
    call(model, edges())
    given = edges()
    given[1, 7] = wrong
    with pytest.raises((IndexError, RuntimeError), match=r"edge_index\[1\]\[7\] is"):
        call(model, given)


def test_labels_are_read_beside_what_is_made_at_once(made: Made):
    model = MODELS["sage"]()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def loss(x: Tensor, edge_index: Tensor, y: Tensor) -> Tensor:
        return nn.functional.cross_entropy(model(x, edge_index), y)

    step = gnnc.train_step(loss, optimizer)
    x, labels = torch.randn(NODES, 5), torch.randint(4, (NODES,))
    for wrong in (None, -100, 4):
        if wrong is not None:
            labels[3] = wrong
        if wrong == 4:
            with pytest.raises(IndexError, match="Target 4 is out of bounds"):
                loss(x, edges(), labels)
            with pytest.raises(IndexError, match=r"\[3\] is 4|Target 4 is out of bounds"):
                step(x, edges(), labels)
        else:
            want = loss(x, edges(), labels).item()
            torch.testing.assert_close(step(x, edges(), labels).item(), want)
            assert isinstance(made[-1][3].tables, at_once.TablesAtOnce)


def test_edits_in_place_and_other_sizes_are_seen():
    model, eager = MODELS["sage"](), MODELS["sage"]()
    eager.load_state_dict(model.state_dict())
    gnnc.compile(model)
    given = edges()
    for step in range(4):
        torch.testing.assert_close(call(model, given), call(eager, given))
        torch.testing.assert_close(call(model, given, NODES + 3), call(eager, given, NODES + 3))
        given[step % 2] = given[step % 2].flip(0)
    for p, q in zip(model.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad)


def test_nothing_is_prepared_where_nothing_follows_from_the_graph_alone() -> None:
    programs = {}
    for conv in (SAGEConv(3, 2, aggr="sum"), GCNConv(3, 2)):
        compiled: nn.Module = gnnc.compile(conv)
        compiled(torch.randn(5, 3), torch.randint(5, (2, 9)))
        (bound,) = gnnc.explain(compiled).programs
        programs[type(conv)] = set(bound.program.phases)
    assert programs[SAGEConv] == {"forward", "backward"}
    assert programs[GCNConv] == {"prepare", "forward", "backward"}
