"""What Dynamo traces in place of PyG's own functions while one of our captures runs.

`torch._dynamo.substitute_in_graph` goes by function identity and so covers
`from torch_geometric.utils import softmax`; it is not consulted for methods, which are patched on
their class.
"""

import functools
import importlib
import inspect
import sys
from collections.abc import Callable

import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import guard_or_false

from .....runtime.ranks.world import world
from ..active import clone, is_active
from ..replaced_methods import replace
from . import (
    coalesced,
    edge_index,
    leaves,  # noqa: F401  (defines torch.ops.gnnc)
    matrices,
    pointers,
)

_installed = False


def _tracing() -> bool:
    """Whether a patched method is being traced for us; run eagerly it stays PyG's."""
    return is_active() and torch.compiler.is_compiling()


def install() -> None:
    """Registers the substitutes once PyG has been imported; before that there is nothing to do."""
    global _installed
    if _installed or "torch_geometric.nn" not in sys.modules:
        return
    _installed = True
    for module, name, make in (
        ("torch_geometric.utils.num_nodes", "maybe_num_nodes", _maybe_num_nodes),
        ("torch_geometric.utils._scatter", "scatter", _scatter),
        ("torch_geometric.utils._softmax", "softmax", _softmax),
        ("torch_geometric.utils.loop", "remove_self_loops", _remove_self_loops),
        ("torch_geometric.utils._to_dense_batch", "to_dense_batch", _to_dense_batch),
        ("torch_geometric.utils.dropout", "dropout_edge", _dropout_edge),
        ("torch_geometric.utils._negative_sampling", "negative_sampling", _negative_sampling),
        ("torch_geometric.nn.conv.gcn_conv", "gcn_norm", _gcn_norm),
        ("torch_geometric.nn.conv.rgcn_conv", "masked_edge_index", _masked_edge_index),
        ("torch_geometric.utils.hetero", "construct_bipartite_edge_index", _joined_edges),
        *coalesced.SUBSTITUTES,
        *matrices.SUBSTITUTES,
        *pointers.SUBSTITUTES,
    ):
        original = getattr(importlib.import_module(module), name)
        substitute = make(clone(original))
        torch._dynamo.substitute_in_graph(original, skip_signature_check=True)(substitute)
    edge_index.install()
    _patch_methods()
    _run_message_hooks()
    _draw_eagerly()


def _plain(edge_index: object) -> bool:
    return type(edge_index) is Tensor and edge_index.layout is torch.strided


def _count(index: Tensor, num: int | Tensor | None) -> int:
    """`num`, which may be a tensor, or one more than the greatest index."""
    if num is not None:
        return int(num)
    if not _among_ranks():  # where some have rows and others have none
        if guard_or_false(index.numel() > 0):
            return int(index.max()) + 1
        if guard_or_false(index.numel() == 0):
            return 0
    count = torch.ops.gnnc.count_of(index).item()  # only running tells whether there are rows
    torch._check(count >= 0)
    return count


@torch._dynamo.assume_constant_result
def _among_ranks() -> bool:
    return world().size > 1


def _maybe_num_nodes(original: Callable) -> Callable:
    def maybe_num_nodes(edge_index, num_nodes=None):
        if not is_active() or num_nodes is not None or not isinstance(edge_index, Tensor):
            return original(edge_index, num_nodes)
        return _count(edge_index, None) if _plain(edge_index) else original(edge_index)

    return maybe_num_nodes


def _scatter(original: Callable) -> Callable:
    def scatter(src, index, dim=0, dim_size=None, reduce="sum"):
        if not is_active() or index.dim() != 1:
            return original(src, index, dim, dim_size, reduce)
        dim = src.dim() + dim if dim < 0 else dim
        return torch.ops.gnnc.segment_reduce(src, index, dim, _count(index, dim_size), reduce)

    return scatter


def _softmax(original: Callable) -> Callable:
    from torch_geometric import typing

    def softmax(src, index=None, ptr=None, num_nodes=None, dim=0):
        dim = src.dim() + dim if dim < 0 else dim
        if ptr is not None and dim and not typing.WITH_TORCH_SCATTER:
            return original(src, index, ptr, num_nodes, dim)  # which raises
        if ptr is not None and is_active() and ptr.dim() == 1:
            index = torch.ops.gnnc.index_of_pointer(ptr, src.size(dim))
            num_nodes = ptr.size(0) - 1
        elif not is_active() or index is None:
            return original(src, index, ptr, num_nodes, dim)
        if num_nodes is None:
            return torch.ops.gnnc.softmax_by_index(src, index, dim)
        return torch.ops.gnnc.segment_softmax(src, index, num_nodes, dim)

    return softmax


