"""Models for the tests of capture and import: PyG layers, norms, heterogeneous models, code of
users. An entry is (make, arguments): `make()` builds a module or gives a function, and
`arguments(nodes, edges, seed)` its inputs."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree
import torch_geometric
from torch import Tensor, nn
from torch_geometric import EdgeIndex
from torch_geometric import nn as G
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import add_self_loops, degree, softmax, to_torch_csr_tensor

from . import user_code as user

Make = Callable[[], Any]
Arguments = Callable[..., tuple[Any, ...]]

IN, OUT, HEADS, RELATIONS = 8, 8, 2, 3


def tensors(tree: Any) -> list[Tensor]:
    """The tensors in a nested structure, in order."""
    return [t for t in pytree.tree_leaves(tree) if isinstance(t, Tensor)]


# ---------------------------------------------------------------- arguments


def draw(nodes: int, edges: int, seed: int = 0) -> dict[str, Tensor]:
    """Random features and a random multigraph; any size may be 0 but that of the nodes."""
    g = torch.Generator().manual_seed(seed)
    kinds = torch.randint(0, RELATIONS, (edges,), generator=g)
    kinds[: min(RELATIONS, edges)] = torch.arange(min(RELATIONS, edges))
    return {
        "x": torch.randn(nodes, IN, generator=g),
        "edge_index": torch.randint(0, nodes, (2, edges), generator=g),
        "edge_type": kinds,
        "edge_weight": torch.rand(edges, generator=g),
        "edge_attr": torch.randn(edges, 4, generator=g),
        "matrix": torch.randn(IN, OUT, generator=g),
        "matrices": torch.randn(RELATIONS, IN, OUT, generator=g),
    }


def taking(*names: str) -> Arguments:
    def arguments(nodes: int, edges: int, seed: int = 0) -> tuple[Tensor, ...]:
        d = draw(nodes, edges, seed)
        return tuple(d[n] for n in names)

    return arguments


plain = taking("x", "edge_index")
weighted = taking("x", "edge_index", "edge_weight")
attributed = taking("x", "edge_index", "edge_attr")
typed = taking("x", "edge_index", "edge_type")
with_matrix = taking("x", "edge_index", "matrix")
with_matrices = taking("x", "edge_index", "edge_type", "matrices")


def sorted_edges(nodes: int, edges: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    x, e = plain(nodes, edges, seed)
    return x, e[:, torch.sort(e[1], stable=True)[1]]


def edge_index_class(nodes: int, edges: int, seed: int = 0) -> tuple[Tensor, EdgeIndex]:
    x, e = sorted_edges(nodes, edges, seed)
    return x, EdgeIndex(e, sparse_size=(nodes, nodes), sort_order="col")


def filled_edge_index(nodes: int, edges: int, seed: int = 0) -> tuple[Tensor, EdgeIndex]:
    x, e = edge_index_class(nodes, edges, seed)
    e.fill_cache_()
    return x, e


def csr(nodes: int, edges: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    x, e = plain(nodes, edges, seed)
    e = torch_geometric.utils.coalesce(e)
    return x, to_torch_csr_tensor(e.flip([0]), size=(nodes, nodes))


def bipartite(nodes: int, edges: int, seed: int = 0) -> tuple[Any, Tensor]:
    g = torch.Generator().manual_seed(seed)
    half = nodes // 2
    xs = (torch.randn(nodes, IN, generator=g), torch.randn(half, IN, generator=g))
    ends = [torch.randint(0, n, (edges,), generator=g) for n in (nodes, half)]
    return xs, torch.stack(ends)


META = (["p", "a"], [("p", "cites", "p"), ("a", "writes", "p"), ("p", "rev", "a")])


def heterogeneous(nodes: int, edges: int, seed: int = 0) -> tuple[dict[str, Tensor], Any]:
    g = torch.Generator().manual_seed(seed)
    count = {"p": nodes, "a": nodes // 2}
    xs = {k: torch.randn(n, IN, generator=g) for k, n in count.items()}
    es = {
        t: torch.stack(
            [torch.randint(0, count[k], (edges // 3,), generator=g) for k in (t[0], t[2])]
        )
        for t in META[1]
    }
    return xs, es


def batched(nodes: int, edges: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    d = draw(nodes, edges, seed)
    g = torch.Generator().manual_seed(seed)
    batch = torch.sort(torch.randint(0, 4, (nodes,), generator=g))[0]
    batch[-1] = 3
    return d["x"], batch, d["matrix"]


# ---------------------------------------------------------------- modules


class GatedEdges(MessagePassing):
    """A gate, an edge network and degree normalisation, with self-loops added by hand."""

    def __init__(self) -> None:
        super().__init__(aggr="add")
        self.lin = nn.Linear(2 * IN, OUT)
        self.gate = nn.Linear(IN, 1)

    def forward(self, x, edge_index):
        edge_index, _ = add_self_loops(edge_index, num_nodes=x.size(0))
        row, col = edge_index
        scale = degree(col, x.size(0), dtype=x.dtype).pow(-0.5)
        scale[scale == float("inf")] = 0
        return self.propagate(edge_index, x=x, norm=scale[row] * scale[col])

    def message(self, x_i, x_j, norm):
        m = self.lin(torch.cat([x_i, x_j - x_i], dim=-1)).relu()
        return norm.view(-1, 1) * torch.sigmoid(self.gate(x_j)) * m


class DotAttention(MessagePassing):
    """Dot-product attention through PyG's softmax."""

    def __init__(self) -> None:
        super().__init__(aggr="add", node_dim=0)
        self.q, self.k, self.v = (nn.Linear(IN, OUT) for _ in range(3))

    def forward(self, x, edge_index):
        return self.propagate(edge_index, q=self.q(x), k=self.k(x), v=self.v(x)) + x

    def message(self, q_i, k_j, v_j, index, ptr, size_i):
        a = (q_i * k_j).sum(-1) / OUT**0.5
        return v_j * softmax(a, index, ptr, size_i).unsqueeze(-1)


