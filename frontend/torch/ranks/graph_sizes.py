"""Numbers that a graph computes of the sizes of its arguments, as they are in the whole graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch import Tensor, fx

from ..importer.errors import Unsupported
from . import cut_tensors


@dataclass(frozen=True)
class SizeOf:
    """What is computed of sizes of arguments; `symbols` has for each the place of an argument and
    its dimension, None where the argument is the number itself."""

    expression: Any
    symbols: Mapping[Any, tuple[int, int | None]]


Size = int | SizeOf


class Sizes:
    """Where the sizes that a graph computes with come from."""

    def __init__(self, placeholders: Sequence[fx.Node]) -> None:
        sizes, numbers = dict[Any, tuple[int, int | None]](), dict[Any, tuple[int, int | None]]()
        for i, node in enumerate(placeholders):
            x = node.meta.get("example_value")
            if isinstance(x, torch.SymInt):
                numbers[x.node.expr] = i, None
            for dim, n in enumerate(x.shape if isinstance(x, Tensor) else ()):
                if isinstance(n, torch.SymInt) and isinstance(n.node.expr, sympy.Symbol):
                    sizes.setdefault(n.node.expr, (i, dim))
        self.places = numbers | sizes  # what is a size of rows is that of all rows

    def of(self, node: fx.Node, x: Any) -> Size:
        """A number among the arguments of a node.

        Raises:
            Unsupported: it is computed of something else.
        """
        if isinstance(x, fx.Node):
            x = x.meta.get("example_value")
        if isinstance(x, int):
            return x
        expression = x.node.expr if isinstance(x, torch.SymInt) else None
        if expression is None or not expression.free_symbols <= set(self.places):
            raise Unsupported(
                node, "over several ranks as many are drawn as sizes of arguments say"
            )
        return SizeOf(expression, {s: self.places[s] for s in expression.free_symbols})


def of_all(size: Size, args: Sequence[Any]) -> int:
    """A number for the arguments of a call, with the sizes that they have in the whole graph."""
    if isinstance(size, int):
        return size
    known = {s: _size(args[i], dim) for s, (i, dim) in size.symbols.items()}
    return int(size.expression.subs(known))


def _size(x: Any, dim: int | None) -> int:
    return int(x) if dim is None else int(cut_tensors.whole(x).shape[dim])
