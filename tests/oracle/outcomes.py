"""What becomes of a case: equal, in torch (and why), or different."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch

import gnnc
from gnnc.frontend.torch.importer.errors import BUG

from .compare import differences
from .embed import Program
from .interpreted import Interpreted
from .runs import Run, run, run_all
from .samples import SINGLE, UNDEFINED

SIZES = 4
"""Numbers of rows that programs on rows are called on."""

Told = Callable[[], list[str]]
Speed = Callable[[Callable[..., Any]], tuple[Callable[..., Any], Told]]


@dataclass(frozen=True)
class Outcome:
    """`torch`: what runs there. `wrong`: what is different."""

    program: Program
    torch: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()

    @property
    def status(self) -> str:
        return "different" if self.wrong else "in torch" if self.torch else "equal"

    def __str__(self) -> str:
        p = self.program
        sizes = ", ".join(f"{str(x.dtype)[6:]}{list(x.shape)}" for x in p.args)
        lines = [f"{p.case} as {p.embedding}, on {sizes}", p.text.rstrip(), *self.wrong]
        return "\n".join([*lines, *(f"in torch: {t}" for t in self.torch)])


def interpreted(function: Callable[..., Any]) -> tuple[Callable[..., Any], Told]:
    """A function through importer and interpreter, and what tells what ran in torch."""
    call = Interpreted(function)
    return call, lambda: call.torch


def compiled(function: Callable[..., Any]) -> tuple[Callable[..., Any], Told]:
    """A function through all of gnnc, and what tells what ran in torch."""
    call = gnnc.compile(function)
    return call, lambda: gnnc.explain(call).fallbacks


@contextmanager
def quick() -> Iterator[None]:
    """Leaves out what Dynamo does for its statistics (it empties the processor's caches to time
    each guard), and what gnnc tells a user."""
    log = logging.getLogger("gnnc")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        with mock.patch("torch._dynamo.guards.profile_guard_manager", lambda *_: 0.0):
            yield
    finally:
        log.setLevel(level)


@quick()
def outcome(
    programs: Sequence[Program], speed: Speed, order: int = 1, sizes: int = SIZES
) -> Outcome:
    """That of the first of the programs that does not run in torch, or of the last. A program on
    rows is called also with none of them, one, and more than there are."""
    for program in programs:
        torch._dynamo.reset()
        call, told = speed(program.function)
        wrong: list[str] = []
        for size in range(sizes):
            if told() and program is not programs[-1]:
                break  # the next may compile
            p = _resized(program, size)
            if p is not None:
                expected = Expected(p, order)
                found = run(call, p.arguments(), expected.differentiated, order)
                wrong += expected.wrong(found, exactly=speed is compiled)
        found = _outcome(program, told(), wrong)
        if not found.torch:
            break
    return found


@quick()
def together(programs: Sequence[Program], order: int = 1) -> list[Outcome]:
    """The outcomes of programs that are compiled as one function, where that runs: of one C file,
    which takes a fraction of the time. The others are compiled one by one."""
    sizes = range(SIZES)
    table = [[Expected(_resized(p, s) or p, order) for s in sizes] for p in programs]
    fine = [row for row in table if all(e.own.error is None for e in row)]
    outcomes: dict[Program, Outcome] = {}
    if len(fine) > 1:
        torch._dynamo.reset()
        call, told = compiled(_bundle([row[0].program for row in fine]))
        wrong: dict[Program, list[str]] = {row[0].program: [] for row in fine}
        for s in sizes:
            expected = [row[s] for row in fine]
            wanted = [e.differentiated for e in expected]
            found = run_all(call, [e.program.arguments() for e in expected], wanted, order)
            for row, e, got in zip(fine, expected, found, strict=True):
                wrong[row[0].program] += e.wrong(got, exactly=True)
        if not told():
            outcomes = {p: Outcome(p, (), tuple(w)) for p, w in wrong.items() if not w}
    return [outcomes.get(p) or outcome([p], compiled, order) for p in programs]


def _bundle(programs: Sequence[Program]) -> Callable[..., Any]:
    """One function that gives the results of all, each of its part of the arguments."""
    stops: list[int] = [0]
    for p in programs:
        stops.append(stops[-1] + len(p.args))
    parts = [(p.function, lo, hi) for p, lo, hi in zip(programs, stops, stops[1:], strict=False)]

    def bundle(*args: Any) -> Any:
        return tuple(function(*args[lo:hi]) for function, lo, hi in parts)

    return bundle


class Expected:
    """What torch makes of a program."""

    def __init__(self, program: Program, order: int = 1) -> None:
        self.program = program
        self.own = run(program.function, program.arguments(), None, order)
        self.differentiated = None if self.own.error else self.own.needs
        exact = program.arguments(torch.float64)
        self.exact = run(program.function, exact, self.differentiated, order)

    @property
    def rounds(self) -> bool:
        """Whether a result is of float32, so that gradients of float64 go through it."""
        found = self.own.results.values()
        return any(isinstance(r, torch.Tensor) and r.dtype == torch.float32 for r in found)

    def wrong(self, got: Run, exactly: bool) -> list[str]:
        """What differs in a run; unless `exactly`, of an interpreter, which has no float32 and does
        not say whether results require a gradient."""
        name = self.program.case.op.name
        single = name in SINGLE or (not exactly and self.rounds)
        found = differences(got, self.own, self.exact, name not in UNDEFINED, exactly, single)
        index = self.program.index
        rows = "" if index is None else f"{self.program.args[index].shape[0]} rows: "
        return [f"{rows}{d}" for d in found]


def _resized(program: Program, size: int) -> Program | None:
    """A program at its own size (0), on no rows (1), one (2) and twice as many (3)."""
    if size == 0:
        return program
    if program.index is None:
        return None
    count = program.args[program.index].shape[0]
    rows = ([], [0], [*range(count), *range(count)])[size - 1]
    return program.resized(rows) if len(rows) != count and (count or not rows) else None


def _outcome(program: Program, told: Sequence[str], wrong: Sequence[str]) -> Outcome:
    bugs = [t for t in told if BUG in t]
    return Outcome(program, tuple(told), (*wrong, *bugs))
