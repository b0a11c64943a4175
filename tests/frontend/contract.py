"""Everything that a caller can observe of one call, eager or compiled: results with their types,
layouts and autograd flags, gradients (None is not zero), what became of arguments and buffers, and
what was raised."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

import gnnc
from gnnc.frontend.torch.importer.errors import BUG

RELATIVE = {torch.float32: 2e-5, torch.float64: 1e-10}


@dataclass
class Observed:
    """One call. `raised` is the exception's type; then nothing else is said."""

    raised: type[BaseException] | None = None
    tensors: dict[str, Tensor | None] = field(default_factory=dict[str, "Tensor | None"])
    facts: dict[str, Any] = field(default_factory=dict[str, Any])


def fresh(tree: Any) -> Any:
    """The same arguments as leaves of their own, in memory of their own, with their strides."""

    def leaf(x: Any) -> Any:
        if not isinstance(x, Tensor) or x.layout is not torch.strided:
            return x
        y = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype).copy_(x.detach())
        return y.requires_grad_(x.requires_grad)

    return pytree.tree_map(leaf, tree)


def observe(
    function: Callable[..., Any],
    args: Sequence[Any],
    after: Callable[[Any, Sequence[Any]], Any] | None = None,
) -> Observed:
    """Call a function (or module) on fresh arguments and differentiate a combination of the results
    that can be. `after(results, arguments)` may do more; what it returns is compared too."""
    mine, seen = fresh(tuple(args)), Observed()
    module = function if isinstance(function, nn.Module) else nn.Module()
    module.zero_grad(set_to_none=True)
    try:
        results = function(*mine)
        outputs = [y for y in pytree.tree_leaves(results) if isinstance(y, Tensor)]
        note_results(seen, results)
        if after is not None:
            more = pytree.tree_leaves(after(results, mine))
            seen.tensors |= {f"after {k}": y for k, y in enumerate(more) if isinstance(y, Tensor)}
            seen.facts["after"] = [y for y in more if not isinstance(y, Tensor)]
        total = [weighted(y, k) for k, y in enumerate(outputs) if y.requires_grad]
        if total:
            torch.stack([t.double() for t in total]).sum().backward()
    except Exception as error:
        return Observed(type(error))
    given = [x for x in pytree.tree_leaves(mine) if isinstance(x, Tensor)]
    seen.tensors |= {f"argument {k}": x.detach() for k, x in enumerate(given)}
    seen.tensors |= {f"gradient {k}": x.grad for k, x in enumerate(given) if x.is_leaf}
    seen.tensors |= {f"gradient of {n}": p.grad for n, p in module.named_parameters()}
    seen.tensors |= dict(module.named_buffers())
    return seen


def note_results(seen: Observed, results: Any) -> None:
    leaves, structure = pytree.tree_flatten(results)
    seen.facts["structure"] = str(structure)
    for k, y in enumerate(leaves):
        if not isinstance(y, Tensor):
            seen.facts[f"result {k}"] = y
            continue
        seen.tensors[f"result {k}"] = y.detach().clone()
        seen.facts[f"result {k}"] = (y.requires_grad, y.is_contiguous(), y.is_leaf)


def weighted(y: Tensor, k: int) -> Tensor:
    w = torch.cos(torch.arange(y.numel(), dtype=torch.float64) * 0.7 + k).to(y.dtype)
    return (y.to_dense().reshape(-1) * w).sum()


def assert_same(want: Observed, got: Observed) -> None:
    """Equal in all that was observed; numbers within the rounding of their type."""
    assert got.raised == want.raised, f"raised {got.raised}, eager {want.raised}"
    assert got.facts == want.facts
    assert got.tensors.keys() == want.tensors.keys()
    for name, x in want.tensors.items():
        y = got.tensors[name]
        if x is None or y is None:
            assert y is x, f"{name}: {'None' if y is None else 'a tensor'}, eager the other"
            continue
        x, y = x.to_dense(), y.to_dense()
        assert (y.shape, y.dtype) == (x.shape, x.dtype), name
        if not x.is_floating_point():
            assert torch.equal(x, y), f"{name}: {y}, eager {x}"
            continue
        finite = x[torch.isfinite(x)]
        # what terms of the size of 1 cancel to has no relative accuracy
        size = max(float(finite.abs().max()) if finite.numel() else 0.0, 1e-2)
        close = RELATIVE[x.dtype]
        assert torch.allclose(x, y, rtol=close, atol=close * size, equal_nan=True), (
            f"{name}: {y}, eager {x}"
        )


def check(
    function: Callable[..., Any],
    *calls: Sequence[Any],
    after: Callable[[Any, Sequence[Any]], Any] | None = None,
) -> Any:
    """Each call of the compiled function is the same as eager's, in this order. A module is copied
    first. What runs in torch does so for a reason that is no bug of gnnc's own. Returns what
    `gnnc.explain` says."""
    own = copy.deepcopy(function) if isinstance(function, nn.Module) else function
    compiled = gnnc.compile(function)
    for args in calls:
        assert_same(observe(own, args, after), observe(compiled, args, after))
    report = gnnc.explain(compiled)
    assert not any(BUG in message for message in report.fallbacks), report.fallbacks
    return report
