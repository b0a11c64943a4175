"""Graphs from and to scipy, networkx, PyG and DGL itself."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from .both import block, check, heterograph, homogeneous, ours, rows, same, theirs, whole
from .test_structure import answers, full, full_heterograph


def matrix(form: str) -> Any:
    drawn = np.random.default_rng(0)
    dense = drawn.integers(0, 3, (5, 5)) * drawn.random((5, 5)).astype(np.float32)
    return scipy.sparse.csr_matrix(dense).asformat(form)


@pytest.mark.parametrize("form", ["coo", "csr"])
def test_scipy(form: str):
    given = matrix(form)
    narrow = given.tocsr()[:3].asformat(form)
    answers(lambda library, g: library.from_scipy(given, "w"), homogeneous)
    answers(
        lambda library, g: library.bipartite_from_scipy(narrow, "a", "x", "b", "w"), homogeneous
    )
    made = ours.from_scipy(given, "w")
    back = ours.to_scipy(made, "w", scipy_fmt=form)
    assert back.format == form and (back != given).nnz == 0
    for library in (ours, theirs):
        with pytest.raises(library.DGLError, match="number of rows"):
            library.from_scipy(narrow)


def test_scipy_shares_memory():
    g = full(ours)
    r = ours.to_scipy(g)
    assert np.shares_memory(r.row, g.edges()[0].numpy()) or r.row.dtype == np.int32
    with pytest.raises(ours.DGLError, match="scipy_fmt"):
        ours.to_scipy(g, scipy_fmt="dok")


def networks() -> tuple[Any, Any]:
    undirected = networkx.karate_club_graph()
    directed = networkx.MultiDiGraph()
    for node in ("c", "a", "b"):
        directed.add_node(node, x=[float(ord(node)), 1.0])
    for i, (u, v) in enumerate([("a", "b"), ("c", "a"), ("a", "b")]):
        directed.add_edge(u, v, w=float(i), number=2 - i)
    return undirected, directed


def test_networkx():
    undirected, directed = networks()
    answers(lambda library, g: library.from_networkx(undirected), homogeneous)
    for name in (None, "number"):
        answers(
            lambda library, g, n=name: library.from_networkx(directed, ["x"], ["w"], n), homogeneous
        )
    for library in (ours, theirs):
        with pytest.raises(library.DGLError, match="edge_attrs"):
            library.from_networkx(undirected, edge_attrs=["weight"])
        with pytest.raises(library.DGLError, match="edge IDs"):
            library.from_networkx(directed, edge_id_attr_name="missing")


def test_bipartite_networkx():
    g = networkx.DiGraph()
    for i, name in enumerate("dacb"):
        g.add_node(name, bipartite=i % 2, x=float(i))
    g.add_edge("d", "a", e=1.0)
    g.add_edge("c", "b", e=2.0)
    types = "u", "e", "v"
    answers(
        lambda library, _: library.bipartite_from_networkx(g, *types, ["x"], ["e"], ["x"]),
        homogeneous,
    )


def test_to_networkx():
    def told(library: Any, g: Any) -> Any:
        made = library.to_networkx(g, node_attrs=["x"], edge_attrs=["w"])
        edges = [(u, v, dict(d)) for u, v, d in made.edges(data=True)]
        return [(n, dict(d)) for n, d in made.nodes(data=True)], edges

    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        return told(library, g)

    check(full, program)
    check(full_heterograph, program)
    g = full(ours)
    back = ours.from_networkx(ours.to_networkx(g), edge_id_attr_name="id")
    same(back.edges(), g.edges())


@pytest.mark.parametrize("make", [full, full_heterograph, heterograph, block])
def test_dgl(make: Any):
    real = make(theirs)
    made = ours.from_dgl(real)
    same(whole(made), whole(real))
    same(whole(ours.to_dgl(made)), whole(real))
    etype = real.canonical_etypes[0]
    assert made.edges(etype=etype)[0].data_ptr() == real.edges(etype=etype)[0].data_ptr()
    for key, value in real.edges[etype].data.items():
        assert made.edges[etype].data[key] is value


def test_dgl_keeps_batches_and_the_order_of_types():
    real = theirs.batch([full_heterograph(theirs)] * 2)
    made = ours.from_dgl(real)
    assert made.batch_size == 2 and made.batch_num_nodes("user").tolist() == [6, 6]
    assert ours.to_dgl(made).batch_size == 2
    turned = theirs.reverse(heterograph(theirs))
    assert ours.from_dgl(turned).canonical_etypes == turned.canonical_etypes


def test_pyg():
    ends = torch.tensor([[0, 1, 1], [2, 0, 2]])
    data = Data(x=rows(4, 2), edge_index=ends, edge_attr=rows(3, 1), y=torch.arange(4))
    g = ours.from_pyg(data)
    assert sorted(g.ndata) == ["x", "y"] and sorted(g.edata) == ["edge_attr"]
    assert g.ndata["x"] is data.x and g.edges()[0].data_ptr() == ends.data_ptr()
    back = ours.to_pyg(g)
    for key in ("x", "edge_index", "edge_attr", "y"):
        assert back[key].equal(data[key])
    assert back.num_nodes == 4
    data.name = "a name"
    with pytest.raises(ours.DGLError, match="'name' is of no node or edge"):
        ours.from_pyg(data)
    assert ours.from_pyg(data, ignore=("name",)).num_nodes() == 4


def test_pyg_of_several_types():
    data = HeteroData()
    data["a"].x, data["b"].num_nodes = rows(3, 2), 4
    data["a", "to", "b"].edge_index = torch.tensor([[0, 2], [3, 1]])
    data["a", "to", "b"].edge_attr = rows(2, 1)
    g = ours.from_pyg(data)
    assert g.canonical_etypes == [("a", "to", "b")] and g.num_nodes("b") == 4
    assert g.nodes["a"].data["x"] is data["a"].x
    back = ours.to_pyg(g)
    assert back["b"].num_nodes == 4
    assert back["a", "to", "b"].edge_index.equal(data["a", "to", "b"].edge_index)
    assert back["a", "to", "b"].edge_attr.equal(data["a", "to", "b"].edge_attr)
