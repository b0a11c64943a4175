"""Features of nodes and edges: views, scopes, copies and errors."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor

from .both import bipartite, block, check, heterograph, homogeneous, ours, rows, same, theirs, whole


def test_views():
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        x = given["x"]
        g.ndata["x"] = x
        g.nodes[[3, 1]].data["x"] = x[:2] * 2
        g.nodes[:].data["all"] = x
        g.nodes[torch.tensor([2])].data["new"] = x[:1]
        g.edges[[4]].data["e"] = x[:1]
        g.edges[:].data["all"] = x[g.edges()[0]]
        g.edges[g.edges()[0][5], g.edges()[1][5]].data["all"] = x[:1]
        g.ndata.update({"y": x, "z": x})
        popped = g.ndata.pop("z")
        del g.ndata["y"]
        seen = (len(g.ndata), sorted(g.ndata), "x" in g.ndata, "y" in g.ndata, len(g.edata))
        some = g.nodes[[3, 1]].data["x"], g.edges[[4, 2]].data["e"], g.nodes[5].data["x"]
        return popped, seen, some, dict(g.ndata), dict(g.edata), g.ndata.get("none", None)

    check(lambda library: library.to_simple(homogeneous(library), None), program, {"x": rows(9, 2)})


def test_views_of_types():
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        g.ndata["x"] = {t: given[t] for t in ("user", "shop")}
        g.nodes["item"].data["y"] = given["item"]
        g.edata["w"] = {("user", "buys", "item"): given["buys"]}
        g.edges["follows"].data["w"] = given["follows"]
        seen = dict(g.ndata["x"]), dict(g.ndata["y"]), g.edata["w"]
        del g.ndata["y"]
        return seen, sorted(g.ndata.keys()), sorted(g.edges["buys"].data)

    g = heterograph(ours)
    nodes = {t: rows(g.num_nodes(t), 2) for t in g.ntypes}
    edges = {e: rows(g.num_edges(e)) for e in g.etypes}
    check(heterograph, program, {**nodes, **edges})


@pytest.mark.parametrize("make", [bipartite, block])
def test_sides(make: Any):
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        g.srcdata["h"], g.dstdata["h"] = given["u"], given["v"]
        g.srcnodes[g.srctypes[0]].data["k"] = given["u"]
        g.dstnodes[g.dsttypes[0]].data["l"] = given["v"]
        return dict(g.srcdata), dict(g.dstdata)

    g = make(ours)
    check(make, program, {"u": rows(g.num_src_nodes(), 2), "v": rows(g.num_dst_nodes(), 2)})


def test_scopes():
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        g.ndata["x"] = given["x"]
        with g.local_scope():
            g.ndata["x"], g.ndata["y"] = given["x"] * 2, given["x"]
            g.edata["e"] = given["x"][g.edges()[0]]
            with g.local_scope():
                g.ndata.pop("x")
            inside = dict(g.ndata), dict(g.edata)
        with pytest.raises(ZeroDivisionError), g.local_scope():
            g.ndata["y"] = given["x"]
            raise ZeroDivisionError
        local = g.local_var()
        local.ndata["z"] = given["x"]
        return inside, dict(g.ndata), dict(g.edata), sorted(local.ndata)

    check(homogeneous, program, {"x": rows(9, 2)})


def test_a_slice_shares_features():
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        g["buys"].srcdata["h"] = given["x"]
        g["follows"].ndata["k"] = given["x"]
        return dict(g.nodes["user"].data), sorted(g["follows"].srcdata)

    check(heterograph, program, {"x": rows(6, 2)})


def test_clones_share_nothing():
    g = homogeneous(ours)
    g.ndata["x"] = rows(9, 2)
    made = g.clone()
    made.ndata["x"] += 1
    assert g.ndata["x"].equal(rows(9, 2))
    assert g.local_var().ndata["x"] is g.ndata["x"]


def test_copies_and_pickles():
    for make in (homogeneous, heterograph, block):
        g = make(ours)
        for etype in g.canonical_etypes:
            g.edges[etype].data["e"] = rows(g.num_edges(etype), 1)
        for made in (copy.deepcopy(g), pickle.loads(pickle.dumps(g)), g.clone()):
            same(whole(made), whole(g))
            assert made.in_degrees(etype=g.canonical_etypes[0]) is not None
        made = pickle.loads(pickle.dumps(g))
        made.srcnodes[g.srctypes[0]].data["h"] = rows(g.num_src_nodes(g.srctypes[0]))
        shared = not g.is_block
        assert ("h" in made.nodes[g.srctypes[0]].data) and (
            "h" in made._target_frames[g.srctypes[0]]
        ) == shared


@pytest.mark.parametrize("make", [homogeneous, bipartite, block])
def test_text(make: Any):
    def told(library: Any) -> str:
        g = make(library)
        g.edata["e"] = torch.ones(g.num_edges(), 2)
        return repr(g)

    assert told(ours) == told(theirs)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda g: g.ndata.__setitem__("x", torch.ones(3)),
        lambda g: g.edata.__setitem__("x", torch.ones(3, 30)),
        lambda g: g.nodes[[1, 2]].data.__setitem__("x", torch.ones(3)),
        lambda g: g.nodes[2:5],
        lambda g: g.ndata.__setitem__("x", torch.ones(9, device="meta")),
    ],
)
def test_mistakes(wrong: Any):
    for library in (ours, theirs):
        with pytest.raises(library.DGLError):
            wrong(homogeneous(library))


def test_other_mistakes():
    for library in (ours, theirs):
        with pytest.raises(AssertionError):
            homogeneous(library).ndata["x"] = {"_N": torch.ones(9)}
        with pytest.raises(AssertionError):
            heterograph(library).ndata["x"] = torch.ones(9)
        with pytest.raises(KeyError, match="missing"):
            homogeneous(library).ndata["missing"]
    with pytest.raises(ours.DGLError, match="int32 or int64, but got torch.float32"):
        homogeneous(ours).nodes[[0.5]]
    with pytest.raises(TypeError, match="'x' must be a tensor, got list"):
        homogeneous(ours).ndata["x"] = [1.0] * 9


def test_formats_do_nothing():
    g = homogeneous(ours)
    g.create_formats_()
    assert g.formats()["created"] == ["coo"]
    same(whole(g.formats(["csr", "csc"])), whole(g))
    with pytest.raises(ours.DGLError, match="formats"):
        g.formats("dense")
    assert g.to("cpu").device == g.cpu().device == torch.device("cpu")
