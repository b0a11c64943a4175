"""Reshapes that are views of their operand where Dynamo's fake tensors are copies.

While a width is a symbol, torch cannot always tell whether its strides let a tensor be seen in
another shape (columns of a tensor cut into heads); fakes are copies then. The programs that we make
know their widths, and eagerly there is a view: whoever edits it edits the operand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import sympy
import torch
from torch import Tensor, fx

from ..errors import Unsupported
from ..values.sizes import example, expression, row_symbols, storage
from .effects import call_of

RESHAPES = {"flatten", "ravel", "reshape", "reshape_as"}
BY_LAYOUT = RESHAPES | {"contiguous", "view", "view_as"}
"""What gives a view or a copy, or raises, as the strides of its operand are."""


AS_OPERANDS = {"batch_norm", "logical_and", "logical_or", "logsigmoid", "nll_loss", "one_hot"}
"""What torch lays out by rows, and its fake tensors as the operands are (tests/oracle looks for
such)."""


class Layouts:
    """Which reshapes of a graph are such views.

    Views of fakes that are copies have other strides than eagerly. What depends on these has to run
    in torch as a whole: orders of memory that are not by rows, and further reshapes.
    """

    def __init__(self, graph: fx.Graph) -> None:
        self.graph = graph
        self.found: set[int | None] = set()
        self._symbols: list[Mapping[sympy.Symbol, int]] = []

    def operand(self, node: fx.Node) -> fx.Node | None:
        """The operand that a node gives a view of, though its fake is a copy.

        Raises:
            Unsupported: whether it does depends on more than the widths, or others on its strides.
        """
        call = call_of(node)
        if call.op in AS_OPERANDS and not all(map(self.by_rows, node.all_input_nodes)):
            reason = f"{call.op} of tensors in memory that is not in the order of rows"
            raise Unsupported(node, reason, mutates=True)
        x = call.arguments.get("input")
        if call.op not in BY_LAYOUT or call.fault is not None or not isinstance(x, fx.Node):
            return None
        old, new = example(x), example(node)
        if not isinstance(old, Tensor) or not isinstance(new, Tensor):
            return None
        if storage(old) == storage(new):
            if self.differs(old):
                raise Unsupported(node, "its operand is in memory in another way", mutates=True)
            return None
        if call.op not in RESHAPES:
            return None
        try:
            strides = list(self.strides(old, new))
        except RuntimeError as error:
            reason = "a view or a copy, by sizes that only running the program tells"
            raise Unsupported(node, reason, mutates=True) from error
        if strides == [None] * len(strides):
            return None
        if not all(s is not None and all(a >= b for a, b in pairwise(s)) for s in strides):
            raise Unsupported(
                node, "a view of memory that is not in the order of rows", mutates=True
            )
        self.found.add(storage(new))
        return x

    def strides(self, old: Tensor, new: Tensor) -> Iterator[tuple[int, ...] | None]:
        """The strides of one tensor seen in the shape of another, by sizes of rows. (What has none
        has no memory, and any strides.)

        Raises:
            RuntimeError: the shapes do not go together.
        """
        for k, sizes in enumerate(self.symbols(old)):
            if any(_number(n, sizes) == 0 for n in new.shape):
                continue
            try:
                yield _strides(old, new, sizes)
            except RuntimeError:  # sizes that go together, which nothing here tells
                if k == 0:
                    raise

    def by_rows(self, node: fx.Node) -> bool:
        """Whether the strides of what a node gives become no larger, as far as sizes at hand
        tell."""
        x = example(node)
        if not isinstance(x, Tensor):
            return True
        sizes, *_ = self.symbols(x)
        return all(a >= b for a, b in pairwise(_number(n, sizes) for n in x.stride()))

    def differs(self, fake: Tensor) -> bool:
        """Whether a tensor has other strides than its fake."""
        return storage(fake) in self.found

    def handed_on(self, node: fx.Node, operand: fx.Node) -> None:
        """Of a node that is its operand, and another tensor as a fake."""
        old, new = example(operand), example(node)
        if isinstance(old, Tensor) and isinstance(new, Tensor) and old.stride() != new.stride():
            self.found.add(storage(new))

    def symbols(self, x: Tensor) -> Sequence[Mapping[sympy.Symbol, int]]:
        """Sizes for each symbol: as in the call at hand, and with other rows."""
        if not self._symbols:
            numbers = (*x.shape, *x.stride())
            symbolic = next((n for n in numbers if isinstance(n, torch.SymInt)), None)
            if symbolic is None:
                return [{}]
            env: Any = symbolic.node.shape_env
            now: dict[Any, Any] = getattr(env, "backed_var_to_val", None) or env.var_to_val
            sizes = {s: int(n) for s, n in now.items()}
            names = row_symbols(self.graph)
            rows = {s: n for s, n in sizes.items() if str(s) in names}
            # symbols that are the same number may have to be
            other = {n: n + 7 + 2 * k for k, n in enumerate(sorted(set(rows.values())))}
            later = sizes | {s: other[n] for s, n in rows.items()}
            self._symbols = [sizes, later]
        return self._symbols


def _strides(old: Tensor, new: Tensor, sizes: Mapping[sympy.Symbol, int]) -> tuple[int, ...] | None:
    """The strides of one tensor seen in the shape of another; None where that takes a copy."""
    shape, strides, other = (
        [_number(n, sizes) for n in numbers] for numbers in (old.shape, old.stride(), new.shape)
    )
    x = torch.empty_strided(shape, strides, device="meta")
    y = x.reshape(other)
    return y.stride() if storage(y) == storage(x) else None


def _number(size: int | torch.SymInt, sizes: Mapping[sympy.Symbol, int]) -> int:
    symbols = expression(size).free_symbols
    unknown = {s: 5 for s in symbols if s not in sizes}  # which only running the program tells
    return int(expression(size).xreplace({**sizes, **unknown}))
