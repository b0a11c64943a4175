"""`python -m gnnc.tests.oracle.command`: runs the database, or a part of it, and prints what is
different."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

from .embed import EMBEDDINGS, Program, programs
from .outcomes import Outcome, compiled, interpreted, outcome, together
from .samples import SHORT, cases, database, dtypes, error_cases, has_rule, spread, variants

BUNDLE = 12
"""Programs that are compiled as one."""


def main(argv: Sequence[str] | None = None) -> int:
    """Prints what is different, and the numbers of all outcomes; 1 where something is."""
    given = _parser().parse_args(argv)
    torch.set_num_threads(1)
    part, of = map(int, given.part.split("/"))
    ops = [op for name, op in database().items() if _is_chosen(given, name, op)][part::of]
    total: Counter[str] = Counter()
    for o in error_outcomes(ops) if given.errors else outcomes(ops, given):
        total[o.status] += 1
        if o.wrong:
            print(f"--- {o}\n", flush=True)
        elif given.torch and o.torch:
            print(f"... {o.program.case} as {o.program.embedding}: {o.torch[0]}", flush=True)
    print(f"=== {len(ops)} ops: {dict(total)}")
    return 1 if total["different"] else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ops", nargs="*", help="full names; without any all that have a rule")
    parser.add_argument("--compiled", action="store_true", help="what imports is compiled to C too")
    parser.add_argument("--errors", action="store_true", help="calls that are errors in torch")
    parser.add_argument("--first", type=int, default=10**9, help="samples of each kind")
    parser.add_argument("--variants", default="", help="labels, by comma")
    parser.add_argument("--dtypes", default="", help="f32, f64, .. by comma")
    parser.add_argument("--embeddings", default=",".join(EMBEDDINGS))
    parser.add_argument("--part", default="0/1", help="k/n: each n-th op from the k-th")
    parser.add_argument("--torch", action="store_true", help="print what is in torch")
    return parser


def _is_chosen(given: argparse.Namespace, name: str, op: Any) -> bool:
    return name in given.ops if given.ops else has_rule(op)


def outcomes(ops: Iterable[Any], given: argparse.Namespace) -> Iterator[Outcome]:
    """Those of the chosen samples of the ops, through the interpreter, and then compiled."""
    imported: dict[int, list[Program]] = {1: [], 2: []}
    for op, dtype in ((op, dtype) for op in ops for dtype in dtypes(op)):
        if given.dtypes and SHORT[dtype] not in given.dtypes.split(","):
            continue
        for found in _programs(op, dtype, given):
            o = outcome(found, interpreted)
            if not given.compiled or o.status != "equal":
                yield o
                continue
            # second derivatives are asked for where rounding does not hide what is wrong
            order = 2 if dtype == torch.float64 and op.supports_gradgrad else 1
            imported[order].append(o.program)
            if len(imported[order]) == BUNDLE:
                yield from together(imported[order], order)
                imported[order] = []
    for order, rest in imported.items():
        yield from together(rest, order)


def error_outcomes(ops: Iterable[Any]) -> Iterator[Outcome]:
    """Those of calls that are errors in torch."""
    for case in (case for op in ops for case in error_cases(op)):
        yield from (outcome([p], compiled) for p in programs(case, "plain"))


def _programs(op: Any, dtype: torch.dtype, given: argparse.Namespace) -> Iterator[list[Program]]:
    """For each sample and embedding the programs of which the first that imports is meant."""
    for variant in variants(op):
        if given.variants and variant.label not in given.variants.split(","):
            continue
        for case in spread(list(cases(op, dtype, variant)), given.first):
            for embedding in given.embeddings.split(","):
                if found := programs(case, embedding):
                    yield found


if __name__ == "__main__":
    sys.exit(main())
