"""The leaf ops that capture leaves in the graph: `torch.ops.gnnc.*`.

A leaf names an intent (a segment reduction, GCN's normalisation) that PyG spells as several tensor
ops. Each is defined by a reference body in plain torch, which also serves eager execution: a
CompositeImplicitAutograd op stays one node in Dynamo's graph while fake tensors, autograd and vmap
see through it. Ops whose output size depends on data need a custom op with one fresh size symbol.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from ...importer.values.held import exception_named

_LIBRARY = torch.library.Library("gnnc", "DEF")


def leaf(schema: str) -> Callable[[Callable], Callable]:
    """Defines `torch.ops.gnnc.<name>` from its schema and its reference body."""

    def define(body: Callable) -> Callable:
        _LIBRARY.define(schema)
        _LIBRARY.impl(body.__name__, body, "CompositeImplicitAutograd")
        return body

    return define


def _along(index: Tensor, like: Tensor, dim: int) -> Tensor:
    """A 1-d index viewed along `dim` of `like`."""
    shape = (1,) * dim + (-1,) + (1,) * (like.dim() - dim - 1)
    return index.view(shape).expand_as(like)


@leaf("segment_reduce(Tensor src, Tensor index, int dim, SymInt dim_size, str reduce) -> Tensor")
def segment_reduce(src: Tensor, index: Tensor, dim: int, dim_size: int, reduce: str) -> Tensor:
    """PyG's `scatter`: reduces `src` along `dim` into `dim_size` groups given by `index`.

    An empty group gives 0 (1 for "mul"). The gradient of max and min treats torch's zero start as
    one more tie when the extremum is 0, as PyG's CPU path does.
    """
    dim = src.dim() + dim if dim < 0 else dim
    size = list(src.shape)
    size[dim] = dim_size
    where = _along(index, src, dim)
    if reduce in ("sum", "add"):
        return src.new_zeros(size).scatter_add_(dim, where, src)
    if reduce == "mean":
        count = src.new_zeros(dim_size).scatter_add_(0, index, src.new_ones(src.size(dim)))
        total = src.new_zeros(size).scatter_add_(dim, where, src)
        return total / _along(count.clamp(min=1), total, dim)
    if reduce == "mul":
        return src.new_ones(size).scatter_reduce_(dim, where, src, reduce="prod")
    if reduce == "any":
        return src.new_zeros(size).scatter_(dim, where, src)
    if reduce[-3:] not in ("max", "min"):
        raise ValueError(f"unknown reduction {reduce!r}: use sum, mean, mul, min, max or any")
    return src.new_zeros(size).scatter_reduce_(
        dim, where, src, reduce="a" + reduce[-3:], include_self=False
    )


@leaf("finite_extremum(Tensor src, Tensor index, SymInt num_groups, str reduce) -> Tensor")
def finite_extremum(src: Tensor, index: Tensor, num_groups: int, reduce: str) -> Tensor:
    """The "max" or "min" of the rows of each group, 0 where it is infinite as that of none is: what
    PyG makes of torch's reduction between pointers."""
    size = [num_groups, *src.shape[1:]]
    start = src.new_full(size, -math.inf if reduce == "max" else math.inf)
    out = start.scatter_reduce_(0, _along(index, src, 0), src, reduce="a" + reduce)
    return torch.where(out.isinf(), 0, out)


@leaf("segment_softmax(Tensor src, Tensor index, SymInt num_groups, int dim=0) -> Tensor")
def segment_softmax(src: Tensor, index: Tensor, num_groups: int, dim: int = 0) -> Tensor:
    """PyG's `softmax` of `src` within the groups of `index` along `dim`."""
    top = segment_reduce(src.detach(), index, dim, num_groups, "max")
    e = (src - top.index_select(dim, index)).exp()
    total = segment_reduce(e, index, dim, num_groups, "sum") + 1e-16
    return e / total.index_select(dim, index)


