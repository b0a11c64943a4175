"""Questions about a graph, and graphs made of others."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from .both import bipartite, block, check, heterograph, homogeneous, ours, rows, theirs, whole

GRAPHS = {"homogeneous": homogeneous, "bipartite": bipartite, "block": block}


def full(library: Any, **options: int) -> Any:
    """A graph with features."""
    g = homogeneous(library, **options)
    g.ndata["x"] = torch.arange(g.num_nodes()).float()
    g.edata["w"] = rows(g.num_edges(), 2)
    return g


def full_heterograph(library: Any) -> Any:
    g = heterograph(library)
    for ntype in g.ntypes:
        g.nodes[ntype].data["x"] = rows(g.num_nodes(ntype), 2)
    for etype in g.canonical_etypes:
        g.edges[etype].data["w"] = rows(g.num_edges(etype), 1)
    return g


def answers(question: Any, *makers: Any) -> None:
    """The same answer of both libraries; graphs are compared as a whole."""

    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        return _told(question(library, g))

    for make in makers:
        check(make, program)


def _told(answer: Any) -> Any:
    if hasattr(answer, "canonical_etypes"):
        return whole(answer)
    if isinstance(answer, (list, tuple)):
        return [_told(part) for part in answer]
    return answer


def test_made_of_pairs():
    for data in (
        ([0, 1, 1], [2, 0, 0]),
        (torch.tensor([0, 1]), torch.tensor([1, 3])),
        (torch.tensor([0, 1], dtype=torch.int32), torch.tensor([1, 3], dtype=torch.int32)),
        [(0, 1), (2, 2)],
        ("coo", ([0, 1], [1, 0])),
        ("csr", ([0, 1, 3], [1, 0, 1], [2, 0, 1])),
        ("csc", ([0, 1, 3], [1, 0, 1], [])),
        ([], []),
    ):
        answers(lambda library, g, data=data: library.graph(data), homogeneous)
        if data[0] not in ([], "csr", "csc"):
            more = dict(num_nodes=9, idtype=torch.int32)
            answers(lambda library, g, d=data, m=more: library.graph(d, **m), homogeneous)


@pytest.mark.parametrize("kind", GRAPHS)
def test_names_and_sizes(kind: str):
    names = "ntypes etypes canonical_etypes srctypes dsttypes is_block is_homogeneous idtype device"
    answers(lambda _, g: [getattr(g, name) for name in names.split()], GRAPHS[kind])
    answers(lambda _, g: (g.is_multigraph, g.is_unibipartite, repr(g.device)), GRAPHS[kind])
    answers(lambda _, g: (g.num_nodes(), g.number_of_nodes(), g.num_edges()), GRAPHS[kind])
    answers(lambda _, g: (g.num_src_nodes(), g.num_dst_nodes()), GRAPHS[kind])
    answers(lambda _, g: (g.number_of_src_nodes(), g.number_of_edges()), GRAPHS[kind])
    answers(lambda _, g: (g.srcnodes(), g.dstnodes()), GRAPHS[kind])
    answers(lambda _, g: g.srcnodes(g.srctypes[0]), GRAPHS[kind])


@pytest.mark.parametrize("kind", GRAPHS)
def test_edges_and_degrees(kind: str):
    for form in ("uv", "eid", "all"):
        answers(lambda _, g, f=form: g.edges(form=f), GRAPHS[kind])
        answers(lambda _, g, f=form: g.in_edges([2, 0], form=f), GRAPHS[kind])
        answers(lambda _, g, f=form: g.out_edges([1, 3], form=f), GRAPHS[kind])
    answers(lambda _, g: g.all_edges(order="srcdst"), GRAPHS[kind])
    answers(lambda _, g: (g.in_degrees(), g.out_degrees()), GRAPHS[kind])
    answers(lambda _, g: (g.in_degrees([1, 0]), g.out_degrees(2), g.in_degrees(0)), GRAPHS[kind])
    answers(lambda _, g: g.find_edges([3, 1]), GRAPHS[kind])
    answers(lambda _, g: g.has_edges_between([0, 1, 2], [0, 0, 3]), GRAPHS[kind])
    answers(lambda _, g: g.has_edges_between(0, 1), GRAPHS[kind])


def test_edges_by_their_ends():
    def pairs(g: Any) -> tuple[Tensor, Tensor]:
        return g.edges()[0][3:9], g.edges()[1][3:9]

    simple = lambda library: library.to_simple(homogeneous(library))  # noqa: E731
    answers(lambda _, g: g.edge_ids(*pairs(g)), simple)
    answers(lambda _, g: g.edge_ids(int(g.edges()[0][3]), int(g.edges()[1][3])), simple)
    answers(lambda _, g: g.edge_ids(*pairs(g), return_uv=True), simple)
    answers(lambda _, g: [t.sort().values for t in g.edge_ids(0, 0, return_uv=True)], homogeneous)
    answers(lambda _, g: (g.predecessors(2).sort(), g.successors(2).sort()), simple)
    for library in (ours, theirs):
        with pytest.raises(library.DGLError, match="does not form a valid edge"):
            homogeneous(library).edge_ids([8], [8])
        with pytest.raises(library.DGLError, match="Invalid edge ID"):
            homogeneous(library).find_edges([30])


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")  # of DGL's matrices
def test_matrices():
    for transpose in (False, True):
        answers(lambda _, g, t=transpose: g.adj_external(t).to_dense(), homogeneous, bipartite)
        for form in ("coo", "csr"):
            dense = lambda _, g, t=transpose, f=form: torch.tensor(  # noqa: E731
                g.adj_external(t, scipy_fmt=f).toarray()
            )
            answers(dense, homogeneous, bipartite)
    g = full(ours)
    weighted = g.adj(eweight_name="w")
    assert weighted.shape == (9, 9) and weighted.val is g.edata["w"]
    assert ours.to_scipy(homogeneous(ours)).toarray().sum() == 30


@pytest.mark.parametrize("options", [{}, {"relabel_nodes": False}, {"store_ids": False}])
def test_subgraphs(options: dict[str, bool]):
    mask = torch.tensor([True, False] * 4 + [True])
    answers(lambda _, g: g.subgraph([5, 2, 3, 0], **options), full)
    answers(lambda library, g: library.node_subgraph(g, mask, **options), full)
    answers(lambda _, g: g.edge_subgraph([9, 3, 1], **options), full)
    answers(lambda _, g: g.edge_subgraph(torch.arange(30) % 3 == 0, **options), full)
    answers(lambda _, g: g.in_subgraph([5, 2], **options), full)
    answers(lambda _, g: g.out_subgraph([5, 2], **options), full)
    some = {"user": [3, 0, 1], "item": [2]}
    answers(lambda _, g: g.subgraph(some, **options), full_heterograph)
    answers(lambda _, g: g.in_subgraph(some, **options), full_heterograph)
    edges = {"buys": [4, 1], "follows": [0]}
    answers(lambda _, g: g.edge_subgraph(edges, **options), full_heterograph)


def test_subgraphs_by_type_and_distance():
    answers(lambda _, g: g.edge_type_subgraph(["sells", "buys"]), full_heterograph)
    answers(lambda _, g: g.node_type_subgraph(["shop", "item"]), full_heterograph)
    few = lambda library: full(library, nodes=30, edges=40)  # noqa: E731
    for k in (0, 1, 2):
        answers(lambda library, g, k=k: library.khop_in_subgraph(g, [4, 2], k), few)
        answers(lambda library, g, k=k: library.khop_out_subgraph(g, [4], k), few)
    answers(lambda library, g: library.khop_in_subgraph(g, {"item": [1]}, 2), full_heterograph)


def test_transforms():
    answers(lambda library, g: library.reverse(g), full, full_heterograph)
    answers(lambda _, g: g.reverse(copy_ndata=False, copy_edata=True), full, full_heterograph)
    answers(lambda library, g: library.to_bidirected(g, copy_ndata=True), full)
    answers(lambda library, g: library.add_reverse_edges(g, copy_edata=True), full)
    answers(lambda library, g: library.add_reverse_edges(g, exclude_self=False), full)
    answers(
        lambda library, g: library.add_reverse_edges(g, ignore_bipartite=True), full_heterograph
    )
    answers(lambda library, g: library.to_simple(g, writeback_mapping=True), full)
    answers(lambda library, g: library.to_simple(g, None, copy_edata=True, aggregator="mean"), full)
    answers(lambda library, g: library.line_graph(g, shared=True), full)
    answers(lambda library, g: library.line_graph(g, backtracking=False), full)
    answers(lambda library, g: library.norm_by_dst(g), full)


@pytest.mark.parametrize("fill", [2.0, "sum", "mean", "max"])
def test_self_loops(fill: Any):
    answers(lambda library, g: library.add_self_loop(g, fill_data=fill), full)
    answers(lambda library, g: library.add_self_loop(g, etype="follows"), full_heterograph)
    answers(lambda library, g: library.remove_self_loop(g), full)
    answers(lambda _, g: g.add_self_loop().remove_self_loop(), full)
    for library in (ours, theirs):
        with pytest.raises(library.DGLError, match="bipartite"):
            library.add_self_loop(full_heterograph(library), etype="buys")


def test_edits_in_place():
    def edited(library: Any, g: Any) -> Any:
        g.add_nodes(2)
        g.add_nodes(1, {"x": torch.ones(1), "new": torch.ones(1, 2)})
        g.add_edges([0, 1], 4)
        g.add_edges([0, 14], [3, 2], {"w": torch.ones(2, 2)})
        g.remove_edges([0, 5])
        g.remove_nodes([3, 1], store_ids=True)
        return g

    answers(edited, full)
    answers(lambda library, g: library.add_edges(library.add_nodes(g, 3), 1, 11), full)
    answers(lambda library, g: library.remove_nodes(library.remove_edges(g, [2]), [0]), full)

    def more(library: Any, g: Any) -> Any:
        g.add_edges([0, 1], [2, 7], etype="buys")
        g.remove_nodes([1], ntype="user")
        g.add_nodes(2, ntype="shop")
        return g

    answers(more, full_heterograph)


def test_edits_of_a_copy():
    g = full(ours)
    ours.remove_edges(ours.add_self_loop(g), [0])
    assert g.num_edges() == 30 and list(g.edata) == ["w"]


@pytest.mark.parametrize("targets", [None, [4, 2, 5, 0, 3, 6, 1, 7]])
@pytest.mark.parametrize("include", [True, False])
def test_blocks(targets: list[int] | None, include: bool):
    chosen = None if targets is None else torch.tensor(targets)
    answers(lambda library, g: library.to_block(g, chosen, include), full)
    answers(lambda library, g: library.to_block(g), full_heterograph)
    with pytest.raises(ours.DGLError, match="not in dst_nodes"):
        ours.to_block(full(ours), torch.tensor([0]))


def test_a_block_as_a_graph():
    answers(lambda library, g: library.block_to_graph(library.to_block(g)), full_heterograph)


def test_one_type_and_back():
    answers(lambda library, g: library.to_homogeneous(g), full_heterograph)
    answers(lambda library, g: library.to_homogeneous(g, ["x"], ["w"]), full_heterograph)
    answers(
        lambda library, g: library.to_homogeneous(g, store_type=False, return_count=True),
        full_heterograph,
    )
    answers(
        lambda library, g: library.to_heterogeneous(
            library.to_homogeneous(g, ["x"]), g.ntypes, g.etypes
        ),
        full_heterograph,
    )
    answers(
        lambda library, g: library.to_heterogeneous(
            library.to_homogeneous(g), g.ntypes, g.etypes, metagraph=g.metagraph()
        ),
        full_heterograph,
    )


def test_walks():
    tree = lambda library: library.graph(([0, 0, 1, 2, 2, 3], [1, 2, 3, 3, 4, 5]))  # noqa: E731
    answers(lambda library, g: list(library.topological_nodes_generator(g)), tree)
    answers(lambda library, g: list(library.topological_nodes_generator(g, True)), tree)
    answers(lambda library, g: list(library.bfs_nodes_generator(g, 0)), tree)
    answers(lambda library, g: list(library.bfs_nodes_generator(g, [3], True)), tree)
    answers(lambda library, g: list(library.bfs_edges_generator(g, 0)), tree)
    with pytest.raises(ours.DGLError, match="loop detected"):
        ours.topological_nodes_generator(homogeneous(ours))


def test_neighbours_of_points():
    points = rows(12, 3, seed=4)

    def ends(g: Any) -> Any:
        order = (g.edges()[1] * g.num_nodes() + g.edges()[0]).sort().values
        return order, g.batch_num_nodes(), g.batch_num_edges()

    for options in ({}, {"exclude_self": True}, {"dist": "cosine"}):
        answers(lambda library, g, o=options: ends(library.knn_graph(points, 4, **o)), homogeneous)
    sets = points.reshape(3, 4, 3)
    answers(lambda library, g: ends(library.knn_graph(sets, 2)), homogeneous)
    answers(lambda library, g: ends(library.segmented_knn_graph(points, 2, [5, 7])), homogeneous)
    answers(lambda library, g: ends(library.radius_graph(points, 1.5)), homogeneous)
    near = lambda library, g: library.radius_graph(  # noqa: E731
        points, 2.0, self_loop=True, get_distances=True
    )
    answers(near, homogeneous)


def test_ids_of_32_bits():
    small = lambda library: full(library).int()  # noqa: E731
    answers(lambda _, g: (g.idtype, g.edges(form="all"), g.nodes(), g.in_degrees()), small)
    answers(lambda _, g: g.subgraph(torch.tensor([1, 2], dtype=torch.int32)), small)
    answers(lambda _, g: g.long(), small)
    for library in (ours, theirs):
        with pytest.raises(library.DGLError, match="data type"):
            small(library).in_degrees(torch.tensor([1]))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda library: library.graph(([0, 5], [0, 0]), num_nodes=3),
        lambda library: library.graph(([0, 1], [0])),
        lambda library: library.graph(torch.ones(2, 2)),
        lambda library: library.graph((torch.ones(2), torch.ones(2))),
        lambda library: library.heterograph({("a", "x", "b"): ([3], [0])}, {"a": 1, "b": 1}),
        lambda library: library.DGLGraph(homogeneous(library)),
        lambda library: homogeneous(library).subgraph([99]),
        lambda library: block(library).subgraph([0]),
        lambda library: library.reverse(block(library)),
        lambda library: homogeneous(library).remove_edges([99]),
        lambda library: homogeneous(library).in_degrees(torch.tensor([[1]])),
    ],
)
def test_mistakes(wrong: Any):
    with pytest.raises((theirs.DGLError, AssertionError, ValueError)):
        wrong(theirs)
    with pytest.raises(ours.DGLError):
        wrong(ours)


def test_negative_ids_are_an_error():
    with pytest.raises(ours.DGLError, match="not negative"):
        ours.graph(([0, -1], [0, 0]))
    with pytest.raises(ours.DGLError, match="Invalid ID -1"):
        homogeneous(ours).in_degrees([-1])


def test_matrices_as_tensors():
    answers(lambda _, g: g.adj_tensors("coo"), homogeneous, bipartite)
    simple = lambda library: library.to_simple(homogeneous(library))  # noqa: E731
    for form in ("csr", "csc"):
        answers(lambda _, g, f=form: g.adj_tensors(f)[0], homogeneous, bipartite)
        answers(lambda _, g, f=form: g.adj_tensors(f), simple)


@pytest.mark.filterwarnings("ignore:Recommend creating graphs by")
@pytest.mark.filterwarnings("ignore:Keyword arguments")
def test_the_old_way_to_make_a_graph():
    def grown(library: Any, g: Any) -> Any:
        made = library.DGLGraph()
        made.add_nodes(3)
        made.add_edges([0, 1], [1, 2])
        made.add_edges(2, 0)
        return made

    answers(grown, homogeneous)
    answers(lambda library, g: library.DGLGraph(([0, 1], [1, 2])), homogeneous)
