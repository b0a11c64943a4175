"""Methods that are functions of the same name, incidence, what features begin with, homophily."""

from __future__ import annotations

from typing import Any

import networkx
import pytest
import torch
from torch import Tensor

from .both import check, heterograph, homogeneous, ours, same, theirs, whole


def bidirected(library: Any) -> Any:
    return library.to_bidirected(homogeneous(library, 12, 40))


CALLS: dict[str, Any] = {
    "line_graph": lambda g: whole(g.line_graph()),
    "to_simple": lambda g: whole(g.to_simple(return_counts="times")),
    "khop_in_subgraph": lambda g: [whole(g.khop_in_subgraph(2, 2)[0]), g.khop_in_subgraph(2, 2)[1]],
    "khop_out_subgraph": lambda g: whole(g.khop_out_subgraph([1, 4], 1)[0]),
}


@pytest.mark.parametrize("name", CALLS)
def test_methods(name: str):
    same(CALLS[name](homogeneous(ours)), CALLS[name](homogeneous(theirs)))


def test_networkx():
    got, wanted = (homogeneous(library).to_networkx() for library in (ours, theirs))
    assert networkx.utils.graphs_equal(got, wanted)


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
@pytest.mark.parametrize("typestr", ["in", "out", "both"])
@pytest.mark.parametrize("method", ["inc", "incidence_matrix"])
def test_incidence(typestr: str, method: str):
    def matrix(library: Any) -> Tensor:
        return getattr(homogeneous(library), method)(typestr).to_dense()

    same(matrix(ours), matrix(theirs))


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
@pytest.mark.parametrize("typestr", ["in", "out"])
def test_incidence_of_two_types(typestr: str):
    got, wanted = (heterograph(k).inc(typestr, etype="buys").to_dense() for k in (ours, theirs))
    same(got, wanted)
    with pytest.raises(AssertionError, match="one type"):
        heterograph(ours).inc("both", etype="buys")
    with pytest.raises(ours.DGLError, match="Invalid incidence matrix type"):
        homogeneous(ours).inc("all")


def test_the_adjacency_by_its_long_name():
    same(homogeneous(ours).adjacency_matrix().to_dense(), homogeneous(ours).adj().to_dense())


def numbers(shape: tuple[int, ...], dtype: torch.dtype, ctx: Any, ids: slice) -> Tensor:
    """The number of a row, negative."""
    rows = torch.arange(ids.start, ids.stop, dtype=dtype, device=ctx)
    return -rows.view(-1, *(1,) * (len(shape) - 1)).expand(shape).clone()


@pytest.mark.parametrize("field", [None, "x"])
def test_what_features_begin_with(field: str | None):
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        g.set_n_initializer(numbers, field)
        g.set_e_initializer(numbers, field)
        if field is None:
            g.set_n_initializer(library.init.zero_initializer, "z")
        g.ndata["x"], g.edata["y"] = torch.ones(9, 2), torch.ones(30)
        g.add_nodes(2)
        g.add_edges([0, 10], [10, 12], {"x": torch.ones(2, 1)})
        g.nodes[[1, 3]].data["z"] = torch.ones(2, 3)
        g = g.local_var()
        g.nodes[[1, 3]].data["w"] = torch.ones(2, 3)
        g.edges[[4]].data["w"] = torch.ones(1)
        f = library.function
        g.send_and_recv([0, 1], f.copy_u("x", "m"), f.sum("m", "s"))
        return whole(g)

    check(homogeneous, program)


def test_what_features_of_one_type_begin_with():
    def program(library: Any, g: Any, given: dict[str, Tensor]) -> Any:
        g.set_n_initializer(numbers, ntype="item")
        g.set_e_initializer(numbers, etype="buys")
        g.add_nodes(1, {"x": torch.ones(1)}, ntype="user")
        g.add_nodes(2, {"x": torch.ones(2)}, ntype="item")
        g.add_edges([0], [0], {"y": torch.ones(1)}, etype="buys")
        g.add_edges([0], [0], {"y": torch.ones(1)}, etype="follows")
        g["buys"].nodes["item"].data["w"] = torch.ones(g.num_nodes("item"))
        return whole(g)

    check(heterograph, program)


@pytest.mark.parametrize("name", ["node", "edge", "linkx", "adjusted"])
def test_homophily(name: str):
    for classes in (2, 4):
        y = torch.arange(12) % classes
        got, wanted = (
            getattr(library, f"{name}_homophily")(bidirected(library), y)
            for library in (ours, theirs)
        )
        assert got == pytest.approx(wanted, abs=1e-6)
