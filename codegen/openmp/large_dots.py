"""C for contractions in one row that is a whole weight tensor: `comp @ bases` and its gradients.

The innermost loop runs over numbers that lie side by side, a block of them at a time, so that what
the loops around it read again is still in the caches: over the last letter of the result, or where
both operands end with a summed letter, over that, in vectors of partial sums. An operand in which
it would jump is copied first, with that letter behind the others: products of two weights take a
third of the time then. Where the nest has one row, and so one thread, a loop over numbers of the
result is shared among threads here.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from ..common.c_types import CType
from ..common.writer import Writer
from .row_values import add_product

SMALL_DOT = 64 * 1024
"""Multiplications of a contraction whose operands stay in the first-level cache."""
TINY_DOT = 1024
"""Multiplications that are done before an operand is copied."""
BLOCK = 1024
"""Numbers of the innermost loop."""


@contextmanager
def team(out: Writer) -> Generator[None]:
    """The loop that follows is shared among threads."""
    out.line("#pragma omp parallel num_threads(threads)")
    with out.block(""):
        out.line("ENTER_KERNEL;")
        out.line("#pragma omp for schedule(static)")
        yield
        out.line("LEAVE_KERNEL;")


@dataclass(frozen=True)
class LoopOrder:
    """Loops over `outer` letters, the innermost one over `last`, which is `summed` or not; `into`
    are the letters of the result.
    """

    outer: str
    last: str
    summed: bool
    into: str
    size: Mapping[str, int]

    @staticmethod
    def of(a: str, b: str, into: str, size: Mapping[str, int]) -> LoopOrder:
        """An order for `a,b->into`. Letters of the larger operand go first: all that is computed
        from a piece of it is computed while it is there."""

        def numbers(letters: str) -> int:
            return math.prod(size[c] for c in letters)

        sums = "".join(c for c in dict.fromkeys(a + b) if c not in into)
        large = max(a, b, key=numbers)
        if a and b and a[-1] == b[-1] and a[-1] in sums:
            return LoopOrder(sums.replace(a[-1], "") + into, a[-1], True, into, size)
        if not into:
            return LoopOrder(sums[:-1], sums[-1], True, into, size)
        first = "".join(c for c in into[:-1] if c in large)
        others = "".join(c for c in into[:-1] if c not in large)
        return LoopOrder(first + others + sums, into[-1], False, into, size)

    def shared_loop(self) -> int | None:
        """The loop that threads share: one of the first two, where it is over the result; further
        in a team would be formed too often.
        """
        if not self.summed and self.size[self.last] > BLOCK:
            return 0
        return 1 if self.outer and self.outer[0] in self.into else None

    def emit(self, out: Writer, c: CType, a: str, b: str, target: str, *, shared: bool) -> None:
        """`target += a * b` for all letters `x`, whose loop variables are called `i_x`; threads
        share the loops where these are `shared`."""
        n, i = self.size[self.last], f"i_{self.last}"
        heads = [f"for (int k0 = 0; k0 < {n}; k0 += {BLOCK})"]
        heads += [f"for (int i_{x} = 0; i_{x} < {self.size[x]}; ++i_{x})" for x in self.outer]
        with ExitStack() as stack:
            for k, head in enumerate(heads):
                if shared and k == self.shared_loop():
                    stack.enter_context(team(out))
                stack.enter_context(out.block(head))
                if k == 0:
                    out.line(f"const int k1 = k0 + {BLOCK} < {n} ? k0 + {BLOCK} : {n};")
            inner = f"for (int {i} = k0; {i} < k1; ++{i})"
            if not self.summed:
                out.line(f"{inner} {target} = {add_product(a, b, target, c)};")
                return
            out.line(f"{c.name} sum = 0;")
            out.line("#pragma omp simd reduction(+ : sum)")
            out.line(f"{inner} sum += {a} * {b};")
            out.line(f"{target} += sum;")
