"""What Dynamo traces in place of PyG's own functions while one of our captures runs.

Every substitute asks for ACTIVE first, so code compiled by others keeps PyG's own bodies; Dynamo
guards on the flag. `torch._dynamo.substitute_in_graph` goes by function identity and so covers
`from torch_geometric.utils import softmax`; it is not consulted for methods, which are patched on
their class.
"""

import functools
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from types import FunctionType

import torch
from torch import Tensor

from . import leaves  # noqa: F401  (defines torch.ops.gnnc)

ACTIVE = False
_users = 0
_lock = Lock()
_installed = False


@contextmanager
def activated() -> Iterator[None]:
    """Substitutes are traced inside; nests. The flag is one for all threads, as Dynamo cannot guard
    a thread's own: another that compiles something else meanwhile gets leaves too, which run."""
    global ACTIVE, _users
    with _lock:
        _users += 1
        ACTIVE = True
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            ACTIVE = _users > 0


def _tracing() -> bool:
    """Whether a patched method is being traced for us; run eagerly it stays PyG's."""
    return ACTIVE and torch.compiler.is_compiling()


def install() -> None:
    """Registers the substitutes once PyG has been imported; before that there is nothing to do."""
    global _installed
    if _installed or "torch_geometric.nn" not in sys.modules:
        return
    _installed = True
    for module, name, make in (
        ("torch_geometric.utils._scatter", "scatter", _scatter),
        ("torch_geometric.utils._softmax", "softmax", _softmax),
        ("torch_geometric.utils.loop", "remove_self_loops", _remove_self_loops),
        ("torch_geometric.nn.conv.gcn_conv", "gcn_norm", _gcn_norm),
        ("torch_geometric.nn.conv.rgcn_conv", "masked_edge_index", _masked_edge_index),
    ):
        original = getattr(importlib.import_module(module), name)
        substitute = make(_clone(original))
        torch._dynamo.substitute_in_graph(original, skip_signature_check=True)(substitute)
    _patch_methods()


def _clone(f: FunctionType) -> FunctionType:
    """The same function under another identity, which Dynamo does not replace again."""
    copy = FunctionType(
        f.__code__, f.__globals__, f.__name__ + "_original", f.__defaults__, f.__closure__
    )
    copy.__kwdefaults__ = f.__kwdefaults__
    return copy


def _plain(edge_index: object) -> bool:
    return type(edge_index) is Tensor and edge_index.layout is torch.strided


def _count(index: Tensor, num: int | None) -> int:
    """`num`, or one more than the greatest index."""
    if num is not None:
        return num
    return int(index.max()) + 1 if index.numel() > 0 else 0


def _scatter(original: Callable) -> Callable:
    def scatter(src, index, dim=0, dim_size=None, reduce="sum"):
        if not ACTIVE or index.dim() != 1:
            return original(src, index, dim, dim_size, reduce)
        dim = src.dim() + dim if dim < 0 else dim
        return torch.ops.gnnc.segment_reduce(src, index, dim, _count(index, dim_size), reduce)

    return scatter


def _softmax(original: Callable) -> Callable:
    def softmax(src, index=None, ptr=None, num_nodes=None, dim=0):
        if not ACTIVE or index is None:
            return original(src, index, ptr, num_nodes, dim)
        return torch.ops.gnnc.segment_softmax(src, index, _count(index, num_nodes), dim)

    return softmax


def _remove_self_loops(original: Callable) -> Callable:
    def remove_self_loops(edge_index, edge_attr=None):
        if not ACTIVE or not _plain(edge_index):
            return original(edge_index, edge_attr)
        return torch.ops.gnnc.remove_self_loops(edge_index, edge_attr)

    return remove_self_loops


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
        if not ACTIVE or not _plain(edge_index):
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
        if not ACTIVE or not _plain(edge_index):
            return original(edge_index, edge_mask)
        return torch.ops.gnnc.edge_subgraph(edge_index, edge_mask)

    return masked_edge_index


def _patch_methods() -> None:
    from torch_geometric.nn.conv.gat_conv import GATConv
    from torch_geometric.nn.conv.rgcn_conv import RGCNConv
    from torch_geometric.nn.dense.linear import HeteroLinear

    plain_forward = RGCNConv.forward
    plain_naive = HeteroLinear.forward_naive
    plain_update = GATConv.edge_update

    def forward(self, x, edge_index, edge_type=None):
        if _tracing() and _relational(self, RGCNConv, x, edge_index, edge_type):
            return _rgcn(self, x, edge_index, edge_type)
        return plain_forward(self, x, edge_index, edge_type)

    def forward_naive(self, x, type_ptr):
        if _tracing():
            return torch.ops.gnnc.segment_mm(x, type_ptr, self.weight)
        return plain_naive(self, x, type_ptr)

    # PyG reads parameter names and types from the signature: wraps keeps them
    @functools.wraps(plain_update)
    def edge_update(self, alpha_j, alpha_i, edge_attr, index, ptr, dim_size):
        if _tracing():
            return _gat_weights(self, alpha_j, alpha_i, edge_attr, index, dim_size)
        return plain_update(self, alpha_j, alpha_i, edge_attr, index, ptr, dim_size)

    RGCNConv.forward = functools.wraps(plain_forward)(forward)
    HeteroLinear.forward_naive = functools.wraps(plain_naive)(forward_naive)
    GATConv.edge_update = edge_update


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
    """Whether RGCN's loop over relations is the one sum that `relational_sum` stands for."""
    floats = [v for v in (x if isinstance(x, tuple) else (x,)) if v is not None]
    return (
        type(conv) is cls
        and conv.aggr in ("mean", "add", "sum")
        and conv.flow == "source_to_target"
        and edge_type is not None
        and _plain(edge_index)
        and len(floats) > 0
        and (not isinstance(x, tuple) or len(floats) == 2)
        and all(v.is_floating_point() for v in floats)
    )


def _rgcn(conv, x, edge_index, edge_type):
    """RGCNConv.forward for float features, the loop over relations in one leaf."""
    x_src, x_dst = x if isinstance(x, tuple) else (x, x)
    weight = conv.weight
    if conv.num_bases is not None:
        weight = (conv.comp @ weight.view(conv.num_bases, -1)).view(
            conv.num_relations, conv.in_channels_l, conv.out_channels
        )
    reduce = "mean" if conv.aggr == "mean" else "sum"
    out = torch.ops.gnnc.relational_sum(x_src, edge_index, edge_type, weight, x_dst.size(0), reduce)
    if conv.root is not None:
        out = out + x_dst @ conv.root
    return out if conv.bias is None else out + conv.bias
