"""Drawn relational graphs have the sizes that were asked for, and survive their file."""

from pathlib import Path

import numpy as np
import pytest

from gnnc.bench.graphs import GRAPHS, DrawnRelations
from gnnc.bench.relations import Relations, draw

NODES = {"a": 40, "b": 9}
EDGES = {("a", "x", "b"): 90, ("b", "rev_x", "a"): 90, ("a", "y", "a"): 6, ("b", "z", "b"): 0}


def same(one: Relations, other: Relations) -> bool:
    kinds = (one.nodes, list(one.edges), one.target) == (
        other.nodes,
        list(other.edges),
        other.target,
    )
    return kinds and all(np.array_equal(one.edges[k], other.edges[k]) for k in one.edges)


def test_sizes_and_inverses():
    found = draw(NODES, EDGES, "b")
    assert {kind: e.shape for kind, e in found.edges.items()} == {
        kind: (2, count) for kind, count in EDGES.items()
    }
    for (source, _, destination), e in found.edges.items():
        assert np.all(e >= 0)
        assert np.all(e < [[NODES[source]], [NODES[destination]]])
    forward = found.edges["a", "x", "b"]
    assert np.array_equal(found.edges["b", "rev_x", "a"], forward[::-1])
    assert len(np.unique(forward[0])) <= 31, "a third of as many nodes as edges takes part"
    assert found.offsets() == {"a": 0, "b": 40}


def test_equal_seeds_draw_equal_graphs():
    assert same(draw(NODES, EDGES, "b", seed=3), draw(NODES, EDGES, "b", seed=3))
    assert not same(draw(NODES, EDGES, "b", seed=3), draw(NODES, EDGES, "b", seed=4))


def test_file(tmp_path: Path):
    found = draw(NODES, EDGES, "b")
    found.save(tmp_path / "graph.npz")
    assert same(Relations.load(tmp_path / "graph.npz"), found)


@pytest.mark.parametrize("name", ["aifb-like", "fb15k-like", "mag-tenth"])
def test_published_sizes(name: str):
    graph = GRAPHS[name]
    assert isinstance(graph, DrawnRelations)
    sizes = graph.sizes()
    assert sizes["edges"] == {"aifb-like": 58_086, "fb15k-like": 620_232}.get(name, 4_222_198)
    assert sizes["relations"] == {"aifb-like": 90, "fb15k-like": 474}.get(name, 8)
    counts = np.array(list(graph.edges.values()))
    assert np.all(counts > 0)
    assert counts.max() > 5 * counts.min(), "relations are of skewed sizes"
