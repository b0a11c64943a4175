"""The launch record: what ran, over how many rows."""

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, HeteroConv, RGATConv, RGCNConv, SAGEConv

import gnnc

NODES, EDGES, RELATIONS = 30, 200, 4


def graph(seed: int) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    edges = torch.randint(0, NODES, (2, EDGES), generator=random)
    return edges, torch.randint(0, RELATIONS, (EDGES,), generator=random)


def pairs(a: Tensor, b: Tensor) -> int:
    return len(torch.unique(torch.stack([a, b]), dim=1).T)


def test_products_by_pair() -> None:
    """Compact materialization: a product for each relation and source that occurs together, and the
    weights' gradients from as many rows."""
    model = gnnc.compile(RGCNConv(20, 16, RELATIONS, root_weight=False))
    for seed in range(2):  # the record is that of the last graph
        edges, kinds = graph(seed)
        model(torch.randn(NODES, 20), edges, kinds).sum().backward()
        record = gnnc.explain(model).launches()
        products = {(x.phase, p.kind): (x, p) for x in record for p in x.products}
        assert set(products) == {("forward", "matmul"), ("backward", "outer")}
        for launch, product in products.values():
            assert launch.domain.endswith("[rel, src]") or launch.domain.endswith("[dst, rel]")
            other = edges[0 if "src" in launch.domain else 1]
            assert launch.rows == product.rows == pairs(kinds, other)
            assert product.multiplications == product.rows * 20 * 16


def test_loops_over_relations_are_no_kernels_of_their_own() -> None:
    """Attention within each relation, which PyG writes as one masked softmax after the other."""
    count = set[int]()
    for relations in (RELATIONS, 3 * RELATIONS):
        layer = RGATConv(6, 5, relations, heads=2, attention_mechanism="within-relation")
        model = gnnc.compile(layer)
        edges, kinds = graph(0)
        model(torch.randn(NODES, 6), edges, kinds).sum().backward()
        count.add(len(gnnc.explain(model).launches()))
    assert len(count) == 1


def test_products_by_node() -> None:
    """GCN and GAT multiply once a node, whatever the edges."""
    for layer in (GCNConv(6, 5), GATConv(6, 5, heads=2)):
        model = gnnc.compile(layer)
        edges, _ = graph(0)
        model(torch.randn(NODES, 6), edges).sum().backward()
        products = [p for x in gnnc.explain(model).launches() for p in x.products]
        assert products and all(p.rows == NODES for p in products)


def test_products_by_edge() -> None:
    """A relation of few edges: its product is done at these, that of the nodes themselves once."""
    kinds = [("n", name, "n") for name in ("a", "b")]
    model = HeteroConv({kind: SAGEConv((6, 6), 5) for kind in kinds}, aggr="sum")
    compiled = gnnc.compile(lambda x, a, b: model({"n": x}, dict(zip(kinds, (a, b), strict=True))))
    ends = torch.arange(14).view(2, 7)
    turned = ends.flip(0)
    x = torch.randn(NODES * 10, 6, requires_grad=True)
    compiled(x, ends, turned)["n"].sum().backward()
    products = [p for launch in gnnc.explain(compiled).launches() for p in launch.products]
    # forward, the weight's gradient and that of x, for each relation and for all nodes
    assert sorted(p.rows for p in products) == [7] * 6 + [NODES * 10] * 3


def test_text() -> None:
    model = gnnc.compile(GCNConv(3, 2))
    assert gnnc.explain(model).launches() == []
    edges, _ = graph(0)
    with torch.no_grad():
        model(torch.randn(NODES, 3), edges)
    (launch,) = [x for x in gnnc.explain(model).launches() if x.products]
    assert "30 rows of " in str(launch) and "180 multiplications" in str(launch)
    del edges
    assert gnnc.explain(model).launches() == []  # nothing is kept for a graph that is gone


def test_not_compiled() -> None:
    with pytest.raises(ValueError, match="not compiled"):
        gnnc.explain(nn.Linear(3, 2)).launches()
