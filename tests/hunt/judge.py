"""Is a compiled program the same as eager to all who look? The verdict on one program."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch

import gnnc
from gnnc.frontend.torch.report import Report

from .compare import Difference, compare, kind_of_bad_index, raises_alike
from .execute import Instance, Observation, quiet, runner
from .interpreted import interpreting
from .poison import observed_with_any_index, observed_without, without
from .program import Program
from .stated import OTHERWISE, Context, is_of_an_edited_argument, reason
from .trees import is_dead


@dataclass
class Verdict:
    """`graphs` is how many graphs gnnc took, `fallbacks` why parts ran in torch, `raised` how many
    calls raised in eager, `waived` what differed and is no difference, for its reason."""

    differences: list[Difference] = field(default_factory=list[Difference])
    calls: int = 0
    raised: int = 0
    graphs: int = 0
    fallbacks: list[str] = field(default_factory=list[str])
    waived: list[str] = field(default_factory=list[str])

    def kinds(self) -> list[str]:
        """The kinds of difference, once each, in the order they were found."""
        return list(dict.fromkeys(d.kind for d in self.differences))

    @property
    def where(self) -> str:
        """compiled, partly, or torch."""
        return "torch" if not self.graphs else "partly" if self.fallbacks else "compiled"


def judge(program: Program, compiled: bool = False) -> Verdict:
    """Run a program eagerly and through gnnc: its interpreter, or `compiled` to C.

    What float32 makes of sums and kinks is no difference: one of values only has to be found with
    other numbers as well.
    """
    verdict = once(program, compiled)
    if program.dtype is torch.float32 and any(
        d.kind.endswith("wrong") for d in verdict.differences
    ):
        others = [
            once(
                replace(program, settings={**program.settings, "seed": program.seed + k}), compiled
            )
            for k in (1_000_003, 2_000_003)
        ]
        lasting = set(others[0].kinds()) & set(others[1].kinds())
        verdict.differences = [
            d for d in verdict.differences if not d.kind.endswith("wrong") or d.kind in lasting
        ]
    return verdict


def once(program: Program, compiled: bool) -> Verdict:
    eager = observed(program, program.dtype)
    exact = observed(program, torch.float64) if program.dtype is torch.float32 else None
    verdict = Verdict(calls=len(eager), raised=sum(o.raised is not None for o in eager))
    loaded = program.load()
    calls: list[Observation] = []
    with quiet(), nullcontext() if compiled else interpreting():
        mine = runner(program, loaded, program.dtype, gnnc.compile)
        for k, want in enumerate(eager):
            got = mine.run(k, want.state)
            calls.append(got)
            if not raises_alike(want, got) and spared(program, k, want, got):
                verdict.waived.append(f"call {k} does without {want.message[:80]!r}")
                break  # what nothing needs is not computed
            if got.raised is None and misses_saved(want):
                saving_all = torch.autograd.graph.allow_mutation_on_saved_tensors()
                want = observed(program, program.dtype, saving_all)[k]
            verdict.differences += compare(want, got, exact[k] if exact else None, k)
        report = explained(mine.instance)
    other = torch.float64 if program.dtype is torch.float32 else torch.float32
    context = Context(
        program,
        eager,
        calls,
        functools.partial(observed, program, other),
        {
            told: functools.partial(observed, program, program.dtype, mode())
            for told, mode in OTHERWISE.items()
        },
    )
    reasons = [(d, reason(d, context)) for d in verdict.differences]
    verdict.waived += [f"{why}: {d.kind}: {d.detail}" for d, why in reasons if why]
    verdict.differences = [d for d, why in reasons if not why]
    verdict.graphs, verdict.fallbacks = report.graphs, report.fallbacks
    loaded.forget()
    torch._dynamo.reset()
    return verdict


def explained(instance: Instance) -> Report:
    return gnnc.explain(instance)


def spared(program: Program, call: int, want: Observation, got: Observation) -> bool:
    """Of a call that does not raise as eager does: whether nothing needs what eager could not
    compute, and the compiled call did without, or found what else is wrong. (A backward for which
    torch ran the program may have raised it.)"""
    if want.raised is None:
        return False
    kind = want.raised[1]
    if got.raised in (None, ("backward", kind)) and is_dead(program.loaded_text, want.line):
        return True
    less, seen = program, want
    for _ in range(MOST_SPARED):
        shorter = without(less, seen.line)
        again = None if shorter is None else observed_without(shorter, call, want.state)
        if shorter is None or again is None:
            break
        less, seen = shorter, again
        if raises_alike(seen, got) or is_of_an_edited_argument(seen, got):
            return True
    if kind_of_bad_index(want.message) is None:
        return False
    seen = observed_with_any_index(program, call, want.state)
    return not compare(seen, got, None, call)


MOST_SPARED = 40
"""How many statements one call may do without."""


def misses_saved(seen: Observation) -> bool:
    """Whether eager cannot run a backward since what it had saved was edited. A compiled call that
    has not saved it can, and gives the gradients that eager would with all saved as it was."""
    return seen.raised == ("backward", "RuntimeError") and EDITED in seen.message


EDITED = "has been modified by an inplace operation"


def observed(
    program: Program, dtype: torch.dtype, within: AbstractContextManager[Any] | None = None
) -> list[Observation]:
    """What eager does, `within` a context that changes what torch does."""
    loaded = program.load()
    mine = runner(program, loaded, dtype)
    with within or nullcontext():
        seen = [mine.run(k) for k in range(len(program.calls))]
    loaded.forget()
    return seen
