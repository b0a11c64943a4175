"""What DGL 2.1 has and this package does not: such calls say so, with their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

FUNCTIONS = frozenset(
    """
    adj_product_graph adj_sum_graph dfs_edges_generator
    dfs_labeled_edges_generator edge_label_informativeness from_cugraph
    hetero_from_shared_memory load_graphs metis_partition
    metis_partition_assignment node_label_informativeness
    partition_graph_with_halo prop_edges_dfs reorder_graph save_graphs sort_csc_by_tag
    sort_csr_by_tag to_bfloat16 to_cugraph
    """.split()
)
"""Functions of `dgl`."""

MODULES = frozenset("cuda data distributed geometry graphbolt optim sampling storages".split())
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
