"""Built-in message and reduce functions."""

from __future__ import annotations

from typing import Any

import pytest
from torch import Tensor

import gnnc.dgl.function as fn

from .both import bipartite, block, check, homogeneous, ours, rows, theirs

GRAPHS = {"homogeneous": homogeneous, "bipartite": bipartite, "block": block}
MESSAGES = [
    "copy_u",
    "copy_e",
    *(
        f"{lhs}_{op}_{rhs}"
        for lhs in "uve"
        for rhs in "uve"
        if lhs != rhs
        for op in ("add", "sub", "mul", "div", "dot")
    ),
]
SHAPES = [
    ((), ()),
    ((3,), (3,)),
    ((2, 3), (2, 1)),
    ((3,), (2, 3)),
    ((1,), (4,)),
    ((2, 1, 3), (4, 1)),
]


def put(g: Any, given: dict[str, Tensor]) -> None:
    g.srcdata["u"], g.edata["e"] = given["u"], given["e"]
    g.dstdata["v"] = given["v"]


def features(kind: str, left: tuple[int, ...], right: tuple[int, ...], name: str):
    """Features whose shapes differ between the two operands of a message."""
    g = GRAPHS[kind](ours)
    sizes = {"u": g.num_src_nodes(), "v": g.num_dst_nodes(), "e": g.num_edges()}
    first, last = name[0], name[-1]
    shapes = {first: left, last: right}
    return {
        key: rows(size, *shapes.get(key, (2,)), seed=i)
        for i, (key, size) in enumerate(sizes.items())
    }


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("name", MESSAGES)
def test_messages_and_sums(kind: str, name: str):
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        put(g, given)
        make = getattr(library.function, name)
        fields = name[-1] if name.startswith("copy") else (name[0], name[-1])
        message = make(*fields, "m")
        g.apply_edges(make(*fields, "on edges"))
        g.update_all(message, library.function.sum("m", "out"))
        return g.edata["on edges"], g.dstdata["out"]

    check(GRAPHS[kind], program, features(kind, (3,), (3,), name))


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        *((name, s) for name in ("u_mul_e", "v_sub_u", "e_div_v", "u_add_v") for s in SHAPES),
        # DGL's dot wants last dimensions of one length.
        *(("u_dot_v", (left, right)) for left, right in SHAPES if left[-1:] == right[-1:]),
    ],
    ids=str,
)
def test_broadcasting(name: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]):
    left, right = shapes

    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        put(g, given)
        g.apply_edges(getattr(library.function, name)(name[0], name[-1], "out"))
        return g.edata["out"]

    check(homogeneous, program, features("homogeneous", left, right, name))


def product(nodes: Any) -> dict[str, Tensor]:
    return {"out": nodes.data["out"] * nodes.data["v"]}


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("reducer", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("name", ["copy_u", "copy_e", "u_mul_e", "u_sub_v"])
def test_reducers(kind: str, reducer: str, name: str):
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        put(g, given)
        fields = name[-1] if name.startswith("copy") else (name[0], name[-1])
        message = getattr(library.function, name)(*fields, "m")
        reduce = getattr(library.function, reducer)("m", "out")
        # DGL's apply functions see infinities where no edge leads, ours see zeros.
        apply = None if reducer in ("max", "min") else product
        g.update_all(message, reduce, apply)
        return dict(g.dstdata)

    check(GRAPHS[kind], program, features(kind, (2,), (2,), name))


@pytest.mark.parametrize("reducer", ["sum", "mean", "max", "min"])
def test_no_edges(reducer: str):
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        g.ndata["x"] = given["x"]
        message, reduce = library.function.copy_u("x", "m"), getattr(library.function, reducer)
        g.update_all(message, reduce("m", "out"))
        # DGL's gradient of an extreme of nothing is that of node 0.
        return g.ndata["out"].detach() if reducer in ("max", "min") else g.ndata["out"]

    check(lambda library: homogeneous(library, 4, 0), program, {"x": rows(4, 3)})


def test_fields_that_do_not_fit():
    for library in (theirs, ours):
        g = homogeneous(library)
        g.ndata["x"] = rows(9, 2)
        with pytest.raises(library.DGLError, match="Invalid message"):
            g.update_all(library.function.copy_u("x", "m"), library.function.sum("other", "y"))
        with pytest.raises(KeyError, match="missing"):
            g.update_all(library.function.copy_u("missing", "m"), library.function.sum("m", "y"))


def test_functions_of_dgl_serve_too():
    g = homogeneous(ours)
    g.ndata["x"] = rows(9, 2)
    g.update_all(theirs.function.u_add_v("x", "x", "m"), theirs.function.max("m", "theirs"))
    g.update_all(fn.u_add_v("x", "x", "m"), fn.max("m", "ours"))
    assert g.ndata["theirs"].equal(g.ndata["ours"])


def test_functions_have_the_same_attributes():
    for name in ("u_mul_e", "v_dot_u", "e_div_v"):
        one, other = getattr(fn, name)("a", "b", "c"), getattr(theirs.function, name)("a", "b", "c")
        for attribute in ("name", "binary_op", "lhs", "rhs", "lhs_field", "rhs_field", "out_field"):
            assert getattr(one, attribute) == getattr(other, attribute)
    for name in ("copy_u", "copy_e"):
        one, other = getattr(fn, name)("a", "b"), getattr(theirs.function, name)("a", "b")
        for attribute in ("name", "target", "in_field", "out_field"):
            assert getattr(one, attribute) == getattr(other, attribute)
    one, other = fn.mean("a", "b"), theirs.function.mean("a", "b")
    for attribute in ("name", "msg_field", "out_field"):
        assert getattr(one, attribute) == getattr(other, attribute)


def test_features_of_two_types():
    for library in (theirs, ours):
        g = homogeneous(library)
        g.ndata["u"], g.edata["e"] = rows(9, 2), rows(30, 1).double()
        with pytest.raises(library.DGLError, match="type"):
            g.update_all(library.function.u_mul_e("u", "e", "m"), library.function.sum("m", "h"))
        with pytest.raises(library.DGLError, match="type"):
            g.apply_edges(library.function.u_add_e("u", "e", "m"))
