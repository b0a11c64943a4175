"""What DGL 2.1 has and this package does not: such calls say so, with their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

FUNCTIONS = frozenset(
    """
    adj_product_graph adj_sum_graph adjusted_homophily compact_graphs dfs_edges_generator
    dfs_labeled_edges_generator double_radius_node_labeling edge_homophily
    edge_label_informativeness from_cugraph hetero_from_shared_memory khop_adj khop_graph lap_pe
    laplacian_lambda_max laplacian_pe linkx_homophily load_graphs metapath_reachable_graph
    metis_partition metis_partition_assignment node_homophily node_label_informativeness
    partition_graph_with_halo prop_edges_dfs random_walk_pe reorder_graph save_graphs
    set_dst_lazy_features set_edge_lazy_features set_node_lazy_features set_src_lazy_features
    shortest_dist sort_csc_by_tag sort_csr_by_tag svd_pe to_bfloat16 to_cugraph to_double to_float
    to_half
    """.split()
)
"""Functions of `dgl`."""

MODULES = frozenset(
    "cuda data dataloading distributed geometry graphbolt optim sampling storages".split()
)
"""Modules of `dgl`."""


def absent(name: str) -> Callable[..., NoReturn]:
    """A function that raises `NotImplementedError` with its name and the arguments of the call."""

    def function(*args: Any, **kwargs: Any) -> NoReturn:
        given = [*map(_short, args), *(f"{key}={_short(value)}" for key, value in kwargs.items())]
        raise NotImplementedError(
            f"gnnc.dgl has no dgl.{name}: {name}({', '.join(given)}). Do it with tensors "
            "(g.edges(), gnnc.dgl.graph), or with DGL where it is installed: gnnc.dgl.to_dgl(g) "
            "gives its graph."
        )

    function.__name__ = function.__qualname__ = name
    return function


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
