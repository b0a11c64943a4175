"""The contestants compute the same relational models, whichever form they take the graph in."""

from importlib.util import find_spec

import pytest
import torch
from torch_geometric.nn import HGTConv

from gnnc.bench.contestants import CONTESTANTS, Prepared
from gnnc.bench.graphs import MODELS
from gnnc.bench.race import CONTESTANTS as NAMES
from gnnc.bench.race import lacks
from gnnc.bench.relational_models import TypedHGTConv
from gnnc.bench.relations import draw
from gnnc.bench.tasks import Task, numbered_through, relational_task
from gnnc.frontend.tools.children import Refused

EDGES = {("a", "x", "b"): 30, ("b", "rev_x", "a"): 30, ("c", "y", "a"): 12, ("a", "z", "c"): 9}
GRAPH = draw({"a": 14, "b": 5, "c": 8}, EDGES, "c")
RELATIONAL = [name for name, model in MODELS.items() if model.relational]
OTHERS = [n for n in NAMES if n not in ("pyg", "dgl")]
needs_dgl = pytest.mark.skipif(find_spec("dgl") is None, reason="DGL is not installed")


def task(kind: str, *widths: int) -> Task:
    return relational_task(kind, widths or (6, 4), GRAPH)


def prepared(name: str, task: Task) -> Prepared:
    torch.manual_seed(0)
    return CONTESTANTS[name](task)


def trained(one: Prepared) -> tuple[torch.Tensor, list[torch.Tensor | None]]:
    loss = one.loss()
    loss.backward()
    return loss.detach(), [p.grad for p in one.model.parameters()]


LONG = (("gnnc-step", "hgt"), ("gnnc-step", "hgt-typed"))
"""These compile for long, and differ from `gnnc` in where the loss is alone."""


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    "name, kind",
    [
        pytest.param(n, k, marks=[pytest.mark.long] if (n, k) in LONG else [])
        for n in OTHERS
        for k in RELATIONAL
        if not lacks(n, k)
    ],
)
def test_is_the_same_model(name: str, kind: str):
    ours, theirs = trained(prepared("pyg", task(kind))), trained(prepared(name, task(kind)))
    torch.testing.assert_close(theirs[0], ours[0])
    for a, b in zip(theirs[1], ours[1], strict=True):
        if a is None or b is None:  # nobody needs it, or all of its rows meet a 0
            assert all(g is None or not g.any() for g in (a, b))
        else:
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("kind", RELATIONAL)
def test_more_layers(kind: str):
    here = task(kind, 6, 5, 4)
    model = here.model()
    assert len(model.convs) == 2
    assert model(*here.inputs).shape == (len(here.y), 4)


@pytest.mark.long
@pytest.mark.parametrize("name", ["gnnc", "gnnc-step"])
@pytest.mark.parametrize("kind", RELATIONAL)
def test_takes_another_graph(name: str, kind: str):
    here = task(kind)
    one, eager = prepared(name, here), prepared("pyg", here)
    torch.testing.assert_close(one.loss(), eager.loss())
    other = relational_task(kind, (6, 4), draw(GRAPH.nodes, EDGES, "c", seed=9))
    torch.testing.assert_close(one.loss(other), prepared("pyg", other).loss())


@pytest.mark.parametrize("kind", RELATIONAL)
def test_another_order_is_the_same_graph(kind: str):
    here = task(kind)
    other = here.shuffled(1)
    edges = [t.edge_index if kind != "hgt" else t.edge_index["a", "x", "b"] for t in (here, other)]
    assert not torch.equal(*edges)
    assert torch.equal(*(e.sort(1).values for e in edges))
    torch.testing.assert_close(prepared("pyg", other).loss(), prepared("pyg", here).loss())


@pytest.mark.parametrize("name, kind", [(n, k) for n in NAMES for k in RELATIONAL if lacks(n, k)])
def test_refuses_what_there_is_not(name: str, kind: str):
    if name == "dgl" and find_spec("dgl") is None:
        pytest.skip("DGL is not installed")
    with pytest.raises(Refused):
        CONTESTANTS[name](task(kind))


def test_typed_hgt_is_that_of_pyg():
    """With the weights of PyG's layer, the same rows."""
    torch.manual_seed(0)
    nodes = list(GRAPH.nodes)
    here = task("hgt", 6, 6)
    theirs = HGTConv(6, 6, (nodes, list(GRAPH.edges)))
    ours = TypedHGTConv(6, 6, len(GRAPH.edges), len(nodes))
    with torch.no_grad():
        for i, name in enumerate(nodes):
            for typed, by_type in ((ours.kqv_lin, theirs.kqv_lin), (ours.out_lin, theirs.out_lin)):
                typed.weight[i] = by_type.lins[name].weight.T
                typed.bias[i] = by_type.lins[name].bias.normal_()
            ours.skip[i] = theirs.skip[name].normal_()[0]
        for i, kind in enumerate(GRAPH.edges):
            ours.p_rel[i] = theirs.p_rel["__".join(kind)].normal_()[0, 0]
        ours.k_rel.copy_(theirs.k_rel.weight)
        ours.v_rel.copy_(theirs.v_rel.weight)
    typed = task("hgt-typed", 6, 6)
    found = ours(*typed.inputs)
    expected = theirs(*here.inputs)
    torch.testing.assert_close(found, torch.cat([expected[name] for name in nodes]))


@needs_dgl
def test_dgl_rgcn_is_the_same_model():
    here = task("rgcn", 6, 5, 4)
    ours, theirs = prepared("pyg", here), prepared("dgl", here)
    with torch.no_grad():
        for a, b in zip(ours.model.convs, theirs.model.convs, strict=True):
            b.linear_r.W.copy_(a.weight)
            b.loop_weight.copy_(a.root)
            b.h_bias.copy_(a.bias.normal_())
    torch.testing.assert_close(theirs.loss(), ours.loss())


@needs_dgl
@pytest.mark.parametrize("kind", ["hgt", "hgt-typed"])
def test_dgl_hgt_takes_the_same_rows(kind: str):
    """Zero products, so that what comes through is the way around the layer, x."""
    here = task(kind, 6, 6)
    one = prepared("dgl", here)
    with torch.no_grad():
        for p in one.model.convs[0].linear_a.parameters():
            p.zero_()
        one.model.convs[0].skip.fill_(-100.0)
    x = here.x["c"] if kind == "hgt" else here.x
    torch.testing.assert_close(one.model(*one.inputs), x)


def test_numbered_through():
    edges = {
        ("a", "x", "b"): torch.tensor([[1, 0], [2, 3]]),
        ("b", "y", "b"): torch.tensor([[1], [0]]),
    }
    edge_index, edge_type = numbered_through(edges, {"a": 0, "b": 10})
    assert edge_index.tolist() == [[1, 0, 11], [12, 13, 10]]
    assert edge_type.tolist() == [0, 0, 1]


def test_loss_of_hgt_is_over_its_target():
    assert len(task("hgt").y) == GRAPH.nodes["c"]
    assert len(task("rgcn").y) == sum(GRAPH.nodes.values())


def test_seeds():
    one, other = relational_task("rgcn", (6, 4), GRAPH), relational_task("rgcn", (6, 4), GRAPH, 1)
    assert torch.equal(one.x, task("rgcn").x)
    assert not torch.equal(one.x, other.x)
    assert not torch.equal(one.y, other.y)