NORMS = {
    "bn": lambda: nn.BatchNorm1d(16),
    "ln": lambda: nn.LayerNorm(16),
    "pygbn": lambda: G.BatchNorm(16),
    "pygln": lambda: G.LayerNorm(16),
    "graphnorm": lambda: G.GraphNorm(16),
    "pairnorm": lambda: G.PairNorm(),
}


class TwoGCN(nn.Module):
    """Two GCN layers with a norm and dropout between them."""

    def __init__(self, norm: str, dropout: float = 0.0) -> None:
        super().__init__()
        self.first, self.second = G.GCNConv(IN, 16), G.GCNConv(16, OUT)
        self.norm = NORMS[norm]()
        self.dropout = dropout

    def forward(self, x, edge_index):
        h = self.norm(self.first(x, edge_index)).relu()
        h = F.dropout(h, p=self.dropout, training=self.training)
        return F.log_softmax(self.second(h, edge_index), dim=-1)


class TwoRGCN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = G.RGCNConv(IN, 16, RELATIONS)
        self.second = G.RGCNConv(16, OUT, RELATIONS)

    def forward(self, x, edge_index, edge_type):
        h = F.relu(self.first(x, edge_index, edge_type))
        return self.second(h, edge_index, edge_type)


class SageNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = G.SAGEConv((-1, -1), 16), G.SAGEConv((-1, -1), OUT)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


class GatNet(SageNet):
    def __init__(self) -> None:
        super().__init__()
        self.first = G.GATConv((-1, -1), 16, add_self_loops=False)
        self.second = G.GATConv((-1, -1), OUT, add_self_loops=False)


