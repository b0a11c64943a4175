"""Arguments of a call against a program's signature: widths in numbers, one type of numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from .declarations import Argument
from .values import Program, Value
from .widths import numbers, shown

Sizes = Mapping[str, int]


def rows_of(argument: Argument) -> str | None:
    """What the first dimension of an argument's tensor counts; None where it is no row."""
    return {"Weights": argument.table}.get(argument.kind, argument.kind)


def fit(program: Program, shapes: Mapping[str, Sequence[int]], counts: Sizes) -> dict[str, int]:
    """The numbers of all widths, from the shapes of the tensors; `counts` says for each kind of
    rows how many there are.

    Raises:
        ValueError: shapes that do not fit, with the name of the argument.
    """
    known: dict[str, tuple[int, str]] = {}
    products: list[tuple[Argument, str, int]] = []
    for a in program.arguments.values():
        for width, n in zip(a.shape, _row(a, shapes[a.name], counts), strict=True):
            if "*" in width:
                products.append((a, width, n))
            elif not width.isdigit():
                _note(known, a, width, n)
            elif int(width) != n:
                raise ValueError(f"{a.name}: its width is declared {width}, the tensor has {n}")
    for a, width, n in products:
        _solve(known, a, width, n)
    return {name: n for name, (n, _) in known.items()}


def _row(a: Argument, shape: Sequence[int], counts: Sizes) -> Sequence[int]:
    """The shape of one row of an argument."""
    counted = rows_of(a)
    dims = list(shape)
    if len(dims) != len(a.shape) + (counted is not None):
        what = f"{counted} x {shown(a.shape)}" if counted and a.shape else counted or shown(a.shape)
        raise ValueError(f"{a.name} is declared {what}, the tensor has shape {tuple(shape)}")
    if counted is not None and dims.pop(0) != counts[counted]:
        raise ValueError(
            f"{a.name} has {shape[0]} rows, the graph has {counts[counted]} {_COUNTED[counted]}"
        )
    return dims


_COUNTED = {
    "Nodes": "nodes",
    "SrcNodes": "source nodes",
    "DstNodes": "destination nodes",
    "Edges": "edges",
    "etype": "types of edges",
    "ntype": "types of nodes",
}


def _note(known: dict[str, tuple[int, str]], a: Argument, width: str, n: int) -> None:
    before, where = known.setdefault(width, (n, a.name))
    if before != n:
        raise ValueError(f"{a.name}: the width `{width}` is {before} in {where}, and {n} here")


def _solve(known: dict[str, tuple[int, str]], a: Argument, width: str, n: int) -> None:
    """Checks a product of widths, of which one may be told by it."""
    factors = width.split("*")
    unknown = [f for f in factors if not f.isdigit() and f not in known]
    if len(unknown) > 1:
        raise ValueError(f"{a.name}: no argument says what `{unknown[0]}` is in `{width}`")
    told = {name: m for name, (m, _) in known.items()}
    product = math.prod(numbers(tuple(f for f in factors if f not in unknown), told))
    if unknown and product and n % product == 0:
        _note(known, a, unknown[0], n // product)
    elif unknown or product != n:
        raise ValueError(f"{a.name}: the width `{width}` is {product}, the tensor has {n}")


def check_numbers(program: Program, kinds: Mapping[str, str]) -> None:
    """Numbers of one program are of one type; `kinds` has that of each argument.

    Raises:
        ProgramError: where numbers of two types meet.
        TypeError: they are different and do not meet.
    """
    if len(set(kinds.values())) < 2:
        return
    found: dict[Value, str | None] = {}
    for _, result in program.results:
        _meet(program, result, kinds, found)
    text = ", ".join(f"{name} is {kind}" for name, kind in kinds.items())
    raise TypeError(f"the numbers of a program are of one type: {text}")


def _meet(
    program: Program, v: Value, kinds: Mapping[str, str], found: dict[Value, str | None]
) -> str | None:
    """The type of a value's numbers; None where any will do."""
    if v not in found:
        of = [_meet(program, x, kinds, found) for x in v.args]
        if v.op in ("input", "block"):
            of = [kinds[v.attrs["name"]]]
        types = sorted({t for t in of if t is not None})
        if len(types) > 1:
            raise program.source.error(
                v.at,
                f"{' and '.join(types)} numbers meet: convert one with .to(..) before the call",
            )
        found[v] = types[0] if types else None
    return found[v]
