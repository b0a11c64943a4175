"""Is a compiled program the same as eager to all who look? The verdict on one program."""

from __future__ import annotations

import functools
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

import torch

import gnnc
from gnnc.frontend.torch.report import Report

from .compare import Difference, compare, raises_alike
from .execute import Instance, Observation, quiet, runner
from .interpreted import interpreting
from .poison import observed_without, without
from .program import Program
from .stated import Context, reason
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
                want = observed(program, program.dtype, saving_all=True)[k]
            verdict.differences += compare(want, got, exact[k] if exact else None, k)
        report = explained(mine.instance)
    other = torch.float64 if program.dtype is torch.float32 else torch.float32
    context = Context(eager, calls, functools.partial(observed, program, other))
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
    state = want.state
    for _ in range(MOST_SPARED):
        less = without(program, want.line)
        seen = None if less is None else observed_without(less, call, state)
        if less is None or seen is None:
            return False
        program, want = less, seen
        if raises_alike(want, got):
            return True
    return False


MOST_SPARED = 40
"""How many statements one call may do without."""


def misses_saved(seen: Observation) -> bool:
    """Whether eager cannot run a backward since what it had saved was edited. A compiled call that
    has not saved it can, and gives the gradients that eager would with all saved as it was."""
    return seen.raised == ("backward", "RuntimeError") and EDITED in seen.message


EDITED = "has been modified by an inplace operation"


def observed(
    program: Program, dtype: torch.dtype, *, saving_all: bool = False
) -> list[Observation]:
    """What eager does; `saving_all`: what it would do if nobody could edit what is saved."""
    loaded = program.load()
    mine = runner(program, loaded, dtype)
    saved = torch.autograd.graph.allow_mutation_on_saved_tensors() if saving_all else nullcontext()
    with saved:
        seen = [mine.run(k) for k in range(len(program.calls))]
    loaded.forget()
    return seen
