"""`dgl.ops`, softmax over edges, and products by segment."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from .both import bipartite, block, check, heterograph, homogeneous, ours, rows, theirs

GRAPHS = {"homogeneous": homogeneous, "bipartite": bipartite, "block": block}


def test_names():
    known = {name for name in vars(theirs.ops) if name.split("_")[0] in ("u", "v", "e", "copy")}
    assert known - set(vars(ours.ops)) == set()


@pytest.mark.parametrize("kind", GRAPHS)
def test_every_function(kind: str):
    g = GRAPHS[kind](ours)
    inputs = {
        "u": rows(g.num_src_nodes(), 2, 3, seed=1),
        "v": rows(g.num_dst_nodes(), 2, 3, seed=2),
        "e": rows(g.num_edges(), 1, 3, seed=3),
    }

    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        found: dict[str, Any] = {}
        for name in sorted(vars(ours.ops)):
            parts = name.split("_")
            function = getattr(library.ops, name, None)
            if len(parts) in (3, 4) and parts[0] in given and parts[2] in given:
                found[name] = function(g, given[parts[0]], given[parts[2]])
            elif parts[0] == "copy" and (kind != "bipartite" or parts[1] != "v"):
                found[name] = function(g, given[parts[1]])
        # Infinities have no gradient that can be compared.
        return {k: v.detach() if "max" in k or "min" in k else v for k, v in found.items()}

    check(GRAPHS[kind], program, inputs)


@pytest.mark.parametrize("operation", ["add", "mul", "copy_lhs", "copy_rhs"])
def test_general_functions(operation: str):
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        left = None if operation == "copy_rhs" else given["u"]
        right = None if operation == "copy_lhs" else given["e"]
        return [library.ops.gspmm(g, operation, r, left, right) for r in ("sum", "mean")], (
            library.ops.gsddmm(g, operation, left, right, "v", "e")
        )

    check(homogeneous, program, {"u": rows(9, 3), "e": rows(30, 3, seed=1)})


@pytest.mark.parametrize("norm_by", ["dst", "src"])
@pytest.mark.parametrize("kind", GRAPHS)
def test_edge_softmax(kind: str, norm_by: str):
    edges = GRAPHS[kind](ours).num_edges()

    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        return library.ops.edge_softmax(g, given["e"] * 30, norm_by=norm_by)

    check(GRAPHS[kind], program, {"e": rows(edges, 4, 1)})


def test_edge_softmax_of_some_edges():
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        return library.ops.edge_softmax(g, given["e"], eids=torch.tensor([4, 0, 7, 1, 9]))

    check(homogeneous, program, {"e": rows(5, 2)})


def test_edge_softmax_over_types():
    g = heterograph(ours).edge_type_subgraph(["follows", "buys", "sells"])
    inputs = {e: rows(g.num_edges(e), 2, seed=i) for i, e in enumerate(g.etypes)}

    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        part = g.edge_type_subgraph(["follows", "buys", "sells"])
        return library.ops.edge_softmax(part, dict(given))

    check(heterograph, program, inputs)


@pytest.mark.parametrize("reducer", ["sum", "mean", "max", "min"])
def test_segment_reduce(reducer: str):
    lengths = torch.tensor([3, 0, 1, 5, 0])

    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        return library.ops.segment_reduce(lengths, given["x"], reducer)

    check(homogeneous, program, {"x": rows(9, 2, 3)})


def test_segment_softmax():
    lengths = torch.tensor([3, 0, 1, 5])

    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        return (
            library.ops.segment.segment_softmax(lengths, given["x"])
            if library is theirs
            else (library.ops.segment_softmax(lengths, given["x"]))
        )

    check(homogeneous, program, {"x": rows(9, 2)})


def test_products_by_segment():
    lengths, numbers = torch.tensor([3, 0, 4]), torch.tensor([2, 0, 0, 2, 1, 0, 2])

    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        a, b = given["a"], given["b"]
        return library.ops.segment_mm(a, b, lengths), library.ops.gather_mm(a, b, idx_b=numbers)

    check(homogeneous, program, {"a": rows(7, 4), "b": rows(3, 4, 5, seed=1)})


def test_functions_of_one_type():
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        x, name = given["x"], "follows"
        found = [getattr(library, f"u_{o}_v")(g, x, x, name) for o in ("add", "sub", "mul", "dot")]
        return found, library.copy_u(g[name], x), library.copy_v(g, x, etype=name)

    check(heterograph, program, {"x": rows(6, 2)})


def test_mistakes():
    g = homogeneous(ours)
    with pytest.raises(ours.DGLError, match="norm_by"):
        ours.ops.edge_softmax(g, rows(30, 1), norm_by="both")
    with pytest.raises(ours.DGLError, match="'pow' is not an operation"):
        ours.ops.gsddmm(g, "pow", rows(9, 1), rows(9, 1))
    with pytest.raises(ours.DGLError, match="the target of an operand"):
        ours.ops.gsddmm(g, "add", rows(9, 1), rows(9, 1), "u", "w")
    with pytest.raises(ours.DGLError, match="'median' not recognized"):
        ours.ops.segment_reduce(torch.tensor([9]), rows(9, 1), "median")
    with pytest.raises(ours.DGLError, match="2 segments and 3 matrices"):
        ours.ops.segment_mm(rows(7, 4), rows(3, 4, 5), torch.tensor([3, 4]))
