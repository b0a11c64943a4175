"""Programs of the loop language for tests, and what they compute in torch."""

# ruff: noqa: F722, F821 (names of widths, and functions of the language)

import torch
from torch import Tensor

import gnnc
from gnnc import DstNodes, Edges, Graph, Nodes, SrcNodes, Weights

SCALE = 3


@gnnc.program
def listing(
    g: Graph,
    feature: Nodes["in"],
    W: Weights["etype", "in", "out"],
    a_src: Weights["etype", "out"],
    a_dst: Weights["etype", "out"],
):
    """As Hector's Listing 1 has it, the softmax written out."""
    for e in g.edges():
        e["zi"] = e.src.feature @ W[e.etype]
        e["zj"] = e.dst.feature @ W[e.etype]
        e["att"] = leaky_relu(dot(a_src[e.etype], e["zi"]) + dot(a_dst[e.etype], e["zj"]), 0.2)
    for n in g.dst_nodes():
        n["total"] = 0.0
        for e in n.incoming_edges():
            n["total"] += exp(e["att"])
    for e in g.edges():
        e["alpha"] = exp(e["att"]) / e.dst["total"]
    for n in g.dst_nodes():
        n["out"] = 0.0
        for e in n.incoming_edges():
            n["out"] += e["alpha"] * e["zi"]
    return n["out"], e["alpha"]


def listing_in_torch(
    g: Graph, feature: Tensor, W: Tensor, a_src: Tensor, a_dst: Tensor
) -> tuple[Tensor, Tensor]:
    src, dst = g.edge_index
    typed = W[g.edge_type]
    zi = torch.einsum("ei,eio->eo", feature[src], typed)
    zj = torch.einsum("ei,eio->eo", feature[dst], typed)
    att = (a_src[g.edge_type] * zi).sum(1) + (a_dst[g.edge_type] * zj).sum(1)
    e = torch.nn.functional.leaky_relu(att, 0.2).exp()
    total = e.new_zeros(g.num_dst).index_add(0, dst, e)
    alpha = e / total[dst]
    return zi.new_zeros(g.num_dst, zi.shape[1]).index_add(0, dst, alpha[:, None] * zi), alpha


@gnnc.program
def folds(g: Graph, x: SrcNodes["d"], y: DstNodes["d"], w: Edges, s: Edges[2]):
    """Two sets of nodes, all folds of edges and rows, both ends."""
    for n in g.dst_nodes():
        n["mean"] = mean(e.src.x * e.w for e in n.incoming_edges())
        n["max"] = max(abs(e.src.x - n.y) for e in n.incoming_edges())
        n["min"] = min(e.w for e in n.incoming_edges())
        n["all"] = concat(n["mean"], n["max"]) + n["min"] / maximum(n.in_degree, 1)
    for n in g.src_nodes():
        n["out"] = sum(e.s for e in n.outgoing_edges())
        n["out"] += n.out_degree * SCALE
    for e in g.edges():
        far = sum(e.src.x) > mean(e.dst.y) and not e.w < 0.0
        e["row"] = (max(e.src.x) if far else min(e.dst.y)) ** 2 - -e.w / width("d")
        e["row"] *= where(e.w == 0.0, 1.0, 2.0)
    return n["all"], n["out"], e["row"]


def folds_in_torch(g: Graph, x: Tensor, y: Tensor, w: Tensor, s: Tensor) -> tuple[Tensor, ...]:
    src, dst = g.edge_index

    def fold(kind: str, v: Tensor) -> Tensor:
        at = dst.view(-1, *(1 for _ in v.shape[1:])).expand_as(v)
        zeros = v.new_zeros(g.num_dst, *v.shape[1:])
        return zeros.scatter_reduce(0, at, v, kind, include_self=False)

    mean = fold("mean", x[src] * w[:, None])
    greatest = fold("amax", (x[src] - y[dst]).abs())
    degree = torch.bincount(dst, minlength=g.num_dst).clamp(min=1)
    every = torch.cat([mean, greatest], 1) + (fold("amin", w) / degree)[:, None]
    out = s.new_zeros(g.num_src, 2).index_add(0, src, s)
    out = out + torch.bincount(src, minlength=g.num_src)[:, None] * SCALE
    far = (x[src].sum(1) > y[dst].mean(1)) & ~(w < 0)
    row = torch.where(far, x[src].amax(1), y[dst].amin(1)) ** 2 + w / x.shape[1]
    return every, out, row * torch.where(w == 0, 1.0, 2.0)


