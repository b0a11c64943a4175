"""Relations as users write them without a layer of PyG: compiled whole and once for all graphs, and
equal to torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import RGCNConv
from torch_geometric.utils import scatter, softmax

from .equality import Edges
from .layer_checks import RELATIONS, WIDTH, Layer, check, numbers, parameters, typed

OUT = 5


class Weights(nn.Module):
    """What the functions below need, and one of them as `forward`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(torch.randn(RELATIONS, WIDTH, OUT))
        self.bias = nn.Parameter(torch.randn(RELATIONS, OUT))
        self.relation = nn.Parameter(torch.randn(RELATIONS, WIDTH))
        self.share = nn.Parameter(torch.randn(RELATIONS, 3))
        self.bases = nn.Parameter(torch.randn(3, WIDTH, OUT))
        self.pair = nn.Parameter(torch.randn(RELATIONS, RELATIONS, OUT))
        self.lin = nn.Linear(WIDTH, OUT)
        self.all = nn.Linear(WIDTH, RELATIONS * OUT)

    def forward(self, *args: Tensor) -> Any:
        return self.function(self, *args)


def total(messages: Tensor, dst: Tensor, x: Tensor) -> Tensor:
    return x.new_zeros(x.size(0), messages.size(-1)).index_add(0, dst, messages)


# ---------------------------------------------------------------- loops


def ends_of_a_mask(p: Weights, x: Tensor, e: Tensor, t: Tensor) -> Tensor:
    out = p.lin(x)
    for r in range(RELATIONS):
        of_r = t == r
        out = out + total(x[e[0, of_r]] @ p.weight[r], e[1, of_r], x)
    return out


def scattered_in_place(p: Weights, x: Tensor, e: Tensor, t: Tensor) -> Tensor:
    out = torch.zeros(x.size(0), OUT, dtype=x.dtype)
    for r in range(RELATIONS):
        of_r = (t == r).nonzero(as_tuple=True)[0]
        index = e[1, of_r].unsqueeze(-1).expand(-1, OUT)
        out.scatter_add_(0, index, (x @ p.weight[r])[e[0, of_r]])
    return out


def put_in_place(p: Weights, x: Tensor, e: Tensor, t: Tensor) -> Tensor:
    out = torch.zeros(x.size(0), OUT, dtype=x.dtype)
    for r in range(RELATIONS):
        of_r = t == r
        out.index_put_((e[1, of_r],), x[e[0, of_r]] @ p.weight[r], accumulate=True)
    return out


def weighed_by_attention(p: Weights, x: Tensor, e: Tensor, t: Tensor) -> Tensor:
    """The relations of a node, each with its share (HAN)."""
    by_relation = torch.stack(
        [total(x[e[0, t == r]] @ p.weight[r], e[1, t == r], x) for r in range(RELATIONS)], 1
    )
    share = (by_relation.tanh() @ p.bias[0]).mean(0).softmax(0)
    return (by_relation * share.view(1, -1, 1)).sum(1)


def written_by_type(p: Weights, x: Tensor, e: Tensor, t: Tensor) -> Tensor:
    """A layer for each relation, with its own attention; messages of another type stay as they
    are."""
    messages, share = p.lin(x)[e[0]], torch.zeros(e.size(1), dtype=x.dtype)
    for r in range(RELATIONS - 1):
        of_r = t == r
        messages[of_r] = (x[e[0][of_r]] @ p.weight[r] + p.bias[r]).relu()
        score = (x[e[0][of_r]] * p.relation[r]).sum(-1)
        share[of_r] = softmax(score, e[1][of_r], num_nodes=x.size(0))
    return total(messages * (share.unsqueeze(-1) + 0.5), e[1], x)


def nodes_by_type(
    p: Weights, x: Tensor, e: Tensor, t: Tensor, node_type: Tensor
) -> tuple[Tensor, Tensor]:
    y = x.new_empty(x.size(0), OUT)
    for r in range(RELATIONS):
        of_r = (node_type == r).nonzero().view(-1)
        y[of_r] = p.lin(x[of_r]) + x[of_r] @ p.weight[r]
    return y, total(y[e[0]] * p.bias[t], e[1], x)


# ---------------------------------------------------------------- tables of all relations


def table_by_node(p: Weights, x: Tensor, e: Tensor, t: Tensor) -> Tensor:
    table = torch.einsum("ni,rio->nro", x, p.weight)
    return total(table[e[0], t], e[1], x)


def table_by_relation(p: Weights, x: Tensor, e: Tensor, t: Tensor) -> Tensor:
    return total((x @ p.weight)[t, e[0]], e[1], x)


