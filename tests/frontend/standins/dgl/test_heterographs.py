"""Graphs of several node and edge types."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from .both import EMPTY, LARGE, SMALL, Counts, check, heterograph, ours, rows, theirs

SIZES = {"empty": EMPTY, "small": SMALL, "large": LARGE}
RELATIONS = ["follows", "buys", "sells", ("shop", "near", "shop")]


def inputs(counts: Counts) -> dict[str, Tensor]:
    g = heterograph(ours, counts)
    nodes = {t: rows(g.num_nodes(t), 2, 3, seed=i) for i, t in enumerate(g.ntypes)}
    edges = {f"e {e}": rows(g.num_edges(e), 2, 1, seed=i) for i, e in enumerate(g.etypes)}
    return {**nodes, **edges}


def put(g: Any, given: dict[str, Tensor]) -> None:
    g.ndata["h"] = {t: given[t] for t in g.ntypes}
    g.edata["w"] = {e: given[f"e {e[1]}"] for e in g.canonical_etypes}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("cross", ["sum", "mean", "max", "min", "stack", "user"])
@pytest.mark.parametrize("reducer", ["sum", "mean", "max"])
def test_multi_update_all(size: str, cross: str, reducer: str):
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        put(g, given)
        fn = library.function
        reduce = getattr(fn, reducer)("m", "out")
        join = (lambda parts: parts[0] * len(parts)) if cross == "user" else cross
        # DGL's gradient of the maximum of no edges is an error.
        known = RELATIONS[:3] if reducer == "max" else RELATIONS
        functions = {e: (fn.u_mul_e("h", "w", "m"), reduce) for e in reversed(known)}
        g.multi_update_all(functions, join)
        return {t: dict(g.nodes[t].data) for t in g.ntypes}

    check(partial(heterograph, counts=SIZES[size]), program, inputs(SIZES[size]))


@pytest.mark.parametrize("cross", ["sum", "max", "stack"])
@pytest.mark.parametrize("last", ["sum", "max"])
def test_maxima_of_no_messages(cross: str, last: str):
    """DGL has zeros where a type has no edges, and else infinities, which stay if the last reduce
    function makes none."""

    def results(library: Any) -> Tensor:
        data = {
            ("user", "a", "item"): (torch.tensor([0, 1]), torch.tensor([0, 0])),
            ("user", "b", "item"): (torch.tensor([0, 1]), torch.tensor([0, 1])),
            ("user", "none", "item"): (torch.tensor([], dtype=torch.int64),) * 2,
        }
        g, fn = library.heterograph(data, {"user": 2, "item": 3}), library.function
        g.nodes["user"].data["h"] = -torch.arange(1.0, 5).reshape(2, 2)
        highest = fn.copy_u("h", "m"), fn.max("m", "out")
        final = fn.copy_u("h", "m"), getattr(fn, last)("m", "out")
        g.multi_update_all({"none": highest, "a": highest, "b": final}, cross)
        return g.nodes["item"].data["out"]

    torch.testing.assert_close(results(ours), results(theirs))


def test_apply_functions():
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        put(g, given)
        fn = library.function

        def one(nodes: Any) -> dict[str, Tensor]:
            return {"out": nodes.data["out"] * 2}

        def both(nodes: Any) -> dict[str, Tensor]:
            return {"out": nodes.data["out"] + nodes.data["h"]}

        pair = fn.copy_u("h", "m"), fn.sum("m", "out")
        g.multi_update_all({"buys": (*pair, one), "sells": pair}, "sum", both)
        return dict(g.nodes["item"].data)

    check(heterograph, program, inputs(SMALL))


@pytest.mark.parametrize("reducer", ["sum", "mean", "max"])
def test_one_type(reducer: str):
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        put(g, given)
        fn = library.function
        reduce = getattr(fn, reducer)("m", "out")
        g.update_all(fn.u_add_v("h", "h", "m"), reduce, etype="buys")
        part = g["sells"]
        part.update_all(fn.copy_u("h", "m"), getattr(fn, reducer)("m", "other"))
        part.apply_edges(fn.u_dot_v("h", "h", "s"))
        g.apply_edges(fn.v_sub_e("h", "w", "s"), etype=("user", "follows", "user"))
        g.apply_edges(lambda edges: {"t": edges.src["h"]}, edges=[1, 0], etype="buys")
        g.apply_nodes(lambda nodes: {"h": nodes.data["h"] * 2}, ntype="shop")
        return {t: dict(g.nodes[t].data) for t in g.ntypes}, [
            dict(g.edges[e].data) for e in g.etypes
        ]

    check(heterograph, program, inputs(SMALL))


@pytest.mark.parametrize("reducer", ["sum", "max", "min"])
def test_all_types_at_once(reducer: str):
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        put(g, given)
        fn = library.function
        # DGL fills memory that it has not set where the last type has no edge.
        part = g.edge_type_subgraph(["follows", "buys", "sells"])
        part.update_all(fn.copy_u("h", "m"), getattr(fn, reducer)("m", "out"))
        part.apply_edges(fn.u_mul_v("h", "h", "s"))
        return {t: part.nodes[t].data["out"] for t in ("user", "item")}, dict(part.edata)

    check(heterograph, program, inputs(SMALL))


def test_users_functions_need_a_type():
    for library in (theirs, ours):
        g = heterograph(library)
        with pytest.raises(library.DGLError, match="multi_update_all"):
            g.update_all(lambda edges: {}, library.function.sum("m", "h"))
        with pytest.raises(library.DGLError, match="apply_edges"):
            g.apply_edges(lambda edges: {})
        with pytest.raises(NotImplementedError, match="mean"):
            g.update_all(library.function.copy_u("h", "m"), library.function.mean("m", "h"))


def test_names():
    for name in ("ntypes", "etypes", "canonical_etypes", "srctypes", "dsttypes", "is_homogeneous"):
        assert getattr(heterograph(ours), name) == getattr(heterograph(theirs), name)
    for relation in RELATIONS:
        one, other = heterograph(ours)[relation], heterograph(theirs)[relation]
        for name in ("ntypes", "etypes", "srctypes", "dsttypes", "is_homogeneous", "is_block"):
            assert getattr(one, name) == getattr(other, name)
    g, h = heterograph(ours), heterograph(theirs)
    assert [g.get_ntype_id(t) for t in g.ntypes] == [h.get_ntype_id(t) for t in h.ntypes]
    assert [g.get_etype_id(e) for e in RELATIONS] == [h.get_etype_id(e) for e in RELATIONS]
    assert [g.to_canonical_etype(e) for e in RELATIONS] == [
        h.to_canonical_etype(e) for e in RELATIONS
    ]
    assert sorted(g.metagraph().edges(keys=True)) == sorted(h.metagraph().edges(keys=True))


def test_wildcards():
    g = heterograph(ours)
    assert g["user", :, "item"].canonical_etypes == [("user", "buys", "item")]
    with pytest.raises(NotImplementedError, match="2 edge types"):
        g["shop", :, :]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda g: g["unknown"],
        lambda g: g["user", "item"],
        lambda g: g["shop", :, "user"],
        lambda g: g.num_nodes("unknown"),
        lambda g: g.num_edges("unknown"),
        lambda g: g.nodes["unknown"],
        lambda g: g.edges["unknown"],
        lambda g: g.nodes(),
        lambda g: g.edges(),
        lambda g: g.in_degrees(),
        lambda g: g.to_canonical_etype("unknown"),
        lambda g: g.batch_num_nodes(),
        lambda g: g.edges(etype="buys", form="unknown"),
    ],
)
def test_mistakes(wrong: Any):
    for library in (theirs, ours):
        with pytest.raises(library.DGLError):
            wrong(heterograph(library))


def test_one_name_of_two_types():
    ends = torch.tensor([0]), torch.tensor([1])
    for library in (theirs, ours):
        g = library.heterograph({("a", "x", "a"): ends, ("b", "x", "b"): ends})
        with pytest.raises(library.DGLError, match="ambiguous"):
            g.num_edges("x")
        assert g.num_edges(("b", "x", "b")) == 1
