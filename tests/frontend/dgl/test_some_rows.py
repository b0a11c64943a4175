"""Message passing along some edges, and functions of some edges and nodes, compiled with dgl
installed: what a call leaves of the other rows is what DGL leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from .compiled import check, dgl, graph

fn = dgl.function


def sent(edges: Any) -> dict[str, Tensor]:
    return {"m": edges.src["x"] * edges.dst["h"]}


def received(nodes: Any) -> dict[str, Tensor]:
    return {"h": nodes.mailbox["m"].mean(1) + nodes.data["h"]}


def finished(nodes: Any) -> dict[str, Tensor]:
    """It mixes nodes, so it must see those that are written, and no other."""
    return {"h": nodes.data["h"] - nodes.data["h"].mean(0)}


WAYS: dict[str, tuple[Any, Any, Any]] = {
    "sum": (fn.copy_u("x", "m"), fn.sum("m", "h"), None),
    "mean": (fn.u_add_v("x", "h", "m"), fn.mean("m", "h"), None),
    "max": (fn.copy_u("x", "m"), fn.max("m", "h"), None),
    "a user's": (sent, received, None),
    "a user's, then all together": (sent, received, finished),
    "to a new feature": (fn.copy_u("x", "m"), fn.sum("m", "new"), None),
}
"""What is sent, how it is reduced, and what is made of that."""


def passing(method: str, way: str) -> Callable[..., Tensor]:
    def call(g: Any, x: Tensor, ids: Tensor) -> Tensor:
        with g.local_scope():
            g.ndata["x"], g.ndata["h"] = x, x.cos()
            getattr(g, method)(ids, *WAYS[way])
            return g.ndata["new" if "new" in g.ndata else "h"]

    return call


def some(n: int, m: int, e: int) -> tuple[Any, ...]:
    """Half of the ids, which are of nodes as of edges."""
    return graph(n, e), torch.randn(n, 4), torch.randperm(n)[: n // 2]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("method", ["send_and_recv", "pull", "push"])
def test_some_edges(method: str, way: str) -> None:
    check(passing(method, way), some)


def test_pull_where_no_edge_leads() -> None:
    """DGL leaves the infinities of a maximum there, unlike after `update_all`."""
    compute = passing("pull", "max")

    def call(g: Any, x: Tensor, ids: Tensor) -> Tensor:
        h = compute(g, x, ids)
        return h.clamp(min=-3) + h.isinf()

    def args(n: int, m: int, e: int) -> tuple[Any, ...]:
        return graph(n, n, loops=False), torch.randn(n, 4), torch.randperm(n)[: n // 2]

    check(call, args)


@pytest.mark.filterwarnings("ignore:The input graph for the user-defined edge function")
@pytest.mark.parametrize("way", ["sum", "a user's", "a user's, then all together"])
def test_pull_where_no_edge_leads_to_any(way: str) -> None:
    """DGL calls no user's function then, and the features stay as they were; of its own functions
    the nodes get zeros. Some later call of the same program has edges."""

    def args(n: int, m: int, e: int) -> tuple[Any, ...]:
        src, dst = torch.randint(n, (e,)), torch.randint(n // 2, (e,))
        ids = torch.randperm(n // 2) + (0 if n == 12 else n // 2)
        return dgl.graph((src, dst), num_nodes=n), torch.randn(n, 4), ids

    check(passing("pull", way), args)


def of_edges(edges: Any) -> dict[str, Tensor]:
    return {"w": edges.src["x"] - edges.dst["x"] * edges.data["w"]}


def test_edges_by_ids() -> None:
    def call(g: Any, x: Tensor, w: Tensor, ids: Tensor) -> Tensor:
        with g.local_scope():
            g.ndata["x"], g.edata["w"] = x, w
            g.apply_edges(
                lambda edges: {"w": edges.src["x"] - edges.dst["x"] * edges.data["w"]}, ids
            )
            g.apply_edges(fn.u_dot_v("x", "x", "s"), ids)
            return g.edata["w"] * g.edata["s"]

    def args(n: int, m: int, e: int) -> tuple[Any, ...]:
        g = graph(n, e)
        return g, torch.randn(n, 4), torch.randn(g.num_edges(), 4), torch.randperm(e)[: e // 2]

    check(call, args)


def test_nodes_by_ids() -> None:
    def call(g: Any, x: Tensor, ids: Tensor) -> Tensor:
        with g.local_scope():
            g.ndata["x"] = x
            g.apply_nodes(finished_x, ids)
            g.update_all(fn.copy_u("x", "m"), fn.sum("m", "h"))
            return g.nodes[ids].data["h"]

    check(call, some)


def finished_x(nodes: Any) -> dict[str, Tensor]:
    return {"x": nodes.data["x"] - nodes.data["x"].mean(0)}


def test_features_that_are_set_by_ids() -> None:
    def call(g: Any, x: Tensor, ids: Tensor, y: Tensor) -> Tensor:
        with g.local_scope():
            g.ndata["x"] = x
            g.nodes[ids].data["x"] = y
            g.nodes[ids].data["new"] = y * 2
            return g.ndata["x"] + g.ndata["new"]

    check(call, lambda n, m, e: (*some(n, m, e), torch.randn(n // 2, 4)))