def table_with_bias(p: Weights, x: Tensor, e: Tensor, t: Tensor) -> Tensor:
    table = torch.relu(torch.einsum("ni,rio->rno", x, p.weight) + p.bias.unsqueeze(1))
    return total(table[t, e[0]] * table[t, e[1]], e[1], x)


def table_of_one_layer(p: Weights, x: Tensor, e: Tensor, t: Tensor) -> Tensor:
    table = p.all(x).tanh().view(-1, RELATIONS, OUT)
    return total(table[e[0], t], e[1], x)


def table_of_one_layer_behind(p: Weights, x: Tensor, e: Tensor, t: Tensor) -> Tensor:
    table = (p.all(x) * x[:, :1]).view(-1, OUT, RELATIONS)
    return total(table[e[0], :, t], e[1], x)


def table_of_several_layers(p: Weights, x: Tensor, e: Tensor, t: Tensor) -> Tensor:
    table = torch.stack([(x @ p.weight[r] + p.bias[r]).tanh() for r in range(RELATIONS)])
    return total(table[t, e[0]], e[1], x)


def parts_of_tables(p: Weights, x: Tensor, e: Tensor, t: Tensor) -> Tensor:
    table = torch.einsum("ni,rio->nro", x, p.weight)
    both = torch.cat([table, table.mean(-1, keepdim=True) * p.bias], -1)
    messages = torch.cat([both[e[0], t, 1:3], table.square().sum(-1)[e[1], t].unsqueeze(-1)], -1)
    return total(messages, e[1], x)


def table_of_pairs(p: Weights, x: Tensor, e: Tensor, t: Tensor) -> Tensor:
    kind = torch.arange(x.size(0)) % RELATIONS
    return total(p.lin(x)[e[0]] * p.pair[t, kind[e[0]]], e[1], x)


def table_of_bases(p: Weights, x: Tensor, e: Tensor, t: Tensor) -> Tensor:
    """Rows for pairs of numbers, of tables that are products."""
    kind = torch.arange(x.size(0)) % WIDTH
    table = (p.share @ p.bases.view(3, -1)).view(RELATIONS, WIDTH, OUT)
    score = (p.relation @ p.lin.weight.t()).sigmoid() * p.bias
    return total(table[t, kind[e[0]]] * score[t, t].unsqueeze(-1), e[1], x)


def modulated(p: Weights, x: Tensor, e: Tensor, t: Tensor) -> Tensor:
    """What a node makes of its messages depends on the relation (GNN-FiLM)."""
    gate = torch.einsum("ni,rio->nro", x, p.weight).sigmoid()
    return total(p.lin(x)[e[0]] * gate[e[1], t] + p.bias[t], e[1], x)


# ---------------------------------------------------------------- edges in both directions


def inverse_relations(p: Weights, x: Tensor, e: Tensor, t: Tensor) -> Tensor:
    both, kind = torch.cat([e, e.flip(0)], 1), torch.cat([t, (t + 1) % RELATIONS])
    return total(torch.einsum("ei,eio->eo", x[both[0]], p.weight[kind]), both[1], x)


class InverseRelations(nn.Module):
    """As many relations again for the edges in reverse, in a layer of PyG, and links scored."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = RGCNConv(WIDTH, OUT, 2 * RELATIONS)
        self.relation = nn.Parameter(torch.randn(RELATIONS, OUT, OUT))

    def forward(self, x: Tensor, e: Tensor, t: Tensor) -> Tensor:
        h = self.conv(x, torch.cat([e, e.flip(0)], 1), torch.cat([t, t + RELATIONS]))
        h = h.tanh()
        score = torch.einsum("ei,eij,ej->e", h[e[0]], self.relation[t], h[e[1]])
        # a form of h of any size has no relative accuracy where it cancels: with one node, say
        return score + 9 * (h[e[0]] * h[e[1]]).sum(-1)


# ---------------------------------------------------------------- weights and scores of edges


def softmax_by_hand(p: Weights, x: Tensor, e: Tensor, t: Tensor) -> Tensor:
    score = F.leaky_relu((x[e[0]] * p.relation[t] * x[e[1]]).sum(-1))
    least = torch.full((x.size(0),), -math.inf, dtype=x.dtype)
    top = least.scatter_reduce(0, e[1], score, "amax", include_self=False)
    share = (score - top[e[1]]).exp()
    whole = torch.zeros_like(least).scatter_add(0, e[1], share)
    return total(p.lin(x)[e[0]] * (share / whole[e[1]]).unsqueeze(-1), e[1], x)


def softmax_within_relations(p: Weights, x: Tensor, e: Tensor, t: Tensor) -> Tensor:
    score = (x[e[0]] * p.relation[t] * x[e[1]]).sum(-1)
    share = softmax(score, e[1] * RELATIONS + t, num_nodes=RELATIONS * x.size(0))
    return total(p.lin(x)[e[0]] * share.unsqueeze(-1), e[1], x)


def mean_by_counts(p: Weights, x: Tensor, e: Tensor, t: Tensor) -> Tensor:
    degree = torch.bincount(e[1], minlength=x.size(0)).clamp(min=1).to(x.dtype)
    messages = torch.bmm(x[e[0]].unsqueeze(1), p.weight[t]).squeeze(1)
    return total(messages, e[1], x) / degree.unsqueeze(-1)


def mean_of_one_hot(p: Weights, x: Tensor, e: Tensor, t: Tensor) -> Tensor:
    """DGL's norm of an edge, 1 / the edges of its type that end where it ends."""
    of_type = scatter(F.one_hot(t, RELATIONS).to(x.dtype), e[1], 0, dim_size=x.size(0))
    norm = 1 / torch.gather(of_type[e[1]], 1, t.view(-1, 1))
    return total(torch.einsum("ei,eio->eo", x[e[0]], p.weight[t]) * norm, e[1], x)