def _remove_self_loops(original: Callable) -> Callable:
    def remove_self_loops(edge_index, edge_attr=None):
        if not is_active() or not _plain(edge_index):
            return original(edge_index, edge_attr)
        return torch.ops.gnnc.remove_self_loops(edge_index, edge_attr)

    return remove_self_loops


def _dropout_edge(original: Callable) -> Callable:
    def dropout_edge(edge_index, p=0.5, force_undirected=False, training=True):
        draws = training and not force_undirected and 0.0 < p <= 1.0
        if not is_active() or not draws or not _plain(edge_index):
            return original(edge_index, p, force_undirected, training)
        return torch.ops.gnnc.dropout_edge(edge_index, p)

    return dropout_edge


def _negative_sampling(original: Callable) -> Callable:
    def negative_sampling(
        edge_index, num_nodes=None, num_neg_samples=None, method="sparse", force_undirected=False
    ):
        known = num_nodes is not None and method in ("sparse", "dense")
        if not is_active() or not known or not _plain(edge_index):
            return original(edge_index, num_nodes, num_neg_samples, method, force_undirected)
        number = edge_index.size(1) if num_neg_samples is None else num_neg_samples
        if isinstance(number, float):
            number = int(number * edge_index.size(1))
        nodes = [*num_nodes] if isinstance(num_nodes, tuple | list) else [num_nodes]
        both = force_undirected and len(nodes) == 1  # PyG knows one direction of two kinds
        return torch.ops.gnnc.negative_sampling(edge_index, nodes, number, method, both)

    return negative_sampling


def _to_dense_batch(original: Callable) -> Callable:
    from torch_geometric.experimental import is_experimental_mode_enabled

    # Dynamo cannot read what the decorator of a function that no name leads to keeps of it
    undecorated = clone(inspect.unwrap(original))

    def to_dense_batch(x, batch=None, fill_value=0.0, max_num_nodes=None, batch_size=None):
        computed = isinstance(fill_value, Tensor) and fill_value.dim() == 0
        plain = x.is_floating_point() and (computed or isinstance(fill_value, int | float))
        unsaid = batch_size is None or max_num_nodes is None
        if unsaid and is_experimental_mode_enabled("disable_dynamic_shapes"):
            return original(x, batch, fill_value, max_num_nodes, batch_size)  # which raises
        if not is_active() or batch is None or not plain:
            return undecorated(x, batch, fill_value, max_num_nodes, batch_size)
        if batch_size is None:
            last = int(batch.max())
            torch._check(last >= 0)
            batch_size = last + 1
        if max_num_nodes is None:
            # an op that gives it as a tensor: sizes that are read from data do not come out of one
            longest = torch.ops.gnnc.longest_group(batch, batch_size)
            max_num_nodes = longest.item()
            torch._check(max_num_nodes >= 2)
        fill = 0.0 if computed else float(fill_value)
        rows, mask = torch.ops.gnnc.dense_batch(x, batch, fill, max_num_nodes, batch_size)
        if computed:
            filled = mask.view(*mask.shape, *[1] * (x.dim() - 1))
            rows = torch.where(filled, rows, fill_value.to(x.dtype))
        return rows, mask

    return to_dense_batch


def _gcn_norm(original: Callable) -> Callable:
    def gcn_norm(
        edge_index,
        edge_weight=None,
        num_nodes=None,
        improved=False,
        add_self_loops=True,
        flow="source_to_target",
        dtype=None,
    ):
        weighs = edge_weight is None or edge_weight.is_floating_point()
        known = weighs and flow in ("source_to_target", "target_to_source")
        if not is_active() or not known or not _plain(edge_index):
            return original(
                edge_index, edge_weight, num_nodes, improved, add_self_loops, flow, dtype
            )
        if dtype is None:
            dtype = torch.get_default_dtype()
        count = _count(edge_index, num_nodes)
        return torch.ops.gnnc.gcn_norm(
            edge_index, edge_weight, count, improved, add_self_loops, flow, dtype
        )

    return gcn_norm


def _masked_edge_index(original: Callable) -> Callable:
    def masked_edge_index(edge_index, edge_mask):
        if not is_active() or not _plain(edge_index):
            return original(edge_index, edge_mask)
        return torch.ops.gnnc.edge_subgraph(edge_index, edge_mask)

    return masked_edge_index


def _joined_edges(original: Callable) -> Callable:
    def construct_bipartite_edge_index(
        edge_index_dict, src_offset_dict, dst_offset_dict, edge_attr_dict=None, num_nodes=None
    ):
        kinds = list(src_offset_dict.keys())
        if not is_active() or not all(_plain(edge_index_dict[k]) for k in kinds):
            return original(
                edge_index_dict, src_offset_dict, dst_offset_dict, edge_attr_dict, num_nodes
            )
        ends, rows = [], []
        for kind in kinds:
            edges = edge_index_dict[kind]
            start = (src_offset_dict[kind], dst_offset_dict[kind[-1]])
            ends.append(torch.stack([edges[0] + start[0], edges[1] + start[1]]))
            if edge_attr_dict is not None:
                named = isinstance(edge_attr_dict, torch.nn.ParameterDict)
                rows.append(_row_each(edge_attr_dict["__".join(kind) if named else kind], edges))
        return torch.cat(ends, dim=1), torch.cat(rows, dim=0) if rows else None

    return construct_bipartite_edge_index