@leaf("softmax_by_index(Tensor src, Tensor index, int dim=0) -> Tensor")
def softmax_by_index(src: Tensor, index: Tensor, dim: int = 0) -> Tensor:
    """`segment_softmax` where nobody says how many groups there are."""
    # the groups are numbered anew: no more than there are rows
    in_order, order = index.sort(stable=True)
    begins = in_order.new_zeros(index.size(0))
    begins[1:] = in_order[1:] != in_order[:-1]
    group = torch.empty_like(index).scatter_(0, order, begins.cumsum(0))
    group = torch.where(index < 0, index, group)  # an error there, as for any index
    return segment_softmax(src, group, index.size(0), dim)


@leaf("remove_self_loops(Tensor edge_index, Tensor? edge_attr) -> (Tensor, Tensor?)")
def remove_self_loops(edge_index: Tensor, edge_attr: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """The edges (2 x E) whose ends differ, in order, and the rows of `edge_attr` they keep."""
    keep = edge_index[0] != edge_index[1]
    return edge_index[:, keep], None if edge_attr is None else edge_attr[keep]


@leaf("dropout_edge(Tensor edge_index, float p) -> (Tensor, Tensor)")
def dropout_edge(edge_index: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """The edges (2 x E) that are kept, each with probability 1 - p, and the mask of them (E)."""
    mask = torch.rand(edge_index.size(1), device=edge_index.device) >= p
    return edge_index[:, mask], mask


@leaf("edge_subgraph(Tensor edge_index, Tensor mask) -> Tensor")
def edge_subgraph(edge_index: Tensor, mask: Tensor) -> Tensor:
    """The edges (2 x E) where the boolean `mask` (E) is true."""
    return edge_index[:, mask]


@leaf("typed_linear(Tensor x, Tensor types, Tensor weight, Tensor? bias) -> Tensor")
def typed_linear(x: Tensor, types: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Row i is `x[i] @ weight[t] + bias[t]` for its type t: x is n x F, weight T x F x G."""
    out = torch.bmm(x.unsqueeze(1), weight[types]).squeeze(1)
    return out if bias is None else out + bias[types]


@leaf(
    "relational_sum(Tensor? x, Tensor edge_index, Tensor edge_type, Tensor weight, "
    "SymInt num_dst, str reduce) -> Tensor"
)
def relational_sum(
    x: Tensor | None,
    edge_index: Tensor,
    edge_type: Tensor,
    weight: Tensor,
    num_dst: int,
    reduce: str,
) -> Tensor:
    """RGCN's aggregation: per destination, the sum over relations r of (mean or sum) x_j W_r.

    x is n x F; weight is R x F x G, or R x b x F/b x G/b for block-diagonal matrices; the result is
    num_dst x G. Integers x (n) choose rows of W_r; without x each node chooses its own. Edges of a
    type outside of 0 .. R - 1 contribute nothing. (Schlichtkrull et al., Modeling Relational Data
    with Graph Convolutional Networks, 2018.)
    """
    relations = weight.size(0)
    known = (edge_type >= 0) & (edge_type < relations)
    kind = edge_type.clamp(0, relations - 1)
    h = edge_index[0] if x is None else x.index_select(0, edge_index[0])
    if not h.is_floating_point():
        h = weight.flatten(0, 1).index_select(0, kind * weight.size(1) + h)
    elif weight.dim() == 4:
        blocks = h.view(h.size(0), weight.size(1), weight.size(2))
        h = torch.einsum("ebk,ebko->ebo", blocks, weight.index_select(0, kind)).flatten(1)
    else:
        h = torch.bmm(h.unsqueeze(1), weight.index_select(0, kind)).squeeze(1)
    h = h.masked_fill(~known.unsqueeze(-1), 0.0)
    if reduce == "mean":
        key = edge_index[1] * relations + kind
        count = segment_reduce(known.to(h.dtype), key, 0, num_dst * relations, "sum")
        h = h / count.index_select(0, key).clamp(min=1).unsqueeze(-1)
    return segment_reduce(h, edge_index[1], 0, num_dst, "sum")


@leaf(
    "pair_count(Tensor index, Tensor types, SymInt groups, SymInt num_types, Tensor like) -> Tensor"
)
def pair_count(index: Tensor, types: Tensor, groups: int, num_types: int, like: Tensor) -> Tensor:
    """For each row how many rows have its index and its type, as numbers of the type of `like`."""
    key = index * num_types + types
    ones = like.new_ones(index.size(0))
    return segment_reduce(ones, key, 0, groups * num_types, "sum").index_select(0, key)


@leaf("count_of(Tensor index) -> Tensor")
def count_of(index: Tensor) -> Tensor:
    """How many rows an index that may be empty leads to: one more than the greatest number in it,
    as one integer."""
    return torch.cat([index.new_zeros(1), index.flatten() + 1]).max()


@leaf("longest_group(Tensor batch, SymInt batch_size) -> Tensor")
def longest_group(batch: Tensor, batch_size: int) -> Tensor:
    """How many rows the group has that has most of them, as one integer."""
    ones = torch.ones_like(batch, dtype=torch.int64)
    return ones.new_zeros(batch_size).scatter_add_(0, batch, ones).max()


@leaf(
    "dense_batch(Tensor x, Tensor batch, float fill, SymInt max_nodes, SymInt batch_size) "
    "-> (Tensor, Tensor)"
)
def dense_batch(
    x: Tensor, batch: Tensor, fill: float, max_nodes: int, batch_size: int
) -> tuple[Tensor, Tensor]:
    """PyG's `to_dense_batch`: the first `max_nodes` rows of each of `batch_size` groups side by
    side, batch_size x max_nodes x F, filled up with `fill`, and a mask of the places that have a
    row. `batch` does not decrease.
    """
    count = batch.new_zeros(batch_size).scatter_add_(0, batch, torch.ones_like(batch))
    begin = count.cumsum(0) - count
    place = torch.arange(batch.size(0), device=batch.device) - begin.index_select(0, batch)
    places = batch_size * max_nodes
    slot = torch.where(place < max_nodes, batch * max_nodes + place, places)  # the last is dropped
    shape = x.shape[1:]
    rows = x.new_full((places + 1, *shape), fill).index_put((slot,), x)
    mask = slot.new_zeros(places + 1, dtype=torch.bool).index_fill(0, slot, True)
    return (
        # a slice up to a number that may be less than 0, to fake tensors, is of unknown size
        rows.narrow(0, 0, places).view(batch_size, max_nodes, *shape),
        mask.narrow(0, 0, places).view(batch_size, max_nodes),
    )


@torch.library.custom_op("gnnc::require", mutates_args=())
def require(condition: Tensor, message: str, raised: str) -> None:
    """Raises the exception `raised`, a built-in one or "module.name", with `message` unless the one
    number of `condition` is true. What a library asks of numbers, which would cut a trace, is said
    so."""
    if not condition:
        raise exception_named(raised)(message)


@require.register_fake
def _(condition, message, raised) -> None:
    return None


@torch.library.custom_op("gnnc::negative_sampling", mutates_args=())
def negative_sampling(
    edge_index: Tensor, nodes: list[int], number: int, method: str, both: bool
) -> Tensor:
    """PyG's `negative_sampling`: about `number` pairs (2 x n) that are no edges; of `nodes` of one
    kind, with `both` directions of each or not, or of two."""
    from torch_geometric.utils import negative_sampling

    among = nodes[0] if len(nodes) == 1 else (nodes[0], nodes[1])
    return negative_sampling(edge_index, among, number, method, both)


@negative_sampling.register_fake
def _(edge_index, nodes, number, method, both) -> Tensor:
    return edge_index.new_empty((2, torch.library.get_ctx().new_dynamic_size()))


@torch.library.custom_op("gnnc::coalesced", mutates_args=())
def coalesced(
    edge_index: Tensor, num_nodes: int | None, by_row: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """PyG's `coalesce`: the edges (2 x n) in order without duplicates; the order of all, and for
    each in that order which of the n it is."""
    from torch_geometric.typing import MAX_INT64
    from torch_geometric.utils import index_sort

    if num_nodes is None:
        num_nodes = int(edge_index.max()) + 1 if edge_index.numel() else 0
    if num_nodes * num_nodes > MAX_INT64:
        raise ValueError("'coalesce' will result in an overflow")
    key = edge_index[1 - int(by_row)] * num_nodes + edge_index[int(by_row)]
    key, order = index_sort(key, max_value=num_nodes * num_nodes)
    first = key > torch.cat([key.new_full((1,), -1), key])[:-1]
    return edge_index[:, order[first]], order, first.cumsum(0) - 1


@coalesced.register_fake
def _(edge_index, num_nodes, by_row) -> tuple[Tensor, Tensor, Tensor]:
    edges = edge_index.size(1)
    left = edge_index.new_empty((2, torch.library.get_ctx().new_dynamic_size()))
    order, group = (edge_index.new_empty(edges, dtype=torch.int64) for _ in range(2))
    return left, order, group


def _remaining_loops(
    edge_index: Tensor, weight: Tensor | None, fill: float, num_nodes: int
) -> tuple[Tensor, Tensor | None]:
    """PyG's add_remaining_self_loops: old loops leave, every node gets one; the last old one's
    weight stays (in backward torch hands the gradient to every duplicate)."""
    keep = edge_index[0] != edge_index[1]
    nodes = torch.arange(num_nodes, device=edge_index.device)
    edges = torch.cat([edge_index[:, keep], nodes.unsqueeze(0).repeat(2, 1)], 1)
    if weight is None:
        return edges, None
    loops = weight.new_full((num_nodes,), fill)
    loops = loops.index_put((edge_index[0][~keep],), weight[~keep])
    return edges, torch.cat([weight[keep], loops])


def _gcn_norm(
    edge_index: Tensor,
    weight: Tensor | None,
    num_nodes: int,
    improved: bool,
    loops: bool,
    flow: str,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor]:
    """GCN's edges and weights D^-1/2 (A + I) D^-1/2; see PyG's `gcn_norm`."""
    if loops:
        edge_index, weight = _remaining_loops(
            edge_index, weight, 2.0 if improved else 1.0, num_nodes
        )
    else:
        edge_index = edge_index.clone()
    if weight is None:  # those of `improved` loops too, as in PyG
        weight = torch.ones(edge_index.size(1), device=edge_index.device, dtype=dtype)
    src, dst = edge_index[0], edge_index[1]
    degree = segment_reduce(weight, dst if flow == "source_to_target" else src, 0, num_nodes, "sum")
    scale = degree.pow(-0.5).masked_fill(degree == 0, 0.0)
    return edge_index, scale[src] * weight * scale[dst]


gcn_norm = torch.library.custom_op("gnnc::gcn_norm", _gcn_norm, mutates_args=())


@gcn_norm.register_fake
def _(edge_index, weight, num_nodes, improved, loops, flow, dtype) -> tuple[Tensor, Tensor]:
    edges = torch.library.get_ctx().new_dynamic_size() if loops else edge_index.size(1)
    out = torch.empty(
        edges, device=edge_index.device, dtype=dtype if weight is None else weight.dtype
    )
    return edge_index.new_empty((2, edges)), out


def _gcn_norm_context(ctx, inputs, output) -> None:
    ctx.save_for_backward(inputs[0], inputs[1])
    ctx.options = inputs[2:]


def _gcn_norm_backward(ctx, _edges: Tensor | None, grad: Tensor):
    edge_index, weight = ctx.saved_tensors
    result = None
    if weight is not None:
        with torch.enable_grad():
            leaf = weight.detach().requires_grad_()
            out = _gcn_norm(edge_index, leaf, *ctx.options)[1]
            (result,) = torch.autograd.grad(out, leaf, grad)
    return None, result, None, None, None, None, None


gcn_norm.register_autograd(_gcn_norm_backward, setup_context=_gcn_norm_context)
