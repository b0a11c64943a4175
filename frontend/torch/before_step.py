"""What torch does before the program of a step: parts of a loss that have no rule, and are made of
arguments without gradients alone (random numbers, a graph's neighbours). The rest, with the update
of the parameters, is one program all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn

from .capture.effects import runner_of
from .importer.memory.effects import call_of
from .importer.parts.split import split_graph
from .importer.values.sizes import example, storage


@dataclass(frozen=True)
class Prologue:
    """A graph in two parts.

    Attributes:
        module: calls both, and gives what the graph gives.
        first, rest: their names in it; torch runs the first.
        place: which result of the rest the loss is.
        reasons: why the first has no program, each with a place in the user's code.
    """

    module: fx.GraphModule
    first: str
    rest: str
    place: int
    reasons: tuple[str, ...]

    @property
    def graph(self) -> fx.GraphModule:
        """The rest."""
        return getattr(self.module, self.rest)

    def before(self, rest: Callable[..., Any]) -> Callable[..., Any]:
        """The whole graph in torch but for the rest, which is called with its arguments."""
        setattr(
            self.module, self.first, _Called(_without_gradients(getattr(self.module, self.first)))
        )
        setattr(self.module, self.rest, _Called(rest))
        return runner_of(self.module)


class _Called(nn.Module):
    """A function as a module of a graph."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.forward = function


def _without_gradients(graph: fx.GraphModule) -> Callable[..., Any]:
    run = runner_of(graph)

    def first(*args: Any) -> Any:
        with torch.no_grad():
            return run(*args)

    return first


def prologue(graph: fx.GraphModule, examples: Sequence[Any], place: int) -> Prologue | None:
    """The graph of a loss, which is its result at `place`, with what torch has to run apart; None
    where that is not all made of arguments without gradients, or writes to an argument."""
    split = split_graph(graph)
    if split is None or [p.supported for p in split.parts] != [False, True]:
        return None
    first, rest = split.parts
    called = {n.target: n for n in split.module.graph.find_nodes(op="call_module")}
    given = split.module.graph.find_nodes(op="placeholder")
    for node, x in zip(given, examples, strict=True):
        if isinstance(x, Tensor) and x.requires_grad and node in called[first.name].all_input_nodes:
            return None
    if _writes_to_arguments(getattr(split.module, first.name)):
        return None
    at = _place_in(split.module, called[rest.name], place)
    if at is None:
        return None
    return Prologue(split.module, first.name, rest.name, at, split.reasons)


def _writes_to_arguments(graph: fx.GraphModule) -> bool:
    arguments = {storage(example(n)) for n in graph.graph.find_nodes(op="placeholder")} - {None}
    edits = (base for n in graph.graph.nodes for base in call_of(n).edited)
    return any(storage(example(base)) in arguments for base in edits)


def _place_in(module: fx.GraphModule, part: fx.Node, place: int) -> int | None:
    """Which result of a part a result of the whole is; None: it is none."""
    result = module.graph.output_node().args[0][place]  # type: ignore[index]
    if result is part:
        return 0
    is_item = isinstance(result, fx.Node) and result.op == "call_function" and part in result.args
    return result.args[1] if is_item else None  # type: ignore[union-attr,return-value]
