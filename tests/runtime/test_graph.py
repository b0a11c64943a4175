import numpy as np
import pytest
from hypothesis import given, settings

from gnnc.runtime.sets.graph import Graph

from .multigraphs import Multigraph, multigraphs


@settings(max_examples=40, deadline=None)
@given(graph=multigraphs())
def test_orders(graph: Multigraph):
    made = Graph(
        (graph.src, graph.dst),
        num_nodes=graph.nodes,
        edge_type=graph.rel,
        num_edge_types=graph.relations,
    )
    assert made.num_edges == graph.edges
    np.testing.assert_array_equal(made.csc.rows, np.lexsort((graph.rel, graph.dst)))
    np.testing.assert_array_equal(made.csc.map("src"), graph.src[made.csc.rows])
    np.testing.assert_array_equal(made.csr.rows, np.argsort(graph.src, kind="stable"))
    np.testing.assert_array_equal(made.in_degrees, np.bincount(graph.dst, minlength=graph.nodes))
    np.testing.assert_array_equal(made.out_degrees, np.bincount(graph.src, minlength=graph.nodes))
    pairs = made.pairs("rel", "src")
    assert pairs.count == len(set(zip(graph.rel.tolist(), graph.src.tolist(), strict=True)))
    np.testing.assert_array_equal(pairs.key("rel")[pairs.row_map.array], graph.rel)
    assert made.csc is made.csc


def test_number_of_nodes():
    assert Graph(np.array([[0, 3], [1, 1]])).num_nodes == 4
    assert Graph(([], [])).num_nodes == 0
    assert Graph(([], []), num_nodes=3).csc.ptr.tolist() == [0, 0, 0, 0]
    bipartite = Graph(([4], [1]), num_nodes=(5, 2))
    assert (bipartite.num_src, bipartite.num_dst) == (5, 2)
    assert repr(bipartite) == "Graph(num_src=5, num_dst=2, num_edges=1)"
    with pytest.raises(ValueError, match="num_src or num_dst"):
        _ = bipartite.num_nodes
    typed = Graph(([0], [1]), edge_type=[2])
    assert repr(typed) == "Graph(num_nodes=2, num_edges=1, num_edge_types=3)"


def test_a_graph_does_not_follow_its_arguments():
    src, dst = np.array([0, 1]), np.array([1, 2], np.int32)
    graph = Graph((src, dst))
    src[0] = dst[0] = 99
    assert graph.csr.rows.tolist() == [0, 1]
    assert graph.csc.map("dst").tolist() == [1, 2]


def test_tensors():
    torch = pytest.importorskip("torch")
    edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
    assert Graph(edge_index).num_edges == 3
    assert Graph((edge_index[0], edge_index[1])).num_nodes == 3
    assert Graph(edge_index.t().contiguous().t(), edge_type=torch.zeros(3).long()).num_edges == 3


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        (dict(edge_index=([0, 5], [1, 1]), num_nodes=3), IndexError, r"edge_index\[0\]\[1\] is 5"),
        (dict(edge_index=([0, 1], [1, -1])), IndexError, r"edge_index\[1\]\[1\] is -1"),
        (dict(edge_index=([-1], [-1])), IndexError, r"edge_index\[0\]\[0\] is -1"),
        (dict(edge_index=([0, 1], [1])), ValueError, "2 sources and 1 destinations"),
        (dict(edge_index=([0], [1], [2])), ValueError, r"\(2, E\)"),
        (dict(edge_index=np.zeros((5, 2), int)), ValueError, "transpose it"),
        (dict(edge_index=np.zeros(4, int)), ValueError, r"2 dimensions, got shape \(4,\)"),
        (dict(edge_index=np.zeros((2, 3))), TypeError, "edge_index must hold integers"),
        (dict(edge_index=([0.5], [1])), TypeError, r"edge_index\[0\] must hold integers"),
        (dict(edge_index=([0], [1]), num_nodes=-1), ValueError, "num_nodes is -1"),
        (dict(edge_index=([2**40], [1])), ValueError, r"num_nodes is 1099511627777"),
        (dict(edge_index=([0], [1]), edge_type=[0, 0]), ValueError, "edge_type must have one"),
        (
            dict(edge_index=([0], [1]), edge_type=[3], num_edge_types=2),
            IndexError,
            r"edge_type\[0\] is 3, but it must be between 0 and 1",
        ),
        (dict(edge_index=([0], [1]), num_edge_types=2), ValueError, "without edge_type"),
    ],
)
def test_wrong_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        Graph(**arguments)


def test_tensor_elsewhere():
    class Remote:
        device = "cuda:0"

    with pytest.raises(ValueError, match="on the device cuda:0; copy it to the CPU"):
        Graph(Remote())