def _row_each(value: Tensor, edges: Tensor) -> Tensor:
    """A row for each edge, of what may be one row for all. PyG asks whether there is one edge, so
    that a relation with one would be compiled for."""
    one = isinstance(value, torch.nn.Parameter) and value.size(0) == 1
    if one or value.size(0) != edges.size(1):
        return value.expand(edges.size(1), -1)
    return value


_NOT_SORTED = (
    "Can not perform aggregation since the 'index' tensor is not sorted. Specifically, if you use "
    "this aggregation as part of 'MessagePassing`, ensure that 'edge_index' is sorted by "
    "destination nodes, e.g., by calling `data.sort(sort_by_row=False)`"
)
"""What `Aggregation.assert_sorted_index` says."""


def _patch_methods() -> None:
    from torch_geometric.nn.aggr.base import Aggregation
    from torch_geometric.nn.conv.gat_conv import GATConv
    from torch_geometric.nn.conv.message_passing import MessagePassing
    from torch_geometric.nn.conv.rgcn_conv import FastRGCNConv, RGCNConv
    from torch_geometric.nn.dense.linear import HeteroLinear

    MessagePassing._lift = functools.wraps(MessagePassing._lift)(
        matrices.lift(MessagePassing._lift)
    )
    plain_forward = RGCNConv.forward
    plain_fast_forward = FastRGCNConv.forward
    plain_linear = HeteroLinear.forward
    plain_update = GATConv.edge_update
    plain_assert = Aggregation.assert_sorted_index

    def assert_sorted_index(self, index):
        if not _tracing() or index is None:
            return plain_assert(self, index)
        in_order = torch.all(index[:-1] <= index[1:])
        return torch.ops.gnnc.require(in_order, _NOT_SORTED, "ValueError")

    def forward(self, x, edge_index, edge_type=None):
        if _tracing() and _relational(self, RGCNConv, x, edge_index, edge_type):
            return _rgcn(self, x, edge_index, edge_type)
        return plain_forward(self, x, edge_index, edge_type)

    def fast_forward(self, x, edge_index, edge_type=None):
        # its blocks are rows of edges x blocks, and without features it reads rows of all relations
        # at one number made of two; the rest is plain gathering
        special = (self.num_blocks is not None or x is None) and not _is_observed(self)
        if _tracing() and special and _relational(self, FastRGCNConv, x, edge_index, edge_type):
            return _rgcn(self, x, edge_index, edge_type)
        return plain_fast_forward(self, x, edge_index, edge_type)

    def linear(self, x, type_vec):
        if _tracing():
            return torch.ops.gnnc.typed_linear(x, type_vec, self.weight, self.bias)
        return plain_linear(self, x, type_vec)

    def edge_update(self, alpha_j, alpha_i, edge_attr, index, ptr, dim_size):
        if _tracing():
            return _gat_weights(self, alpha_j, alpha_i, edge_attr, index, dim_size)
        return plain_update(self, alpha_j, alpha_i, edge_attr, index, ptr, dim_size)

    for cls, name, ours in (
        (RGCNConv, "forward", forward),
        (FastRGCNConv, "forward", fast_forward),
        (HeteroLinear, "forward", linear),
        (GATConv, "edge_update", edge_update),
        (Aggregation, "assert_sorted_index", assert_sorted_index),
    ):
        replace(cls, name, ours)


def _run_message_hooks() -> None:
    """Lets hooks on message passing run in what we trace, as they do eagerly."""
    from torch_geometric.nn.conv.message_passing import MessagePassing

    plain = MessagePassing._set_jittable_templates

    @functools.wraps(plain)
    def set_templates(self, *args, **kwargs):
        plain(self, *args, **kwargs)
        _keep_hooks(type(self))

    MessagePassing._set_jittable_templates = set_templates
    classes = [MessagePassing]
    for cls in classes:
        _keep_hooks(cls)
        classes += cls.__subclasses__()


def _keep_hooks(cls: type) -> None:
    """The functions that PyG has generated for a class ask `is_compiling` only to leave out the
    hooks; they get another answer from here on."""
    for name in ("propagate", "edge_updater"):
        generated = getattr(cls, f"_jinja_{name}", None)
        if generated is not None and generated is not getattr(cls, f"_orig_{name}"):
            generated.__globals__["is_compiling"] = _hooks_are_left_out


