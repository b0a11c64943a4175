"""A loss on one type of a call over all: what it does not need has zeros as gradient, as in DGL."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import gnnc

from .both import check, heterograph, ours, rows, theirs

TYPES = ["follows", "buys", "sells"]


def graph(library: Any) -> Any:
    """Without the type of no edges, for which DGL's gradients are what lies in memory."""
    return heterograph(library).edge_type_subgraph(TYPES)


def softmax(library: Any, g: Any, given: dict[str, Tensor], norm_by: str = "dst") -> Tensor:
    scores = library.ops.edge_softmax(g, {e: given[e] for e in TYPES}, norm_by=norm_by)
    return scores["user", "follows", "user"]


def softmax_of_sources(library: Any, g: Any, given: dict[str, Tensor]) -> Tensor:
    return softmax(library, g, given, "src")


def sources(library: Any, g: Any, given: dict[str, Tensor]) -> Tensor:
    with g.local_scope():
        g.ndata["h"] = {n: given[n] for n in g.ntypes}
        g.update_all(library.function.copy_u("h", "m"), library.function.sum("m", "o"))
        return g.nodes["user"].data["o"]


def weights(library: Any, g: Any, given: dict[str, Tensor]) -> Tensor:
    with g.local_scope():
        g.edata["w"] = {e: given[e[1]] for e in g.canonical_etypes}
        g.update_all(library.function.copy_e("w", "m"), library.function.max("m", "o"))
        return g.nodes["item"].data["o"]


def ends(library: Any, g: Any, given: dict[str, Tensor]) -> Tensor:
    with g.local_scope():
        g.ndata["h"] = {n: given[n] for n in g.ntypes}
        g.apply_edges(library.function.u_add_v("h", "h", "m"))
        return g.edges["follows"].data["m"]


def edges_themselves(library: Any, g: Any, given: dict[str, Tensor]) -> Tensor:
    with g.local_scope():
        g.edata["w"] = {e: given[e[1]] for e in g.canonical_etypes}
        g.apply_edges(library.function.copy_e("w", "m"))
        return g.edges["follows"].data["m"]


PROGRAMS = [softmax, softmax_of_sources, sources, weights, ends, edges_themselves]


def inputs() -> dict[str, Tensor]:
    g = graph(ours)
    at_nodes = {n: rows(g.num_nodes(n), 2, seed=i) for i, n in enumerate(g.ntypes)}
    return at_nodes | {e: rows(g.num_edges(e), 2, seed=i) for i, e in enumerate(TYPES)}


@pytest.mark.parametrize("program", PROGRAMS)
def test_zeros(program: Any):
    check(graph, program, inputs())


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("library", [ours, theirs])
def test_zeros_where_it_is_compiled(library: Any, program: Any):
    def gradients(compile: Any) -> dict[str, Tensor | None]:
        given = {key: value.requires_grad_() for key, value in inputs().items()}
        out = compile(lambda g, given: program(library, g, given))(graph(library), given)
        out.sin().sum().backward()
        return {key: value.grad for key, value in given.items()}

    wanted, got = gradients(lambda f: f), gradients(gnnc.compile)
    assert any(g is not None for g in wanted.values())
    torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("program", [softmax, softmax_of_sources, sources])
def test_types_together_are_one_program(program: Any):
    compiled = gnnc.compile(lambda g, given: program(ours, g, given))
    wanted = program(ours, graph(ours), inputs())
    torch.testing.assert_close(compiled(graph(ours), inputs()), wanted)
    assert gnnc.explain(compiled).fallbacks == []


def test_transforms_of_functions():
    g, given = graph(ours), inputs()
    got, wanted = [], []
    for i in range(3):
        many = {key: torch.stack([value, 2 * value, value + 1]) for key, value in given.items()}
        got.append(torch.vmap(lambda x: sources(ours, g, x))(many)[i])
        wanted.append(sources(ours, g, {key: value[i] for key, value in many.items()}))
    torch.testing.assert_close(got, wanted)
