"""The same program on a graph of DGL and on one of ours: equal results, equal gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

import gnnc.dgl as ours
from gnnc.bench.dgl_shim import install

install()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    theirs = pytest.importorskip("dgl")
    import dgl.function
    import dgl.ops  # noqa: F401

TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-10}
"""Relative to the largest number of a tensor."""

Program = Callable[[Any, Any, dict[str, Tensor]], Any]
"""Takes the library, a graph of it and tensors."""


class Counts(NamedTuple):
    """Numbers of nodes of a heterograph's types."""

    user: int
    item: int
    shop: int


EMPTY, SMALL, LARGE = Counts(3, 2, 2), Counts(6, 5, 3), Counts(40, 17, 9)


def random_ends(sources: int, targets: int, edges: int, seed: int) -> tuple[Tensor, Tensor]:
    """Ends with parallel edges, loops, and no edge to the last target."""
    drawn = torch.Generator().manual_seed(seed)
    src = torch.randint(sources, (edges,), generator=drawn)
    dst = torch.randint(max(targets - 1, 1), (edges,), generator=drawn)
    if edges > 3:
        src[1], dst[1] = src[0], dst[0]
        src[2] = dst[2] = 0
    return src, dst


def homogeneous(library: Any, nodes: int = 9, edges: int = 30, seed: int = 0) -> Any:
    """A graph of one type."""
    return library.graph(random_ends(nodes, nodes, edges, seed), num_nodes=nodes)


def bipartite(library: Any, nodes: int = 7, others: int = 5, edges: int = 20) -> Any:
    """A graph of two node types and one edge type."""
    ends = random_ends(nodes, others, edges, 1)
    return library.heterograph({("user", "buys", "item"): ends}, {"user": nodes, "item": others})


def block(library: Any, sources: int = 8, targets: int = 5, edges: int = 20) -> Any:
    """A block of one type."""
    ends = random_ends(sources, targets, edges, 2)
    return library.create_block(ends, num_src_nodes=sources, num_dst_nodes=targets)


def heterograph(library: Any, counts: Counts = SMALL) -> Any:
    """Four edge types, one of them without edges, two with one name, and one on a single type."""
    user, item, shop = counts
    return library.heterograph(
        {
            ("user", "follows", "user"): random_ends(user, user, 3 * user, 3),
            ("user", "buys", "item"): random_ends(user, item, 2 * user, 4),
            ("shop", "sells", "item"): random_ends(shop, item, 4 * shop, 5),
            ("shop", "near", "shop"): random_ends(shop, shop, 0, 6),
        },
        counts._asdict(),
    )


def rows(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Numbers that are not near zero, so that quotients are not extreme."""
    drawn = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (drawn + drawn.sign() / 2).to(dtype)


def check(
    make: Callable[[Any], Any], program: Program, inputs: Mapping[str, Tensor] | None = None
) -> None:
    """Runs a program in both libraries in `float32` and `float64`; all that it returns is equal."""
    for dtype in TOLERANCE:
        given = {k: v.to(dtype) if v.is_floating_point() else v for k, v in (inputs or {}).items()}
        wanted, got = (_run(library, make, program, given) for library in (theirs, ours))
        same(got, wanted)


def _run(
    library: Any, make: Callable[[Any], Any], program: Program, inputs: Mapping[str, Tensor]
) -> Any:
    """The results, and the gradients of a weighted sum of all floating ones."""
    given = {k: v.clone().requires_grad_(v.is_floating_point()) for k, v in inputs.items()}
    results = program(library, make(library), given)
    outputs = [t for t in tensors(results) if t.requires_grad]
    if not outputs:
        return results
    loss = sum((t * rows(*t.shape, seed=9, dtype=t.dtype)).sum() for t in outputs)
    floating = {k: v for k, v in given.items() if v.requires_grad}
    gradients = torch.autograd.grad(loss, list(floating.values()), allow_unused=True)
    return results, dict(zip(floating, gradients, strict=True))


def tensors(value: Any) -> list[Tensor]:
    """The tensors in nested dicts, lists and tuples."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, Mapping):
        return [t for part in value.values() for t in tensors(part)]
    if isinstance(value, (list, tuple)):
        return [t for part in value for t in tensors(part)]
    return []


def same(got: Any, wanted: Any) -> None:
    """Asserts that two nested results are equal, up to rounding in tensors."""
    if isinstance(wanted, Tensor):
        assert isinstance(got, Tensor)
        assert got.shape == wanted.shape and got.dtype == wanted.dtype
        if not wanted.is_floating_point():
            assert torch.equal(got, wanted), (got, wanted)
            return
        finite = wanted.detach()[wanted.detach().isfinite()].abs()
        largest = float(finite.max()) if finite.numel() else 0.0
        bound = TOLERANCE[wanted.dtype] * max(1.0, largest)
        torch.testing.assert_close(got, wanted, rtol=0, atol=bound, equal_nan=True)
    elif isinstance(wanted, Mapping):
        assert set(got) == set(wanted)
        for key in wanted:
            same(got[key], wanted[key])
    elif isinstance(wanted, (list, tuple)):
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            same(one, other)
    else:
        assert got == wanted


def whole(graph: Any) -> dict[str, Any]:
    """All that there is to a graph: types, sizes, ends and features."""
    found: dict[str, Any] = {
        "etypes": list(graph.canonical_etypes),
        "ntypes": list(graph.ntypes),
        "block": graph.is_block,
        "idtype": graph.idtype,
        "sizes": (graph.num_nodes(), graph.num_edges()),
    }
    for etype in graph.canonical_etypes:
        found[f"ends of {etype}"] = graph.edges(etype=etype, order="eid")
        found[f"features of {etype}"] = dict(graph.edges[etype].data)
    for ntype in graph.srctypes:
        found[f"sources {ntype}"] = graph.num_src_nodes(ntype)
        found[f"features of sources {ntype}"] = dict(graph.srcnodes[ntype].data)
    for ntype in graph.dsttypes:
        found[f"targets {ntype}"] = graph.num_dst_nodes(ntype)
        found[f"features of targets {ntype}"] = dict(graph.dstnodes[ntype].data)
    return found
