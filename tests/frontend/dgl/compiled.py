"""Graphs of several sizes, and the comparison of code compiled over them with itself in eager,
where DGL's own functions run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import gnnc
from gnnc.bench.dgl_shim import install

install()
dgl = pytest.importorskip("dgl", reason="dgl has no wheel for this Python or machine")

SIZES = ((30, 18, 200), (45, 25, 330), (12, 7, 90))


def ends(n: int, m: int, e: int) -> tuple[Tensor, Tensor]:
    return torch.randint(n, (e,)), torch.randint(m, (e,))


def graph(n: int, e: int, loops: bool = True) -> Any:
    """Parallel edges, and with `loops` no node that none leads to."""
    g = dgl.graph(ends(n, n, e), num_nodes=n)
    return dgl.add_self_loop(g) if loops else g


def relations(n: int, m: int, e: int, last: int = 40) -> Any:
    data = {
        ("user", "follows", "user"): ends(n, n, e),
        ("user", "plays", "game"): ends(n, m, e),
        ("game", "liked", "user"): ends(m, n, last),
    }
    return dgl.heterograph(data, num_nodes_dict={"user": n, "game": m})


def block(n: int, m: int, e: int) -> Any:
    return dgl.create_block(ends(n, m, e), num_src_nodes=n, num_dst_nodes=m)


def batch(n: int, m: int, e: int) -> Any:
    return dgl.batch([graph(n, e), graph(m, e // 2), graph(3, 4)])


def leaves(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x.detach().clone().requires_grad_() if x.is_floating_point() else x
    return {k: leaves(v) for k, v in x.items()} if isinstance(x, dict) else x


def tensors(x: Any) -> list[Tensor]:
    """The tensors in dicts and lists; graphs and sparse matrices have none of their own."""
    if isinstance(x, Tensor):
        return [x]
    parts = x.values() if isinstance(x, dict) else x if isinstance(x, (list, tuple)) else ()
    return [t for v in parts for t in tensors(v)]


def run(f: Callable[..., Any], model: Any, args: tuple[Any, ...]) -> list[Tensor]:
    """The results, and the gradients of all arguments, and of the parameters of a module."""
    args = tuple(leaves(x) for x in args)
    results = tensors(f(*args))
    wanted = [x for a in args for x in tensors(a if not isinstance(a, list) else [])]
    parameters = list(model.parameters()) if isinstance(model, nn.Module) else []
    wanted = [x for x in wanted if x.requires_grad] + parameters
    loss = sum(x.sin().sum() for x in results)
    grads = torch.autograd.grad(loss, wanted, allow_unused=True)  # pyright: ignore
    zeros = [torch.zeros_like(x) if g is None else g for x, g in zip(wanted, grads, strict=True)]
    return [x.detach() for x in results] + zeros


def eager(model: Any) -> Callable[..., Any]:
    """A module as it was before it was compiled in place; a function stays as it is."""
    if not isinstance(model, nn.Module):
        return model
    return lambda *args: type(model).forward(model, *args)


def check(model: Any, make: Callable[..., tuple[Any, ...]], programs: int = 1) -> None:
    """A module or function of graphs, compiled: DGL's values and gradients, one program for graphs
    of all sizes, nothing left to torch."""
    compiled = gnnc.compile(model)
    for sizes in SIZES:
        args = make(*sizes)
        expected, found = run(eager(model), model, args), run(compiled, model, args)
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)
    report = gnnc.explain(compiled)
    assert report.fallbacks == []
    assert len(report.programs) == programs
