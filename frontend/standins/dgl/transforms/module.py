"""The transforms of `dgl.transforms`: objects that make a graph of a graph.

Draws are of torch's generator, in the order in which DGL draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ..base import dgl_warning
from ..create import heterograph
from ..graph import DGLGraph
from ..topology import EType
from . import encodings, reached
from .functional import add_self_loop, line_graph, remove_self_loop, to_simple


class BaseTransform:
    """What all transforms have in common: they are called with a graph, and give one."""

    def __call__(self, g: DGLGraph) -> DGLGraph:
        """The graph that is made of `g`."""
        raise NotImplementedError(f"{type(self).__name__} has no __call__")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def with_edges(g: DGLGraph, ends: Mapping[EType, Any], copy_edata: bool = True) -> DGLGraph:
    """A graph with the nodes of `g`, and features of its edge types if they are there."""
    made = heterograph(ends, {t: g.num_nodes(t) for t in g.ntypes}, g.idtype, g.device)
    for ntype in g.ntypes:
        made._source_frames[ntype].update(g._source_frames[ntype])
    if copy_edata:
        for etype in g.canonical_etypes:
            made._edge_frames[etype].update(g._edge_frames[etype])
    return made


class _OfFeatures(BaseTransform):
    """A transform of some features of nodes and edges, of all types that have them."""

    def __init__(
        self, node_feat_names: list[str] | None = None, edge_feat_names: list[str] | None = None
    ):
        self.node_feat_names = node_feat_names or []
        self.edge_feat_names = edge_feat_names or []

    def _changed(self, feat: Tensor) -> Tensor:
        raise NotImplementedError

    def __call__(self, g: DGLGraph) -> DGLGraph:
        """The same graph with other features."""
        for names, frames in (
            (self.node_feat_names, g._source_frames),
            (self.edge_feat_names, g._edge_frames),
        ):
            for name in names:
                having = [frame for frame in frames.values() if name in frame]
                if not having:
                    raise KeyError(name)
                for frame in having:
                    frame[name] = self._changed(frame[name])
        return g


class RowFeatNormalizer(_OfFeatures):
    """Divides each row of features by its sum, but by no less than 1, in place.

    With `subtract_min` the least number of the feature is taken off first, from a copy.
    """

    def __init__(
        self,
        subtract_min: bool = False,
        node_feat_names: list[str] | None = None,
        edge_feat_names: list[str] | None = None,
    ):
        super().__init__(node_feat_names, edge_feat_names)
        self.subtract_min = subtract_min

    def _changed(self, feat: Tensor) -> Tensor:
        if self.subtract_min:
            feat = feat - feat.min()
        return feat.div_(feat.sum(-1, keepdim=True).clamp_(min=1.0))


class FeatMask(_OfFeatures):
    """Sets columns of features to zero, in place, each with probability `p`."""

    def __init__(
        self,
        p: float = 0.5,
        node_feat_names: list[str] | None = None,
        edge_feat_names: list[str] | None = None,
    ):
        super().__init__(node_feat_names, edge_feat_names)
        self.p = _probability(p)

    def _changed(self, feat: Tensor) -> Tensor:
        if self.p:
            feat[:, _drawn(self.p, feat.shape[-1], feat.device)] = 0
        return feat


def _probability(p: float) -> float:
    if not 0 <= p <= 1:
        raise ValueError(f"p must be a probability, got {p}")
    return p


def _drawn(p: float, count: int, device: torch.device) -> Tensor:
    """Whether each of some is chosen."""
    return torch.bernoulli(torch.full((count,), float(p))).bool().to(device)


class RandomWalkPE(BaseTransform):
    """Feature `feat_name` is `random_walk_pe`."""

    def __init__(self, k: int, feat_name: str = "PE", eweight_name: str | None = None):
        self.k, self.feat_name, self.eweight_name = k, feat_name, eweight_name

    def __call__(self, g: DGLGraph) -> DGLGraph:
        """The same graph with the feature."""
        g.ndata[self.feat_name] = encodings.random_walk_pe(g, self.k, self.eweight_name)
        return g


class LapPE(BaseTransform):
    """Feature `feat_name` is `lap_pe`, and `eigval_name` the eigenvalues, for each node."""

    def __init__(
        self, k: int, feat_name: str = "PE", eigval_name: str | None = None, padding: bool = False
    ):
        self.k, self.feat_name = k, feat_name
        self.eigval_name, self.padding = eigval_name, padding

    def __call__(self, g: DGLGraph) -> DGLGraph:
        """The same graph with the features."""
        found, values = encodings.lap_pe(g, self.k, self.padding, return_eigval=True)
        if self.eigval_name:
            g.ndata[self.eigval_name] = values.to(g.device).repeat(g.num_nodes(), 1)
        g.ndata[self.feat_name] = found
        return g


class LaplacianPE(LapPE):
    """The old name of `LapPE`."""

    def __init__(
        self, k: int, feat_name: str = "PE", eigval_name: str | None = None, padding: bool = False
    ):
        super().__init__(k, feat_name, eigval_name, padding)
        dgl_warning("LaplacianPE will be deprecated. Use LapPE please.")


class SVDPE(BaseTransform):
    """Feature `feat_name` is `svd_pe`."""

    def __init__(
        self,
        k: int,
        feat_name: str = "svd_pe",
        padding: bool = False,
        random_flip: bool = True,
    ):
        self.k, self.feat_name = k, feat_name
        self.padding, self.random_flip = padding, random_flip

    def __call__(self, g: DGLGraph) -> DGLGraph:
        """The same graph with the feature."""
        g.ndata[self.feat_name] = encodings.svd_pe(g, self.k, self.padding, self.random_flip)
        return g


class AddSelfLoop(BaseTransform):
    """`add_self_loop` for each edge type between nodes of one type, whose loops are removed first
    unless `allow_duplicate`; with `new_etypes` also an edge type `self` of each node type."""

    def __init__(
        self,
        allow_duplicate: bool = False,
        new_etypes: bool = False,
        edge_feat_names: list[str] | None = None,
        fill_data: float | str = 1.0,
    ):
        self.allow_duplicate, self.new_etypes = allow_duplicate, new_etypes
        self.edge_feat_names, self.fill_data = edge_feat_names, fill_data

    def __call__(self, g: DGLGraph) -> DGLGraph:
        """A copy with loops."""
        for etype in g.canonical_etypes:
            if etype[0] == etype[2]:
                if not self.allow_duplicate:
                    g = remove_self_loop(g, etype)
                g = add_self_loop(g, self.edge_feat_names, self.fill_data, etype)
        if not self.new_etypes:
            return g
        ends: dict[EType, Any] = {(t, "self", t): (g.nodes(t), g.nodes(t)) for t in g.ntypes}
        return with_edges(g, ends | _ends(g))


def _ends(g: DGLGraph) -> dict[EType, Any]:
    return {etype: g.edges(etype=etype) for etype in g.canonical_etypes}


class RemoveSelfLoop(BaseTransform):
    """`remove_self_loop` for each edge type between nodes of one type."""

    def __call__(self, g: DGLGraph) -> DGLGraph:
        """A copy without loops."""
        for etype in g.canonical_etypes:
            if etype[0] == etype[2]:
                g = remove_self_loop(g, etype)
        return g


class AddReverse(BaseTransform):
    """Adds each edge turned round: to its type where that is between nodes of one, and else as type
    `rev_..`, which all get with `sym_new_etype`.

    Features of the new edges are those of the old with `copy_edata`; without, zeros, and none for
    new types.
    """

    def __init__(self, copy_edata: bool = False, sym_new_etype: bool = False):
        self.copy_edata, self.sym_new_etype = copy_edata, sym_new_etype

    def __call__(self, g: DGLGraph) -> DGLGraph:
        """A copy with more edges."""
        ends: dict[EType, Any] = {}
        for etype, (src, dst) in _ends(g).items():
            if self._to_itself(etype):
                ends[etype] = torch.cat([src, dst]), torch.cat([dst, src])
            else:
                ends |= {etype: (src, dst), _turned(etype): (dst, src)}
        made = with_edges(g, ends, copy_edata=False)
        for etype, frame in g._edge_frames.items():
            for key, value in frame.items():
                if self._to_itself(etype):
                    more = value if self.copy_edata else torch.zeros_like(value)
                    made._edge_frames[etype][key] = torch.cat([value, more])
                    continue
                made._edge_frames[etype][key] = value
                if self.copy_edata:
                    made._edge_frames[_turned(etype)][key] = value
        return made

    def _to_itself(self, etype: EType) -> bool:
        return etype[0] == etype[2] and not self.sym_new_etype


def _turned(etype: EType) -> EType:
    return etype[2], f"rev_{etype[1]}", etype[0]


class ToSimple(BaseTransform):
    """`to_simple`, with features of edges."""

    def __init__(self, return_counts: str | None = "count", aggregator: str = "arbitrary"):
        self.return_counts, self.aggregator = return_counts, aggregator

    def __call__(self, g: DGLGraph) -> DGLGraph:
        """A graph with each pair of ends once."""
        return to_simple(g, self.return_counts, copy_edata=True, aggregator=self.aggregator)


class LineGraph(BaseTransform):
    """`line_graph`, with features of edges as those of nodes."""

    def __init__(self, backtracking: bool = True):
        self.backtracking = backtracking

    def __call__(self, g: DGLGraph) -> DGLGraph:
        """A graph with a node an edge."""
        return line_graph(g, self.backtracking, shared=True)


class KHopGraph(BaseTransform):
    """`khop_graph`."""

    def __init__(self, k: int):
        self.k = k

    def __call__(self, g: DGLGraph) -> DGLGraph:
        """A graph with an edge a walk of `k`."""
        return reached.khop_graph(g, self.k)


class AddMetaPaths(BaseTransform):
    """Edge types of `metapath_reachable_graph`: their names, and lists of canonical types."""

    def __init__(self, metapaths: Mapping[str, Sequence[EType]], keep_orig_edges: bool = True):
        self.metapaths, self.keep_orig_edges = metapaths, keep_orig_edges

    def __call__(self, g: DGLGraph) -> DGLGraph:
        """A graph with these types, and those of `g` with `keep_orig_edges`."""
        ends: dict[EType, Any] = {}
        for name, path in self.metapaths.items():
            ends[path[0][0], name, path[-1][-1]] = reached.metapath_reachable_graph(g, path).edges()
        if self.keep_orig_edges:
            ends |= _ends(g)
        return with_edges(g, ends, self.keep_orig_edges)


class Compose(BaseTransform):
    """Transforms one after the other."""

    def __init__(self, transforms: Iterable[Callable[[DGLGraph], DGLGraph]]):
        self.transforms = transforms

    def __call__(self, g: DGLGraph) -> DGLGraph:
        """What the last makes."""
        for transform in self.transforms:
            g = transform(g)
        return g

    def __repr__(self) -> str:
        return "Compose([\n" + ",\n".join(f"  {t}" for t in self.transforms) + "\n])"


class NodeShuffle(BaseTransform):
    """Gives features of nodes to others of their type."""

    def __call__(self, g: DGLGraph) -> DGLGraph:
        """A copy."""
        g = g.clone()
        for ntype, frame in g._source_frames.items():
            order = torch.randperm(g.num_nodes(ntype)).to(g.device)
            for key, value in frame.items():
                frame[key] = value[order]
        return g


class DropNode(BaseTransform):
    """Removes nodes, each with probability `p`."""

    def __init__(self, p: float = 0.5):
        self.p = _probability(p)

    def __call__(self, g: DGLGraph) -> DGLGraph:
        """A copy with fewer nodes."""
        g = g.clone()
        for ntype in g.ntypes if self.p else ():
            g.remove_nodes(g.nodes(ntype)[_drawn(self.p, g.num_nodes(ntype), g.device)], ntype)
        return g


class DropEdge(BaseTransform):
    """Removes edges, each with probability `p`."""

    def __init__(self, p: float = 0.5):
        self.p = _probability(p)

    def __call__(self, g: DGLGraph) -> DGLGraph:
        """A copy with fewer edges."""
        g = g.clone()
        for etype in g.canonical_etypes if self.p else ():
            chosen = _drawn(self.p, g.num_edges(etype), g.device)
            g.remove_edges(g.edges("eid", etype=etype)[chosen], etype)
        return g


class AddEdge(BaseTransform):
    """Adds random edges to each type: `ratio` times as many as there are."""

    def __init__(self, ratio: float = 0.2):
        if ratio < 0:
            raise ValueError(f"ratio must not be negative, got {ratio}")
        self.ratio = ratio

    def __call__(self, g: DGLGraph) -> DGLGraph:
        """A copy with more edges."""
        if self.ratio == 0:
            return g
        g = g.clone()
        for etype in g.canonical_etypes:
            count = int(g.num_edges(etype) * self.ratio)
            u, v = (
                torch.randint(0, g.num_nodes(t), (count,), dtype=g.idtype, device=g.device)
                for t in (etype[0], etype[2])
            )
            g.add_edges(u, v, etype=etype)
        return g


class ToLevi(BaseTransform):
    """A graph of types `node` and `edge`, with an edge from each to what it leads to."""

    def __call__(self, g: DGLGraph) -> DGLGraph:
        """The graph, with features of nodes and edges as those of the types."""
        (src, dst), ids = g.edges(), g.edges("eid")
        ends = {("node", "n2e", "edge"): (src, ids), ("edge", "e2n", "node"): (ids, dst)}
        counts = {"node": g.num_nodes(), "edge": g.num_edges()}
        made = heterograph(ends, counts, g.idtype, g.device)
        made.nodes["node"].data.update(g.ndata)
        made.nodes["edge"].data.update(g.edata)
        return made