@torch.jit.unused  # TorchScript cannot read the flag, and leaves out the hooks anyway
def _hooks_are_left_out() -> bool:
    return torch.compiler.is_compiling() and not is_active()


def _draw_eagerly() -> None:
    """Negative samples are drawn without Dynamo: it would make a symbol of each number drawn, which
    takes hours where there are many edges."""
    from torch_geometric.utils import _negative_sampling

    plain = _negative_sampling.sample
    untraced = torch._dynamo.disable(plain)

    @functools.wraps(plain)
    def sample(*args, **kwargs):
        return untraced(*args, **kwargs) if is_active() else plain(*args, **kwargs)

    _negative_sampling.sample = sample


def _is_observed(conv) -> bool:
    """Whether hooks or an explainer want to see or change the messages of a layer."""
    hooks = (
        conv._propagate_forward_pre_hooks,
        conv._propagate_forward_hooks,
        conv._message_forward_pre_hooks,
        conv._message_forward_hooks,
        conv._aggregate_forward_pre_hooks,
        conv._aggregate_forward_hooks,
    )
    return bool(conv.explain) or any(len(h) > 0 for h in hooks)


def _gat_weights(conv, alpha_j, alpha_i, edge_attr, index, dim_size):
    """GAT's attention without PyG's test for an empty graph, which would break the trace where the
    number of edges depends on data."""
    logits = alpha_j if alpha_i is None else alpha_j + alpha_i
    if edge_attr is not None and conv.lin_edge is not None:
        columns = edge_attr if edge_attr.dim() > 1 else edge_attr.view(-1, 1)
        heads = conv.lin_edge(columns).view(-1, conv.heads, conv.out_channels)
        logits = logits + (heads * conv.att_edge).sum(-1)
    logits = torch.nn.functional.leaky_relu(logits, conv.negative_slope)
    weights = torch.ops.gnnc.segment_softmax(logits, index, _count(index, dim_size), 0)
    return torch.nn.functional.dropout(weights, conv.dropout, conv.training)


def _relational(conv, cls: type, x, edge_index, edge_type) -> bool:
    """Whether these are the arguments of RGCN that its formula is about: features of both ends, or
    node numbers of both."""
    ends = x if isinstance(x, tuple) else (x, x)
    floats = [v.is_floating_point() for v in ends if v is not None]
    numbers = not any(floats)
    return (
        type(conv) is cls
        and edge_type is not None
        and _plain(edge_index)
        and (not isinstance(x, tuple) or (len(x) == 2 and x[1] is not None))
        and (all(floats) and len(floats) == 2 or numbers and conv.num_blocks is None)
    )


def _rgcn(conv, x, edge_index, edge_type):
    """RGCNConv.forward, without PyG's choice of a kernel by the number of edges: the loop over
    relations is one leaf where it is one sum."""
    x_src, x_dst = x if isinstance(x, tuple) else (x, x)
    weight = conv.weight
    if conv.num_bases is not None:
        weight = (conv.comp @ weight.view(conv.num_bases, -1)).view(
            conv.num_relations, conv.in_channels_l, conv.out_channels
        )
    nodes = conv.in_channels_l if x_dst is None else x_dst.size(0)
    summed = conv.aggr in ("mean", "add", "sum") and conv.flow == "source_to_target"
    if summed and not _is_observed(conv):
        reduce = "mean" if conv.aggr == "mean" else "sum"
        out = torch.ops.gnnc.relational_sum(x_src, edge_index, edge_type, weight, nodes, reduce)
    else:
        out = _relation_by_relation(conv, x_src, edge_index, edge_type, weight, nodes)
    if conv.root is not None:
        out = out + _looked_up(x_dst, conv.root)
    return out if conv.bias is None else out + conv.bias


def _looked_up(x, weight):
    """x W, where integers x choose rows of W and no x all of them."""
    if x is None:
        return weight
    return x @ weight if x.is_floating_point() else weight[x]


def _relation_by_relation(conv, x, edge_index, edge_type, weight, nodes):
    """The sum over relations of any aggregation."""
    sources = conv.in_channels_l if x is None else x.size(0)
    numbers = x is None or not x.is_floating_point()
    terms = []
    for r in range(conv.num_relations):
        edges = torch.ops.gnnc.edge_subgraph(edge_index, edge_type == r)
        h = _looked_up(x, weight[r]) if numbers else x
        h = conv.propagate(edges, x=h, edge_type_ptr=None, size=(sources, nodes))
        if numbers:
            terms.append(h)
        elif conv.num_blocks is None:
            terms.append(h @ weight[r])
        else:
            blocks = h.view(-1, weight.size(1), weight.size(2))
            terms.append(torch.einsum("nbk,bko->nbo", blocks, weight[r]).flatten(1))
    return sum(terms)
