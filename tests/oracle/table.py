"""docs/ops.md: which ops of torch compile, found by trying. `make ops` writes it."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from .embed import programs
from .outcomes import interpreted, outcome
from .samples import SHORT, Case, cases, database, dtypes, has_rule, spread, variants

PAGE = Path(__file__).parents[2] / "docs" / "ops.md"

EMBEDDED = ("rows", "plain", "single")

SAMPLES = 3
"""Samples of each op and dtype that are tried."""

HEAD = """\
# Which ops compile

Written by `make ops`; do not edit. Every op of torch's own database of operators (torch {version})
was called on samples that come with it, inside a small graph program: with operands read by an
index as rows of a set, with arguments of any size, and with parameters of constant size. A sample
compiles where the whole program does in one of the three; otherwise that op runs in torch, and
`gnnc.explain` says so. What compiles has torch's results and gradients: `tests/oracle` compares
them.

A cell says how many samples compiled of how many were tried. The reason is that of most samples
which did not.

| op | {dtypes} | in torch because |
|---|{rules}|---|
"""

TAIL = """
In torch, on all samples: {names}.
"""


@dataclass
class Line:
    """An op's: compiled and tried samples by dtype, and the reasons of those that did not."""

    name: str
    compiled: Counter[str] = field(default_factory=Counter)
    tried: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def compiles(self) -> bool:
        """Whether any sample does."""
        return bool(self.compiled.total())

    def __str__(self) -> str:
        cells = [self.cell(d) for d in SHORT.values()]
        reason = self.reasons.most_common(1)[0][0] if self.reasons else ""
        return f"| {self.name} | {' | '.join(cells)} | {reason} |"

    def cell(self, dtype: str) -> str:
        done, tried = self.compiled[dtype], self.tried[dtype]
        return "" if not tried else str(tried) if done == tried else f"{done} of {tried}"


def line(op: Any) -> Line:
    """Tries samples of an op; of one without a rule those of one dtype, unless some compile."""
    out = Line(op.full_name)
    for dtype in dtypes(op):
        for case in spread(list(cases(op, dtype, variants(op)[0])), SAMPLES):
            reasons = list(refusals(case))
            if reasons:
                out.tried[SHORT[dtype]] += 1
                out.compiled[SHORT[dtype]] += reasons[-1] == ""
                out.reasons.update([reasons[0]] if reasons[-1] else [])
        if not out.compiled.total() and not has_rule(op):
            break
    return out


def refusals(case: Case) -> Iterator[str]:
    """Why a sample runs in torch, in each embedding up to one in which it compiles ("")."""
    for embedding in EMBEDDED:
        reason = tried(case, embedding)
        if reason is not None:
            yield reason
        if reason == "":
            return


def tried(case: Case, embedding: str) -> str | None:
    """Why a sample runs in torch: "" where it compiles; None where there is nothing to embed."""
    found = programs(case, embedding)
    if not found:
        return None
    told = outcome(found, interpreted, sizes=1).torch
    return plain(told[0]) if told else ""


def plain(reason: str) -> str:
    """A reason without what is particular to a program, as the cell of a table."""
    reason = re.sub(r" \([</].*?:\d+\)", "", reason)
    reason = re.sub(r"its operand L_\w+_ is", "an operand is", reason.split(": ", 1)[-1])
    return reason.splitlines()[0].replace("|", "/")[:90].strip()


def page(lines: Iterable[Line]) -> str:
    """The whole page."""
    lines = list(lines)
    short = list(SHORT.values())
    text = HEAD.format(
        version=torch.__version__.split("+")[0],
        dtypes=" | ".join(short),
        rules="|".join(["---"] * len(short)),
    )
    text += "".join(f"{x}\n" for x in lines if x.compiles)
    return text + TAIL.format(names=", ".join(x.name for x in lines if not x.compiles))


def stated() -> dict[str, str]:
    """The lines of the page by op; "in torch" for those that have none."""
    text = PAGE.read_text()
    lines = {x.split(" | ")[0][2:]: x for x in text.splitlines() if x.startswith("| ")}
    in_torch = text.rsplit("In torch, on all samples: ", 1)[1].strip().removesuffix(".")
    return {n: x for n, x in lines.items() if n != "op"} | dict.fromkeys(
        in_torch.split(", "), "in torch"
    )


def main(names: Sequence[str]) -> None:
    torch.set_num_threads(1)
    ops = [op for name, op in database().items() if not names or name in names]
    lines = []
    for op in ops:
        lines.append(line(op))
        print(lines[-1], flush=True)
    if not names:
        PAGE.write_text(page(lines))


if __name__ == "__main__":
    main(sys.argv[1:])