def initialised(module: nn.Module) -> nn.Module:
    """A lazy heterogeneous module after its first call."""
    module(*heterogeneous(12, 30))
    return module


def hetero_conv(make: Make) -> nn.Module:
    return initialised(G.HeteroConv({t: make() for t in META[1]}, aggr="sum"))


def gat_between() -> nn.Module:
    return G.GATConv((-1, -1), OUT, add_self_loops=False)


def pna() -> nn.Module:
    degrees = torch.tensor([1, 2, 5, 2])
    return G.PNAConv(IN, OUT, ["mean", "min", "max", "std"], ["identity", "amplification"], degrees)


def function(f: Callable[..., Any]) -> Make:
    return lambda: f


ZOO: dict[str, tuple[Make, Arguments]] = {
    "GCNConv": (lambda: G.GCNConv(IN, OUT), plain),
    "GCNConv_ew": (lambda: G.GCNConv(IN, OUT), weighted),
    "GCNConv_nonorm": (lambda: G.GCNConv(IN, OUT, normalize=False), plain),
    "GCNConv_cached": (lambda: G.GCNConv(IN, OUT, cached=True), plain),
    "GCNConv_csr": (lambda: G.GCNConv(IN, OUT), csr),
    "GCNConv_EdgeIndex": (lambda: G.GCNConv(IN, OUT, normalize=False), edge_index_class),
    "SAGE_mean": (lambda: G.SAGEConv(IN, OUT), plain),
    "SAGE_mean_bip": (lambda: G.SAGEConv(IN, OUT), bipartite),
    "SAGE_max": (lambda: G.SAGEConv(IN, OUT, aggr="max"), plain),
    "SAGE_lstm": (lambda: G.SAGEConv(IN, OUT, aggr="lstm"), sorted_edges),
    "SAGE_EdgeIndex": (lambda: G.SAGEConv(IN, OUT), edge_index_class),
    "SAGE_EI_filled": (lambda: G.SAGEConv(IN, OUT), filled_edge_index),
    "SAGE_csr": (lambda: G.SAGEConv(IN, OUT), csr),
    "GAT": (lambda: G.GATConv(IN, OUT, heads=HEADS), plain),
    "GAT_edge": (
        lambda: G.GATConv(IN, OUT, heads=HEADS, edge_dim=4, add_self_loops=False),
        attributed,
    ),
    "GAT_edge_loops": (lambda: G.GATConv(IN, OUT, heads=HEADS, edge_dim=4), attributed),
    "GAT_EdgeIndex": (
        lambda: G.GATConv(IN, OUT, heads=HEADS, add_self_loops=False),
        edge_index_class,
    ),
    "GATv2": (lambda: G.GATv2Conv(IN, OUT, heads=HEADS), plain),
    "GIN": (
        lambda: G.GINConv(nn.Sequential(nn.Linear(IN, 16), nn.ReLU(), nn.Linear(16, OUT))),
        plain,
    ),
    "GraphConv": (lambda: G.GraphConv(IN, OUT), weighted),
    "ChebConv": (lambda: G.ChebConv(IN, OUT, K=3), plain),
    "APPNP": (lambda: G.APPNP(K=4, alpha=0.1), plain),
    "Transformer": (lambda: G.TransformerConv(IN, OUT, heads=HEADS, edge_dim=4), attributed),
    "PNA": (pna, plain),
    "EdgeConv": (lambda: G.EdgeConv(nn.Linear(2 * IN, OUT), aggr="max"), plain),
    "NNConv": (lambda: G.NNConv(IN, OUT, nn.Linear(4, IN * OUT)), attributed),
    "GatedGraph": (lambda: G.GatedGraphConv(OUT, 2), plain),
    "GENConv_softmax": (lambda: G.GENConv(IN, OUT, aggr="softmax"), plain),
    "RGCN": (lambda: G.RGCNConv(IN, OUT, RELATIONS), typed),
    "RGCN_bases": (lambda: G.RGCNConv(IN, OUT, RELATIONS, num_bases=2), typed),
    "RGCN_blocks": (lambda: G.RGCNConv(IN, OUT, RELATIONS, num_blocks=2), typed),
    "FastRGCN": (lambda: G.FastRGCNConv(IN, OUT, RELATIONS), typed),
    "RGAT": (lambda: G.RGATConv(IN, OUT, RELATIONS), typed),
    "RGAT_mult": (
        lambda: G.RGATConv(
            IN, OUT, RELATIONS, attention_mode="multiplicative-self-attention", heads=2, dim=2
        ),
        typed,
    ),
    "HGT": (lambda: G.HGTConv(IN, OUT, META, heads=HEADS), heterogeneous),
    "HAN": (lambda: G.HANConv(IN, OUT, META, heads=HEADS), heterogeneous),
    "HeteroConv_sage": (lambda: hetero_conv(lambda: G.SAGEConv((-1, -1), OUT)), heterogeneous),
    "HeteroConv_gat": (lambda: hetero_conv(gat_between), heterogeneous),
    "to_hetero_sage": (lambda: initialised(G.to_hetero(SageNet(), META)), heterogeneous),
    "to_hetero_gat": (lambda: initialised(G.to_hetero(GatNet(), META)), heterogeneous),
    "GCN2_bn": (lambda: TwoGCN("bn"), plain),
    "GCN2_ln": (lambda: TwoGCN("ln"), plain),
    "GCN2_pygbn": (lambda: TwoGCN("pygbn"), plain),
    "GCN2_pygln": (lambda: TwoGCN("pygln"), plain),
    "GCN2_graphnorm": (lambda: TwoGCN("graphnorm"), plain),
    "RGCN2": (TwoRGCN, typed),
    "UserMP": (GatedEdges, plain),
    "UserAttn": (DotAttention, plain),
    "fn_plain": (function(user.attention), with_matrix),
    "fn_nodimsize": (function(user.no_dim_size), with_matrix),
    "fn_index_add": (function(user.index_add), with_matrix),
    "fn_rel_loop": (function(user.relation_loop), with_matrices),
    "fn_rel_bmm": (function(user.relation_bmm), with_matrices),
    "PyG_GAT_model": (lambda: G.models.GAT(IN, 16, 2, OUT, heads=2), plain),
}

