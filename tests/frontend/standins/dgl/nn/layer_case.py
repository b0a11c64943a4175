"""How a case of the table is written: a layer, the graph it is called on, and its inputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from .graphs import build


@dataclass(frozen=True)
class Input:
    """A tensor with a row for each of the graph's `rows`, such as "sources" or "edges".

    `kind` is "normal", "positive", "flags" or a number, below which integers are drawn.
    """

    rows: str
    shape: tuple[int, ...] = ()
    kind: str = "normal"

    def draw(self, sizes: dict[str, int], generator: torch.Generator) -> Tensor:
        shape = (sizes[self.rows], *self.shape)
        if self.kind == "normal":
            return torch.randn(shape, generator=generator, dtype=torch.float64)
        if self.kind == "positive":
            return torch.rand(shape, generator=generator, dtype=torch.float64) + 0.5
        if self.kind == "flags":
            return torch.rand(shape, generator=generator) > 0.5
        return torch.randint(int(self.kind), shape, generator=generator)


def nodes(*shape: int) -> Input:
    return Input("sources", shape)


def targets(*shape: int) -> Input:
    return Input("targets", shape)


def edges(*shape: int) -> Input:
    return Input("edges", shape)


def types(rows: str, count: int, *shape: int) -> Input:
    return Input(rows, shape, str(count))


def pair(sources: int, of_targets: int) -> tuple[Input, Input]:
    return nodes(sources), targets(of_targets)


@dataclass(frozen=True)
class Part:
    """A layer in a layer's constructor: torch's if torch has the name, else the library's."""

    name: str
    args: tuple[Any, ...]
    options: dict[str, Any]

    def made(self, layers: ModuleType) -> nn.Module:
        home = layers if hasattr(layers, self.name) else nn
        args = [_with_parts(arg, layers) for arg in self.args]
        options = {key: _with_parts(value, layers) for key, value in self.options.items()}
        return getattr(home, self.name)(*args, **options)

    def __str__(self) -> str:
        options = [f"{key}={_short(value)}" for key, value in self.options.items()]
        return f"{self.name}({','.join([*map(_short, self.args), *options])})"


def part(name: str, *args: Any, **options: Any) -> Part:
    return Part(name, args, options)


def _with_parts(value: Any, layers: ModuleType) -> Any:
    if isinstance(value, Part):
        return value.made(layers)
    if isinstance(value, dict):
        return {key: _with_parts(each, layers) for key, each in value.items()}
    return value.clone() if isinstance(value, Tensor) else value


def _short(value: Any) -> str:
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    if isinstance(value, dict):
        return "{" + ",".join(map(_short, value.values())) + "}"
    return str(value.tolist() if isinstance(value, Tensor) else value).replace(" ", "")


@dataclass(frozen=True)
class Case:
    """A layer, called with a graph of the kind `graph`, if any, and inputs."""

    layer: Part
    graph: str | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    train: bool = True
    untraced: str = ""
    doubles: bool = True
    sizes_vary: bool = True

    def __str__(self) -> str:
        kind = self.graph or "no-graph"
        mode = "" if self.train else "-eval"
        return f"{self.layer}-{kind}{'-with-' if self.kwargs else ''}{'-'.join(self.kwargs)}{mode}"

    def evaluated(self) -> Case:
        return replace(self, train=False)

    def not_traced(self, reason: str) -> Case:
        return replace(self, untraced=reason)

    def of_fixed_size(self) -> Case:
        return replace(self, sizes_vary=False)

    def without_doubles(self) -> Case:
        """DGL's own layer refuses features in float64."""
        return replace(self, doubles=False)


class Layer:
    """`Layer("GraphConv", 4, 3).on("gaps", nodes(4), edge_weight=WEIGHT)` is a case."""

    def __init__(self, name: str, *args: Any, **options: Any):
        self.part = Part(name, args, options)

    def on(self, graph: str | None, *args: Any, **kwargs: Any) -> Case:
        return Case(self.part, graph, args, kwargs)


def drawn(value: Any, sizes: dict[str, int], generator: torch.Generator) -> Any:
    """The value with its inputs drawn, in their order."""
    if isinstance(value, Input):
        return value.draw(sizes, generator)
    if isinstance(value, dict):
        return {key: drawn(each, sizes, generator) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(drawn(each, sizes, generator) for each in value)
    return value


def called_with(
    library: ModuleType, case: Case, dtype: torch.dtype, leaves: dict[str, Tensor], more: int = 0
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a case's call; the tensors among them with gradients go to `leaves`."""
    graph, sizes = build(library, case.graph, more)
    inputs = drawn((case.args, case.kwargs), sizes, torch.Generator().manual_seed(7))
    args, kwargs = _as_leaves(inputs, dtype, leaves)
    return [*([] if graph is None else [graph]), *args], kwargs


def _as_leaves(value: Any, dtype: torch.dtype, leaves: dict[str, Tensor]) -> Any:
    if isinstance(value, dict):
        return {key: _as_leaves(each, dtype, leaves) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_as_leaves(each, dtype, leaves) for each in value)
    if not isinstance(value, Tensor) or not value.is_floating_point():
        return value
    leaf = value.to(dtype, copy=True).requires_grad_()
    leaves[f"input {len(leaves)}"] = leaf
    return leaf


def named_tensors(result: Any, name: str = "result") -> dict[str, Tensor]:
    """The tensors in a layer's result, by where they are in it."""
    if isinstance(result, Tensor):
        return {name: result}
    items = result.items() if isinstance(result, dict) else enumerate(result)
    named: dict[str, Tensor] = {}
    for key, each in items:
        named |= named_tensors(each, f"{name} {key}")
    return named
