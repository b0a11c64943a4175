"""What calls of programs give: results, gradients, edited arguments, or an exception."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor

Wanted = set[str] | None


@dataclass
class Run:
    """What one program gave: tensors by name, or the exception that it raised. `needs` are the
    names of the results that require a gradient."""

    results: dict[str, Any] = field(default_factory=dict)
    gradients: dict[str, Tensor | None] = field(default_factory=dict)
    edited: dict[str, Tensor] = field(default_factory=dict)
    needs: set[str] = field(default_factory=set)
    error: Exception | None = None


def run(
    function: Callable[..., Any], args: Sequence[Tensor], wanted: Wanted = None, order: int = 1
) -> Run:
    """Calls a function and differentiates fixed combinations of its results: of those named in
    `wanted`, or of all that require a gradient; then, for an `order` of 2, of these gradients."""
    (found,) = run_all(lambda *given: (function(*given),), [args], [wanted], order)
    return found


def run_all(
    function: Callable[..., Any],
    lists: Sequence[Sequence[Tensor]],
    wanted: Sequence[Wanted],
    order: int = 1,
) -> list[Run]:
    """Calls a function of all these arguments, which gives a result for each list of them."""
    runs = [Run() for _ in lists]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            outputs = function(*(x for args in lists for x in args))
            for run, output in zip(runs, outputs, strict=True):
                _note_results(run, output)
            _differentiate(runs, lists, wanted, order)
        except Exception as error:
            return [Run(error=error) for _ in lists]
    for run, args in zip(runs, lists, strict=True):
        run.results = {k: _plain(y) for k, y in run.results.items()}
        run.edited = {f"argument {k}": x.detach() for k, x in enumerate(args)}
    return runs


def _note_results(run: Run, output: Any) -> None:
    run.results = {f"result {k}": y for k, y in enumerate(pytree.tree_leaves(output))}
    run.needs = {k for k, y in run.results.items() if isinstance(y, Tensor) and y.requires_grad}


def _plain(x: Any) -> Any:
    return x.detach() if isinstance(x, Tensor) else x


def _differentiate(
    runs: Sequence[Run],
    lists: Sequence[Sequence[Tensor]],
    wanted: Sequence[Wanted],
    order: int,
) -> None:
    """Fills in the gradients: one backward for all."""
    tops: list[Tensor] = []
    for run, names in zip(runs, wanted, strict=True):
        chosen = run.needs if names is None else run.needs & names
        tops += [y for k, y in run.results.items() if k in chosen]
    leaves = [
        (run, k, x) for run, args in zip(runs, lists, strict=True) for k, x in enumerate(args)
    ]
    leaves = [leaf for leaf in leaves if leaf[2].requires_grad]
    for power in range(1, order + 1):
        if not tops or not leaves:
            return
        found = torch.autograd.grad(
            tops,
            [x for _, _, x in leaves],
            [_cotangent(y) for y in tops],
            allow_unused=True,
            create_graph=power < order,
        )
        for (run, k, _), g in zip(leaves, found, strict=True):
            run.gradients[f"gradient {power} of argument {k}"] = None if g is None else g.detach()
        tops = [g for g in found if g is not None and g.requires_grad]


def _cotangent(y: Tensor) -> Tensor:
    """Numbers that depend on the shape alone."""
    return torch.cos(1.7 * torch.arange(y.numel()) + y.dim()).view(y.shape).to(y.dtype)
