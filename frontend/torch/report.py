"""What became of a compiled callable: kernels, parts that run in torch, time spent."""

from __future__ import annotations

import logging
import weakref
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...runtime.footprint import Footprint
from ...runtime.launches import Launch, launches

if TYPE_CHECKING:
    from ...runtime.program import OnGraph, Program
    from .calls.bound_program import BoundProgram

log = logging.getLogger("gnnc")


@dataclass
class Report:
    """Filled as graphs are compiled.

    Attributes:
        kernels: names of the generated kernels, in the order they run, of all compiled graphs.
        fallbacks: what runs in torch instead: what, where (file and line of the user's code) and
        why. compile_seconds: time spent importing, in passes and in the C compiler (or looking into
        the cache). graphs: how many graphs were compiled; train and eval, or another dtype or
        width, are further ones. sources: paths of the generated objects; the C lies beside each,
        with the suffix `.c`. choices: what was chosen by what calls are given, and why. programs:
        the `BoundProgram`s that are called now, for tools. prepared: how often something was
        prepared over ranks, by the number of the program.
    """

    kernels: list[str] = field(default_factory=list)
    fallbacks: list[str] = field(default_factory=list)
    compile_seconds: float = 0.0
    graphs: int = 0
    sources: list[str] = field(default_factory=list)
    choices: list[str] = field(default_factory=list)
    programs: list[BoundProgram] = field(default_factory=list["BoundProgram"], repr=False)
    prepared: Counter[int] = field(default_factory=Counter[int], repr=False)

    def warn(self, message: str, what: str = "runs in torch: ") -> None:
        """Note a part that runs in torch, once, and log it."""
        if message not in self.fallbacks:
            self.fallbacks.append(message)
        log.warning("%s%s", what, message)

    def note(self, choice: str) -> None:
        """Note what was chosen, once, and log it."""
        if choice not in self.choices:
            self.choices.append(choice)
            log.info("%s", choice)

    def launches(self) -> list[Launch]:
        """The launch record: for every kernel the rows it runs over, on the graph that its program
        met last, and the products it does for each (`gnnc.runtime.launches.Launch`). A graph whose
        tensors are gone has none.
        """
        return [launch for program, graph in self._met() for launch in launches(program, graph)]

    def footprints(self) -> list[Footprint]:
        """The bytes of buffers and tables that every program takes on the graph that it met last
        (`gnnc.runtime.footprint.Footprint`), as planned, and how many are in use at once. A graph
        whose tensors are gone has none.
        """
        return [p.footprint(graphs[-1]) for p in self.programs if (graphs := p.graphs())]

    def _met(self) -> list[tuple[Program, OnGraph]]:
        return [(p.program, graphs[-1]) for p in self.programs if (graphs := p.graphs())]

    def __str__(self) -> str:
        seconds = f"{self.compile_seconds:.2f} s"
        lines = [f"{self.graphs} graphs compiled in {seconds}, {len(self.kernels)} kernels"]
        lines += [f"  {k}" for k in self.kernels]
        lines += self.choices
        lines += [
            f"computed once for a graph and a state of it: what follows from {name}"
            for p in self.programs
            for name in p.inputs_kept
        ]
        lines += [f"memory: {f}" for f in self.footprints()]
        lines += [f"runs in torch: {f}" for f in self.fallbacks] or ["nothing runs in torch"]
        return "\n".join(lines)


_REPORTS: weakref.WeakKeyDictionary[Any, Report] = weakref.WeakKeyDictionary()


def remember(target: Any, report: Report) -> None:
    """Make the report of a compiled module or function known to `explain`."""
    _REPORTS[target] = report


def explain(target: Any) -> Report:
    """What gnnc made of a compiled module or function so far.

    Raises:
        ValueError: `target` was not compiled by `gnnc.compile`.
    """
    if target not in _REPORTS:
        raise ValueError(f"{target!r} was not compiled: pass what gnnc.compile returned")
    return _REPORTS[target]