MORE: dict[str, tuple[Make, Arguments]] = {
    f.__name__: (function(f), arguments)
    for f, arguments in (
        (user.flipped, with_matrix),
        (user.restacked, with_matrix),
        (user.undirected, with_matrix),
        (user.masked_edges, with_matrix),
        (user.link_scores, with_matrix),
        (user.pooled, batched),
        (user.pooled_by_max, batched),
        (user.centred, with_matrix),
        (user.embedded, batched),
        (user.dense_attention, with_matrix),
        (user.sorted_by_end, with_matrix),
        (user.masked_nodes, with_matrix),
        (user.edge_features_only, attributed),
        (user.edits, with_matrix),
        (user.row_numbers, with_matrix),
        (user.top_rows, with_matrix),
        (user.edit_of_a_view, with_matrix),
        (user.two_sizes_meet, with_matrix),
        (user.rounded, with_matrix),
        (user.same_mask_twice, with_matrix),
        (user.whole_graph, with_matrix),
        (user.gram, with_matrix),
        (user.softmax_over_nodes, with_matrix),
        (user.joined, with_matrix),
        (user.taken_apart, with_matrix),
        (user.halves, with_matrix),
    )
}
MORE["GCN2_pairnorm"] = (lambda: TwoGCN("pairnorm"), plain)

EAGER = {
    "SAGE_lstm": "max_num_nodes",
    "dense_attention": "rows of two sets",
    "sorted_by_end": "argsort",
    "top_rows": "topk",
}
"""The models that run in torch, whole or in part, with words of the reason."""
