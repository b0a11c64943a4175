"""The transforms of `dgl.transforms`, and graphs and encodings of what is reached, as DGL has them.

Both libraries are given the same seeds: they draw the same nodes and edges, and the same signs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from .both import bipartite, homogeneous, ours, rows, same, theirs, whole
from .test_structure import full, full_heterograph


def undirected(library: Any) -> Any:
    """A cycle with chords, and features: both ways, each edge once."""
    n = 11
    src = torch.tensor([*range(n), 0, 3, 5])
    dst = torch.tensor([*range(1, n), 0, 4, 8, 1])
    g = library.to_bidirected(library.graph((src, dst), num_nodes=n))
    g.ndata["x"], g.edata["w"] = rows(n, 3), rows(g.num_edges(), seed=2).abs()
    return g


def told(answer: Any) -> Any:
    if hasattr(answer, "canonical_etypes"):
        return whole(answer)
    if isinstance(answer, (list, tuple)):
        return [told(part) for part in answer]
    return answer


def answers(question: Callable[[Any, Any], Any], *makers: Callable[[Any], Any]) -> None:
    """The same answer of both libraries, from the same seeds."""
    for make in makers:
        found: list[Any] = []
        for library in (ours, theirs):
            torch.manual_seed(3)
            np.random.seed(3)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # NumPy's and scipy's of what DGL calls
                found.append(told(question(library, make(library))))
        same(*found)


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "AddSelfLoop": lambda T: T.AddSelfLoop(),
    "AddSelfLoop.allow": lambda T: T.AddSelfLoop(allow_duplicate=True, fill_data="mean"),
    "RemoveSelfLoop": lambda T: T.RemoveSelfLoop(),
    "AddReverse": lambda T: T.AddReverse(),
    "AddReverse.copy": lambda T: T.AddReverse(copy_edata=True),
    "AddReverse.types": lambda T: T.AddReverse(copy_edata=True, sym_new_etype=True),
    "ToSimple": lambda T: T.ToSimple(aggregator="sum"),
    "DropEdge": lambda T: T.DropEdge(0.4),
    "DropEdge.none": lambda T: T.DropEdge(0.0),
    "DropNode": lambda T: T.DropNode(0.4),
    "AddEdge": lambda T: T.AddEdge(0.3),
    "NodeShuffle": lambda T: T.NodeShuffle(),
    "Compose": lambda T: T.Compose([T.AddSelfLoop(), T.DropEdge(0.2), T.AddReverse()]),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_of_any_graph(name: str) -> None:
    answers(lambda library, g: TRANSFORMS[name](library.transforms)(g), full, full_heterograph)


ONE_TYPE: dict[str, Callable[[Any], Any]] = {
    "AddSelfLoop.types": lambda T: T.AddSelfLoop(new_etypes=True),
    "LineGraph": lambda T: T.LineGraph(),
    "KHopGraph": lambda T: T.KHopGraph(2),
    "ToLevi": lambda T: T.ToLevi(),
    "GCNNorm": lambda T: T.GCNNorm(),
    "GCNNorm.new": lambda T: T.GCNNorm("other"),
    "RowFeatNormalizer": lambda T: T.RowFeatNormalizer(True, ["x"], ["w2"]),
    "FeatMask": lambda T: T.FeatMask(0.5, ["x"], ["w2"]),
    "RandomWalkPE": lambda T: T.RandomWalkPE(4),
    "RandomWalkPE.weights": lambda T: T.RandomWalkPE(3, "pe", "w"),
    "LapPE": lambda T: T.LapPE(9, "pe", "values"),
    "LapPE.padded": lambda T: T.LapPE(13, padding=True),
    "SVDPE": lambda T: T.SVDPE(4),
    "SVDPE.padded": lambda T: T.SVDPE(13, padding=True, random_flip=False),
    "SIGN.raw": lambda T: T.SIGNDiffusion(2, "x"),
    "SIGN.raw.weights": lambda T: T.SIGNDiffusion(2, "x", eweight_name="w"),
    "SIGN.rw": lambda T: T.SIGNDiffusion(2, "x", diffuse_op="rw"),
    "SIGN.rw.weights": lambda T: T.SIGNDiffusion(2, "x", "y", "w", "rw"),
    "SIGN.gcn": lambda T: T.SIGNDiffusion(2, "x", diffuse_op="gcn"),
    "SIGN.gcn.weights": lambda T: T.SIGNDiffusion(2, "x", "y", "w", "gcn"),
    "SIGN.ppr": lambda T: T.SIGNDiffusion(3, "x", diffuse_op="ppr", alpha=0.3),
    "PPR": lambda T: T.PPR(avg_degree=2),
    "PPR.all": lambda T: T.PPR(avg_degree=30),
    "HeatKernel": lambda T: T.HeatKernel(eweight_name="new", eps=0.05),
    "HeatKernel.directed": lambda T: T.Compose([T.DropEdge(0.3), T.HeatKernel(1.0, "new", 0.1)]),
    "GDC": lambda T: T.GDC([0.3, 0.2, 0.1], eps=0.01),
}


@pytest.mark.parametrize("name", ONE_TYPE)
def test_of_a_graph_of_one_type(name: str) -> None:
    def make(library: Any) -> Any:
        g = undirected(library)
        g.edata["w2"] = rows(g.num_edges(), 2).abs()
        return g

    answers(lambda library, g: ONE_TYPE[name](library.transforms)(g), make)


def test_metapaths() -> None:
    def added(library: Any, g: Any) -> Any:
        paths = {"twice": [("user", "follows", "user"), ("user", "buys", "item")]}
        keep = library.transforms.AddMetaPaths(paths)(g)
        return keep, library.transforms.AddMetaPaths(paths, keep_orig_edges=False)(g)

    answers(added, full_heterograph)
    path = ["follows", "buys"]
    answers(lambda library, g: library.metapath_reachable_graph(g, path), full_heterograph)
    answers(
        lambda library, g: library.metapath_reachable_graph(g, ["follows"] * 2), full_heterograph
    )
    with pytest.raises(ValueError, match="metapath is empty"):
        ours.metapath_reachable_graph(full_heterograph(ours), [])


def test_what_is_reached() -> None:
    for k in (1, 2, 3):
        answers(lambda library, g, k=k: library.khop_adj(g, k), full, undirected)
        answers(lambda library, g, k=k: library.khop_graph(g, k), full, undirected)
    answers(lambda library, g: library.shortest_dist(g), full, undirected)
    answers(lambda library, g: library.shortest_dist(g, root=2), full)
    answers(lambda library, g: library.double_radius_node_labeling(g, 5, 2), full, undirected)
    for root in (None, 3):
        lengths, paths = ours.shortest_dist(undirected(ours), root, return_paths=True)
        wanted = theirs.shortest_dist(undirected(theirs), root, return_paths=True)
        same(lengths, wanted[0])
        _are_paths(undirected(ours), lengths, paths, root)
        assert paths.shape == wanted[1].shape


def _are_paths(g: Any, lengths: Tensor, paths: Tensor, root: int | None) -> None:
    """Each path has its length, and leads from its beginning to its end."""
    assert torch.equal((paths >= 0).sum(-1), lengths.clamp(min=0))
    starts = range(g.num_nodes()) if root is None else [root]
    for start, ends in zip(starts, paths.reshape(-1, g.num_nodes(), paths.shape[-1]), strict=True):
        for end, path in enumerate(ends):
            edges = path[path >= 0]
            src, dst = (x.tolist() for x in g.find_edges(edges))
            assert [start, *dst] == [*src, end]


def test_compact() -> None:
    answers(lambda library, g: library.compact_graphs(g), full, full_heterograph)
    answers(lambda library, g: library.compact_graphs([g, g], [8, 1]), full)
    kept = {"item": [4], "user": [5, 0]}
    answers(lambda library, g: library.compact_graphs(g, kept), full_heterograph)
    answers(lambda library, g: library.compact_graphs(g, None, False, False), full)


def test_encodings() -> None:
    answers(lambda library, g: library.random_walk_pe(g, 3), full)
    answers(lambda library, g: library.lap_pe(g, 10, return_eigval=True), undirected)
    answers(lambda library, g: library.laplacian_pe(g, 12, padding=True), undirected)
    answers(lambda library, g: library.svd_pe(g, 3), undirected)
    answers(lambda library, g: [round(v, 3) for v in library.laplacian_lambda_max(g)], undirected)
    values = ours.lap_pe(undirected(ours), 3, return_eigval=True)[1]
    exact = ours.lap_pe(undirected(ours), 10, return_eigval=True)[1]
    torch.testing.assert_close(values.sort().values, exact[:3], rtol=0, atol=0.02)
    with pytest.raises(AssertionError, match="smaller than the number of nodes"):
        ours.lap_pe(undirected(ours), 12)
    with pytest.raises(ValueError, match="no greater than"):
        ours.svd_pe(undirected(ours), 12)


def test_floats() -> None:
    for name in ("to_float", "to_double"):
        answers(lambda library, g, name=name: getattr(library, name)(g), full, full_heterograph)
    answers(lambda library, g: library.to_float(library.to_half(g)), full, full_heterograph)


def test_what_is_wrong() -> None:
    for wrong in (lambda: ours.DropEdge(1.5), lambda: ours.AddEdge(-1), lambda: ours.DropNode(-1)):
        with pytest.raises(ValueError, match="must"):
            wrong()
    with pytest.raises(ours.DGLError, match="diffuse_op"):
        ours.SIGNDiffusion(2, diffuse_op="mean")
    with pytest.raises(AssertionError, match="only homogeneous"):
        ours.khop_graph(bipartite(ours), 2)
    with pytest.raises(KeyError):
        ours.RowFeatNormalizer(node_feat_names=["none"])(homogeneous(ours))
    with pytest.raises(NotImplementedError):
        ours.BaseTransform()(homogeneous(ours))


def test_every_transform_is_here() -> None:
    for name in theirs.transforms.module.__all__:
        assert getattr(ours, name) is getattr(ours.transforms, name)
