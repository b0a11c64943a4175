"""The sizes of the first graph, in which Dynamo traced a program: hints of its symbols."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from xdsl.ir import SSAValue

from .....dialects.inter.structure import AttachOp, IntervalOp
from .....dialects.inter.types import set_name
from .....dialects.inter.values import ConstOp
from .....dialects.signature import arguments, body_ops
from ..binding import FromSize, Imported


def first_sizes(imported: Imported, examples: Sequence[Any]) -> dict[str, int]:
    """The rows of each set argument in the example arguments, by name; 0 where only running the
    program would tell. No guard is added: another graph may have any sizes."""
    known = [_hinted(x) for x in examples]
    return {s.name: max(0, s.size(known)) for s in imported.sets}


def first_shares(imported: Imported, examples: Sequence[Any]) -> dict[str, float]:
    """What part of the rows of a set argument an interval between numbers that are known keeps, or
    of such an interval the next one (a layer of a sampled batch); by the name of the set that has
    these rows, sets behind those they are of."""
    known = [_hinted(x) for x in examples]
    sizes = first_sizes(imported, examples)
    of_names = {r.name: r.source for r in imported.rows}
    sources = {a: of_names.get(name) for name, a, _ in arguments(imported.function)}

    def number(v: SSAValue) -> int | None:
        source = sources.get(v)
        if isinstance(v.owner, ConstOp):
            return int(v.owner.number)
        return source.size(known) if isinstance(source, FromSize) else None

    shares: dict[str, float] = {}
    for op in body_ops(imported.function):
        if not isinstance(op, IntervalOp | AttachOp) or not (n := sizes.get(set_name(op.set))):
            continue
        name = set_name(op.results[0])
        if isinstance(op, AttachOp):
            sizes[name] = n
            continue
        lo, hi = number(op.lo), number(op.hi)
        if lo is not None and hi is not None:
            sizes[name] = len(range(n)[lo:hi])
            shares[name] = sizes[name] / n
    return shares


def _hinted(x: Any) -> Any:
    """What a size expression reads of an argument, with numbers in place of symbols."""
    if isinstance(x, Tensor):
        return SimpleNamespace(shape=[hinted_number(n) for n in x.shape])
    return hinted_number(x) if isinstance(x, torch.SymInt) else x


def hinted_number(n: int | torch.SymInt) -> int:
    """A size in the first call, of which no guard is made; 0 where only running it would tell."""
    hint = n.node.hint if isinstance(n, torch.SymInt) else n
    return 0 if hint is None else int(hint)
