"""Message, reduce and apply functions that users write."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from .both import bipartite, block, check, homogeneous, ours, rows

GRAPHS = {"homogeneous": homogeneous, "bipartite": bipartite, "block": block}


def inputs(kind: str) -> dict[str, Tensor]:
    g = GRAPHS[kind](ours)
    return {
        "u": rows(g.num_src_nodes(), 3, seed=1),
        "v": rows(g.num_dst_nodes(), 3, seed=2),
        "e": rows(g.num_edges(), 3, seed=3),
    }


def put(g: Any, given: dict[str, Tensor]) -> None:
    g.srcdata["u"], g.dstdata["v"], g.edata["e"] = given["u"], given["v"], given["e"]


pytestmark = pytest.mark.filterwarnings("ignore:The input graph for the user-defined edge")


def message(edges: Any) -> dict[str, Tensor]:
    return {"m": edges.src["u"] * edges.data["e"] - edges.dst["v"].tanh(), "w": edges.data["e"]}


def attention(nodes: Any) -> dict[str, Tensor]:
    alpha = nodes.mailbox["w"].softmax(1)
    return {"out": (alpha * nodes.mailbox["m"]).sum(1) + nodes.data["v"]}


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("reducer", ["sum", "mean", "max", "min", "user"])
def test_messages(kind: str, reducer: str):
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        put(g, given)
        reduce = attention
        if reducer != "user":
            reduce = getattr(library.function, reducer)("m", "out")
        # DGL's apply functions see infinities where no edge leads, ours see zeros.
        apply = None
        if reducer not in ("max", "min"):
            apply = lambda nodes: {"out": nodes.data["out"].sin()}  # noqa: E731
        g.update_all(message, reduce, apply)
        return dict(g.dstdata)

    check(GRAPHS[kind], program, inputs(kind))


def test_known_messages_and_a_users_reduce():
    def last(nodes: Any) -> dict[str, Tensor]:
        """Depends on the order of messages, and on how many there are."""
        count = nodes.mailbox["m"].shape[1]
        return {"out": nodes.mailbox["m"][:, -1] * count, "ids": nodes.nodes()}

    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        put(g, given)
        g.update_all(library.function.u_mul_e("u", "e", "m"), last)
        return dict(g.dstdata)

    for kind, graph in GRAPHS.items():
        check(graph, program, inputs(kind))


def test_recurrent_reduce():
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        def reduce(nodes: Any) -> dict[str, Tensor]:
            state = torch.zeros_like(nodes.mailbox["m"][:, 0])
            for step in range(nodes.mailbox["m"].shape[1]):
                state = torch.tanh(nodes.mailbox["m"][:, step] + state @ given["weight"])
            return {"out": state}

        put(g, given)
        g.update_all(library.function.copy_u("u", "m"), reduce)
        return g.dstdata["out"]

    check(homogeneous, program, {**inputs("homogeneous"), "weight": rows(3, 3)})


def test_what_batches_tell():
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        put(g, given)
        told: list[Any] = []

        def edges(batch: Any) -> dict[str, Tensor]:
            told.append((batch.edges(), batch.batch_size(), len(batch), batch.canonical_etype))
            told.append((sorted(batch.data), "u" in batch.src, sorted(batch.dst)))
            return {"f": batch.edges()[2].float()}

        def nodes(batch: Any) -> dict[str, Tensor]:
            told.append((batch.nodes(), batch.batch_size(), len(batch), batch.ntype))
            return {"n": batch.nodes().float()}

        g.apply_edges(edges)
        g.apply_edges(edges, edges=[3, 1])
        g.apply_nodes(nodes)
        g.apply_nodes(nodes, v=[2, 0])
        return told, dict(g.ndata), dict(g.edata)

    check(homogeneous, program, inputs("homogeneous"))


def test_ids_of_a_subgraph_are_those_of_its_parent():
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        part = g.subgraph([5, 2, 0, 3])
        part.update_all(
            library.function.copy_e("_ID", "m"),
            lambda nodes: {"ids": nodes.nodes(), "m": nodes.mailbox["m"].sum(1)},
        )
        return dict(part.ndata)

    check(homogeneous, program)


def test_no_edges():
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        g.ndata["x"] = given["x"]
        g.update_all(library.function.copy_u("x", "m"), lambda nodes: {"y": nodes.mailbox["m"]})
        return dict(g.ndata)

    check(lambda library: homogeneous(library, 4, 0), program, {"x": rows(4, 3)})


def test_parts_of_a_graph():
    """Rows that are not touched keep what they have, or get zeros."""

    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        put(g, given)
        fn = library.function
        known = fn.u_mul_e("u", "e", "m"), fn.max("m", "out")
        g.send_and_recv([4, 2, 9], *known)
        g.send_and_recv(([int(g.edges()[0][0])], [int(g.edges()[1][0])]), *known)
        g.pull([1, 8, 1], message, attention, lambda nodes: {"out": nodes.data["out"] + 1})
        g.push([3, 0], fn.copy_u("u", "m"), fn.mean("m", "pushed"))
        g.pull([], *known)
        g.apply_edges(fn.u_add_v("u", "v", "some"), edges=[5, 0])
        g.apply_edges(lambda edges: {"e": edges.data["e"] * 2}, edges=torch.tensor([7, 1]))
        g.apply_nodes(lambda nodes: {"v": nodes.data["v"] * 3, "new": nodes.data["u"]}, v=[6])
        return dict(g.ndata), dict(g.edata)

    check(homogeneous, program, inputs("homogeneous"))


def test_in_topological_order():
    """A tree's nodes take what their children send, level by level."""
    parents = [4, 4, 5, 5, 6, 6]

    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        g.ndata["h"] = given["h"]
        library.prop_nodes_topo(
            g,
            lambda edges: {"m": edges.src["h"]},
            lambda nodes: {"sum": nodes.mailbox["m"].sum(1)},
            apply_node_func=lambda nodes: {"h": nodes.data["h"] + nodes.data["sum"].tanh()},
        )
        return g.ndata["h"]

    def make(library: Any) -> Any:
        g = library.graph((list(range(6)), parents))
        g.ndata["sum"] = torch.zeros(7, 3, dtype=dtypes.pop())
        return g

    dtypes = [torch.float64] * 2 + [torch.float32] * 2
    check(make, program, {"h": rows(7, 3)})


def test_in_a_given_order():
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        g.ndata["h"] = given["h"]
        fn = library.function
        g.prop_nodes([[0, 1], [2, 3]], fn.copy_u("h", "m"), fn.sum("m", "h"))
        g.prop_edges([[0], [5, 6]], fn.copy_u("h", "m"), fn.sum("m", "h"))
        return g.ndata["h"]

    check(homogeneous, program, {"h": rows(9, 3)})


def test_filters():
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        put(g, given)
        nodes = g.filter_nodes(lambda nodes: nodes.data["v"][:, 0] > 0)
        some = g.filter_nodes(lambda nodes: nodes.data["v"][:, 0] > 0, nodes=[4, 3, 1])
        edges = g.filter_edges(lambda edges: edges.src["u"][:, 0] > edges.dst["v"][:, 1])
        few = g.filter_edges(lambda edges: edges.data["e"][:, 0] > 0, edges=[7, 2, 3])
        return nodes, some, edges, few, sorted(g.ndata)

    check(homogeneous, program, inputs("homogeneous"))