@gnnc.program
def scaled(g: Graph, x: Nodes["d"], W: Weights["d", "heads", "k"], a: Weights["heads", "k"]):
    """Heads, functions of one number, and a sum that starts with a value."""
    for n in g.nodes():
        n["h"] = tanh(n.x) @ W
        n["s"] = softplus(dot(n["h"], a)) + gelu(elu(sum(n["h"]), 0.5)) - sqrt(width("heads * k"))
    for e in g.edges():
        p = edge_softmax(e.src["s"] * e.dst["s"])
        e["m"] = p * e.src["h"]
    for n in g.nodes():
        n["r"] = n["h"]
        negative = sum(n.x) < 0.0
        for e in n.incoming_edges():
            n["r"] += e["m"]
            n["r"] += where(negative, 2.0, 3.0) * a
    return n["r"]


def scaled_in_torch(g: Graph, x: Tensor, W: Tensor, a: Tensor) -> Tensor:
    F = torch.nn.functional
    src, dst = g.edge_index
    h = torch.einsum("nd,dhk->nhk", x.tanh(), W)
    s = F.softplus((h * a).sum(2)) + F.gelu(F.elu(h.sum(2), 0.5)) - (a.numel() ** 0.5)
    score = s[src] * s[dst]
    p = score.exp()
    p = p / p.new_zeros(g.num_dst, p.shape[1]).index_add(0, dst, p)[dst]
    factor = torch.where(x.sum(1) < 0, 2.0, 3.0)[dst]
    return h.index_add(0, dst, p[..., None] * h[src] + factor[:, None, None] * a)


@gnnc.program
def typed(
    g: Graph,
    x: SrcNodes["d"],
    W: Weights["ntype", "d", "d"],
    U: Weights["etype", "d"],
    a: Weights["d", "k"],
    b: Weights["k", "d"],
):
    """Types of both ends, degrees by type, products of weights, and values equal everywhere."""
    both = a @ b
    both *= -2.0
    for e in g.edges():
        e["h"] = e.src.x @ W[e.src.ntype] @ both / e.src.out_degree[e.etype]
        e["h"] = e["h"] * U[e.etype]
        e["degree"] = e.src.out_degree[e.etype]
    for n in g.dst_nodes():
        n["sum"] = sum(e["h"] @ W[n.ntype] for e in n.incoming_edges())
        n["total"] = dot(both, both)
        n["all"] = concat(n["sum"], n["total"])
        n["one"] = 1.0 + sum(n["total"])
    return n["sum"], n["one"], n["all"], e["degree"]


def typed_in_torch(
    g: Graph, x: Tensor, W: Tensor, U: Tensor, a: Tensor, b: Tensor
) -> tuple[Tensor, ...]:
    src, dst = g.edge_index
    both = a @ b * -2.0
    assert g.src_type is not None
    assert g.dst_type is not None
    key = src * g.num_edge_types + g.edge_type
    degree = torch.bincount(key)[key]
    h = torch.einsum("ed,edk->ek", x[src], W[g.src_type[src]]) @ both / degree[:, None]
    h = torch.einsum("ed,edk->ek", h * U[g.edge_type], W[g.dst_type[dst]])
    total = (both * both).sum(1)
    out = h.new_zeros(g.num_dst, h.shape[1]).index_add(0, dst, h)
    one = (1.0 + total.sum()).expand(g.num_dst)
    return out, one, torch.cat([out, total.expand_as(out)], 1), degree.to(x.dtype)


@gnnc.program
def passed_on(g: Graph, x: Nodes["d"], *, w: Edges):
    """Arguments as results, one value under two names, numbers that follow from the graph alone."""
    for n in g.nodes():
        n["same"] = n.x
        n["twice"] = n.x * 2
        n["again"] = n["twice"]
        n["into"] = n.in_degree
        n["all"] = 2.0
    for e in g.edges():
        e["w2"] = e.w
    return n["x"], n["same"], n["twice"], n["again"], n["into"], n["all"], e["w2"]


def passed_on_in_torch(g: Graph, x: Tensor, *, w: Tensor) -> tuple[Tensor, ...]:
    degree = torch.bincount(g.edge_index[1], minlength=g.num_dst).to(x.dtype)
    return x * 1, x * 1, x * 2, x * 2, degree, torch.full_like(degree, 2.0), w * 1


@gnnc.program
def degrees(g: Graph):
    """A program without tensors."""
    for n in g.nodes():
        n["y"] = n.in_degree + n.out_degree
    return n["y"]


@gnnc.program
def normed(g: Graph, x: Nodes["d"], y: Nodes, W: Weights["etype", "d"]):
    for e in g.edges():
        e["m"] = (e.src.x - e.dst.y) * W[e.etype] / e.dst.in_degree[e.etype] + e.src.y
    for n in g.nodes():
        n["out"] = n.x + sum(e["m"] for e in n.incoming_edges())
    return n["out"]
