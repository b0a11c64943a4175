"""A program compiled for the sizes of the graphs that it meets: at first of the first call's, then
of those of several calls where these turn out to be of another shape.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.ir import Attribute
from xdsl.utils.exceptions import DiagnosticException

from ....dialects.attributes import STATS
from ....passes.analysis.costs import STEP
from ....passes.driver.runner import PassCrash
from ....runtime.cpu.toolchain import CompileError, NoCompiler
from ..importer import Imported, Unsupported
from .bound_program import BoundProgram

log = logging.getLogger("gnnc")

ENOUGH = 8
"""Graphs after which the sizes that a program was compiled for are looked at; and again at each
power of it."""
LEAST = 1000
"""Rows of the largest set below which no program is worth another compilation."""


class SizesSeen:
    """The numbers of rows that sets have had: in the first graph, and geometric means over all."""

    def __init__(self) -> None:
        self.graphs = 0
        self.first: Mapping[str, float] = {}
        self.logs: dict[str, list[float]] = {}

    def note(self, counts: Mapping[str, int]) -> None:
        """One more graph. A set that is empty in it says nothing of others."""
        self.graphs += 1
        self.first = self.first or counts
        for name, n in counts.items():
            known = self.logs.setdefault(name, [0.0, 0.0])
            if n > 0:
                known[0] += 1
                known[1] += math.log(n)

    def typical(self) -> dict[str, float]:
        """The expected rows of each set; 0 for those that no graph has rows of."""
        return {s: math.exp(total / n) if n else 0.0 for s, (n, total) in self.logs.items()}


def alike(a: Mapping[str, float], b: Mapping[str, float]) -> bool:
    """Whether no set has `costs.STEP` times more or fewer rows for one of the largest set's, nor
    any where it had none."""
    largest = max(a.values(), default=0), max(b.values(), default=0)
    if 0 in largest:
        return largest[1] == 0
    shares = [(a.get(s, 0) / largest[0], n / largest[1]) for s, n in b.items() if n]
    return all(x and 1 / STEP < y / x < STEP for x, y in shares)


class ForGraphsSeen:
    """Calls a program, which is compiled again where the graphs of its calls are of another shape
    than what it was compiled for.

    Attributes:
        program: the one that is called now.
    """

    def __init__(
        self,
        imported: Callable[[Sequence[Any], Mapping[str, float] | None], Imported],
        bound: Callable[[Imported], BoundProgram],
        retired: Callable[[BoundProgram], None],
        examples: Sequence[Any],
    ) -> None:
        """`imported` gives the program for a call's arguments, with the sizes that sets have in
        them or with those that it is given, and `bound` compiles it; one that is not called any
        more is `retired`. Raises what they do."""
        self.imported, self.bound, self.retired = imported, bound, retired
        self.seen, self.look_at = SizesSeen(), ENOUGH
        self.shape: Mapping[str, float] = {}  # that it is compiled for, if not for the first's
        self._take(imported(examples, None))

    def __call__(self, *args: Any) -> Any:
        if self.seen.graphs >= self.look_at:
            self.look_at *= ENOUGH
            self._look(args)
        return self.program(*args)

    def _look(self, args: Sequence[Any]) -> None:
        typical = self.seen.typical()
        few = max(typical.values(), default=0) < LEAST
        if few or alike(self.shape or self.seen.first, typical):
            return
        old = self.program
        try:
            new = self.imported(args, typical)
            if _sizes(new) == self.sizes:
                return
            self._take(new)
        except (Unsupported, DiagnosticException, PassCrash, CompileError, NoCompiler) as error:
            log.warning("not compiled for the sizes of later graphs: %s", error)
            return
        log.info("compiled again for the sizes of %d graphs", self.seen.graphs)
        self.shape = typical
        self.retired(old)

    def _take(self, imported: Imported) -> None:
        sizes = _sizes(imported)
        self.program, self.sizes = self.bound(imported), sizes
        self.program.new_graph = self.seen.note


def _sizes(imported: Imported) -> Attribute | None:
    """What passes are told of the sizes of sets (passes/analysis/costs.py)."""
    return imported.function.attributes.get(STATS)