def types_of_both_ends(
    p: Weights, x: Tensor, e: Tensor, t: Tensor, node_type: Tensor
) -> tuple[Tensor, Tensor]:
    """One list of types, read at the source and at the destination."""
    of_edges = p.bias[node_type[e[0]]] + 2 * p.pair[0][node_type[e[1]]]
    return of_edges, total(p.lin(x)[e[0]] * of_edges, e[1], x)


def summed_at_the_source(p: Weights, x: Tensor, e: Tensor, t: Tensor) -> Tensor:
    """Products with the rows of the end that they are summed at: these leave the sum."""
    return total(torch.einsum("ei,eio->eo", x[e[0]], p.weight[t]), e[0], x)


def weighed_at_the_source(p: Weights, x: Tensor, e: Tensor, t: Tensor) -> Tensor:
    return total(torch.einsum("ei,eio->eo", x[e[0]], x[e[1], :, None] * p.weight[0]), e[0], x)


def links_rotated(p: Weights, x: Tensor, e: Tensor, t: Tensor) -> Tensor:
    (a, b), turn = x.chunk(2, -1), p.relation[t][:, : WIDTH // 2]
    real = a[e[0]] * turn.cos() - b[e[0]] * turn.sin() - a[e[1]]
    imaginary = a[e[0]] * turn.sin() + b[e[0]] * turn.cos() - b[e[1]]
    return torch.stack([real, imaginary]).norm(dim=0).sum(-1)


def links_translated(p: Weights, x: Tensor, e: Tensor, t: Tensor) -> Tensor:
    return -(x[e[0]] + p.relation[t] - x[e[1]]).norm(p=1, dim=-1)


QUICK = (
    ends_of_a_mask,
    put_in_place,
    written_by_type,
    table_by_node,
    table_of_one_layer_behind,
    table_of_several_layers,
    summed_at_the_source,
    weighed_at_the_source,
    inverse_relations,
    softmax_by_hand,
    mean_by_counts,
)
LONG = (
    scattered_in_place,
    weighed_by_attention,
    table_with_bias,
    table_of_one_layer,
    table_of_pairs,
    table_of_bases,
    parts_of_tables,
    modulated,
    softmax_within_relations,
    mean_of_one_hot,
    links_rotated,
    links_translated,
)


def not_alone(g: Edges, seed: int) -> tuple[Any, ...]:
    """Two nodes or more: where a matrix is multiplied by a stack of others torch asks whether it
    has one row, so one node is traced anew."""
    return typed(Edges(g.sources + 1, g.targets + 1, g.index), seed)


def with_node_types(g: Edges, seed: int) -> tuple[Any, ...]:
    return *typed(g, seed), numbers(seed, RELATIONS, g.sources)


LAYERS = [
    Layer("types_of_both_ends", lambda: Weights(types_of_both_ends), with_node_types),
    Layer("nodes_by_type", lambda: Weights(nodes_by_type), with_node_types),
    *(Layer(f.__name__, lambda f=f: Weights(f), typed, f in QUICK) for f in (*QUICK, *LONG)),
    Layer("table_by_relation", lambda: Weights(table_by_relation), not_alone, False),
    Layer("inverse_relations_of_pyg", InverseRelations, typed),
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("layer", parameters(LAYERS))
def test_equal_to_torch(layer: Layer) -> None:
    check(layer)
