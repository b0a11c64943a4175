"""A program compiled for what its calls turn out to be: at first for the sizes of the first call's
graph and for inputs that stay, then for the sizes of the graphs of several calls where these are of
another shape, and for inputs that change where they do.
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
STATES = 4
"""What may be prepared for (graphs, and states of inputs) before inputs are taken to change."""
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
    than what it was compiled for, or where inputs change of which it keeps something.

    Attributes:
        program: the one that is called now.
    """

    def __init__(
        self,
        imported: Callable[[Sequence[Any], Mapping[str, float] | None, bool], Imported],
        bound: Callable[[Imported], BoundProgram],
        retired: Callable[[BoundProgram], None],
        examples: Sequence[Any],
        constants: bool,
    ) -> None:
        """`imported` gives the program for a call's arguments, with the sizes that sets have in
        them or with those that it is given, and with inputs marked that may be constant or not;
        `bound` compiles it. One that is not called any more is `retired`. Without `constants` no
        input is ever marked. Raises what they do."""
        self.imported, self.bound, self.retired = imported, bound, retired
        self.seen, self.look_at = SizesSeen(), ENOUGH
        self.shape: Mapping[str, float] = {}  # that it is compiled for, if not for the first's
        self.constants = constants
        self._take(imported(examples, None, constants))
        self.constants = bool(self.program.prepared_inputs)

    def __call__(self, *args: Any) -> Any:
        if self.constants and self.program.states_met() > STATES:
            self.constants = False
            log.info("inputs change from call to call: nothing of them is kept")
            self._compile_again(args)
        if self.seen.graphs >= self.look_at:
            self.look_at *= ENOUGH
            self._look(args)
        return self.program(*args)

    def _look(self, args: Sequence[Any]) -> None:
        typical = self.seen.typical()
        few = max(typical.values(), default=0) < LEAST
        if not few and not alike(self.shape or self.seen.first, typical):
            self._compile_again(args)

    def _compile_again(self, args: Sequence[Any]) -> None:
        """For the sizes of the graphs so far; what cannot be compiled leaves the program there."""
        old, typical = self.program, self.seen.typical()
        try:
            new = self.imported(args, typical or None, self.constants)
            if _sizes(new) == self.sizes and bool(old.prepared_inputs) == self.constants:
                return
            self._take(new)
        except (Unsupported, DiagnosticException, PassCrash, CompileError, NoCompiler) as error:
            log.warning("not compiled for the graphs of later calls: %s", error)
            return
        log.info("compiled again for %d graphs", self.seen.graphs)
        self.shape = typical
        self.retired(old)

    def _take(self, imported: Imported) -> None:
        sizes = _sizes(imported)
        self.program, self.sizes = self.bound(imported), sizes
        self.program.new_graph = self.seen.note


def _sizes(imported: Imported) -> Attribute | None:
    """What passes are told of the sizes of sets (passes/analysis/costs.py)."""
    return imported.function.attributes.get(STATS)
