"""RGCN, RGAT and HGT as loops over edges and nodes, trained beside PyG's layers: equal losses.

A width is the same wherever it has the same name; `etype` and `ntype` are the types of edges and
nodes.
"""

# ruff: noqa: F722, F821 (names of widths, and functions of the language)

import copy
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import HGTConv, RGATConv, RGCNConv

import gnnc
from gnnc import Graph, Nodes, Weights

# fmt: off


@gnnc.program
def rgcn(g: Graph, x: Nodes["in"], W: Weights["etype", "in", "out"], root: Weights["in", "out"],
         bias: Weights["out"]):
    for n in g.nodes():
        n["h"] = n.x @ root + bias
        for e in n.incoming_edges():
            n["h"] += e.src.x @ W[e.etype] / n.in_degree[e.etype]
    return n["h"]


@gnnc.program
def rgat(g: Graph, x: Nodes["in"], W: Weights["etype", "in", "heads", "out"],
         q: Weights["heads * out", "heads"], k: Weights["heads * out", "heads"],
         bias: Weights["heads * out"]):
    for e in g.edges():
        e["z"] = e.src.x @ W[e.etype]
        score = flatten(e.dst.x @ W[e.etype]) @ q + flatten(e["z"]) @ k
        e["alpha"] = edge_softmax(leaky_relu(score, 0.2))
    for n in g.nodes():
        n["h"] = 0.0
        for e in n.incoming_edges():
            n["h"] += e["alpha"] * e["z"]
        n["out"] = flatten(n["h"]) + bias
    return n["out"]


@gnnc.program
def hgt(g: Graph, x: Nodes["out"], K: Weights["ntype", "out", "heads", "d"],
        Q: Weights["ntype", "out", "heads", "d"], V: Weights["ntype", "out", "heads", "d"],
        bk: Weights["ntype", "heads", "d"], bq: Weights["ntype", "heads", "d"],
        bv: Weights["ntype", "heads", "d"], A: Weights["etype", "heads", "d", "d"],
        M: Weights["etype", "heads", "d", "d"], p: Weights["etype", "heads"],
        U: Weights["ntype", "heads * d", "out"], bu: Weights["ntype", "out"],
        skip: Weights["ntype"]):
    for n in g.nodes():
        n["k"] = n.x @ K[n.ntype] + bk[n.ntype]
        n["q"] = n.x @ Q[n.ntype] + bq[n.ntype]
        n["v"] = n.x @ V[n.ntype] + bv[n.ntype]
    for e in g.edges():
        score = dot(e.src["k"] @ A[e.etype], e.dst["q"]) * p[e.etype]
        e["alpha"] = edge_softmax(score / sqrt(width("d")))
    for n in g.nodes():
        n["h"] = 0.0
        for e in n.incoming_edges():
            n["h"] += e["alpha"] * (e.src["v"] @ M[e.etype])
        keep = sigmoid(skip[n.ntype])
        n["out"] = keep * (flatten(gelu(n["h"])) @ U[n.ntype] + bu[n.ntype]) + (1 - keep) * n.x
    return n["out"]


# fmt: on

TYPES, NODES, EDGES, WIDTH, HEADS = 4, 300, 2000, 16, 2
KINDS = ["author", "paper"]
RELATIONS = [(a, f"{a}-{b}", b) for a in KINDS for b in KINDS]


def random_graph() -> Graph:
    """Authors, then papers; the type of an edge follows from those of its ends."""
    edge_index = torch.randint(0, NODES, (2, EDGES))
    node_type = (torch.arange(NODES) >= NODES // 2).long()
    edge_type = node_type[edge_index[0]] * 2 + node_type[edge_index[1]]
    return Graph(
        edge_index, NODES, edge_type, node_type, num_edge_types=TYPES, num_node_types=len(KINDS)
    )


def hgt_weights(conv: HGTConv) -> list[Tensor]:
    """The parameters of PyG's layer as the program has them."""
    size, kinds = WIDTH // HEADS, [conv.kqv_lin.lins[k] for k in KINDS]
    weight = torch.stack([lin.weight for lin in kinds]).view(2, 3, HEADS, size, WIDTH)
    bias = torch.stack([lin.bias for lin in kinds]).view(2, 3, HEADS, size)
    rel = (conv.k_rel.weight, conv.v_rel.weight)
    last = [conv.out_lin.lins[k] for k in KINDS]
    return [
        *weight.permute(1, 0, 4, 2, 3),
        *bias.transpose(0, 1),
        *(w.view(HEADS, TYPES, size, size).transpose(0, 1) for w in rel),
        torch.cat([conv.p_rel["__".join(r)] for r in RELATIONS]),
        torch.stack([lin.weight.T for lin in last]),
        torch.stack([lin.bias for lin in last]),
        torch.cat([conv.skip[k] for k in KINDS]),
    ]


def hgt_in_pyg(conv: HGTConv, g: Graph, x: Tensor) -> Tensor:
    """PyG's layer, which takes the nodes and edges of each type apart."""
    half = NODES // 2
    first = {r: torch.tensor([KINDS.index(r[0]), KINDS.index(r[2])]) * half for r in RELATIONS}
    edges = {
        r: g.edge_index[:, g.edge_type == i] - first[r][:, None] for i, r in enumerate(RELATIONS)
    }
    out = conv({k: x[i * half : (i + 1) * half] for i, k in enumerate(KINDS)}, edges)
    return torch.cat([out[k] for k in KINDS])


def losses(conv: nn.Module, forward: Callable[[nn.Module], Tensor], y: Tensor) -> list[float]:
    """Train a copy of a layer."""
    conv = copy.deepcopy(conv)
    optimizer = torch.optim.Adam(conv.parameters(), lr=0.01)
    out = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = F.cross_entropy(forward(conv), y)
        loss.backward()
        optimizer.step()
        out.append(loss.item())
    return out


def main() -> None:
    torch.manual_seed(0)
    g, x, y = random_graph(), torch.randn(NODES, WIDTH), torch.randint(0, WIDTH, (NODES,))
    first = RGCNConv(WIDTH, WIDTH, TYPES)
    second = RGATConv(WIDTH, WIDTH // HEADS, TYPES, heads=HEADS)
    third = HGTConv(WIDTH, WIDTH, (KINDS, RELATIONS), HEADS)
    third(dict.fromkeys(KINDS, x), {r: g.edge_index for r in RELATIONS})  # makes its weights
    pairs = {
        "RGCN": (
            first,
            lambda c: c(x, g.edge_index, g.edge_type),
            lambda c: rgcn(g, x, c.weight, c.root, c.bias),
        ),
        "RGAT": (
            second,
            lambda c: c(x, g.edge_index, g.edge_type),
            lambda c: rgat(g, x, c.weight.view(TYPES, WIDTH, HEADS, -1), c.q, c.k, c.bias),
        ),
        "HGT": (
            third,
            lambda c: hgt_in_pyg(c, g, x),
            lambda c: hgt(g, x, *hgt_weights(c)),
        ),
    }
    for name, (conv, in_pyg, as_loops) in pairs.items():
        theirs, ours = losses(conv, in_pyg, y), losses(conv, as_loops, y)
        apart = max(abs(a - b) for a, b in zip(theirs, ours, strict=True))
        print(f"{name:4}  loss {ours[0]:.4f} to {ours[-1]:.4f}, PyG's at most {apart:.1e} apart")


if __name__ == "__main__":
    main()
