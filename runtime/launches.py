"""The launch record: which rows the kernels of a program run over on a graph, and what they
multiply for each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .program import OnGraph, Program


@dataclass(frozen=True)
class ProductRecord:
    """A product of a kernel, done once for each of its `rows`.

    `kind` is "matmul" (a row times a matrix) or "outer" (a sum over rows of outer products), `spec`
    the einsum of one row, `multiplications` those of all rows.
    """

    kind: str
    spec: str
    rows: int
    multiplications: int


@dataclass(frozen=True)
class Launch:
    """A kernel of a phase on one graph.

    `domain` names the set of its rows, with the maps whose distinct values make them: "g" is every
    edge, "g[rel, src]" every pair of relation and source that occurs, "" a single row, "?" sets one
    after the other.
    """

    phase: str
    kernel: str
    domain: str
    rows: int | None
    products: tuple[ProductRecord, ...]

    def __str__(self) -> str:
        where = f"{self.rows:,} rows" if self.rows is not None else "rows"
        text = f"{self.kernel}: {where} of {self.domain or 'unit'}"
        for p in self.products:
            text += f"; {p.kind} {p.spec}, {p.multiplications:,} multiplications"
        return text


def launches(program: Program, graph: OnGraph) -> list[Launch]:
    """The kernels of all phases, in the order they run, on a graph that was prepared."""
    out: list[Launch] = []
    for name, phase in program.phases.items():
        for data in phase.launches:
            domain = data["domain"]
            count = 1 if domain is None else graph.tables.size(domain) if domain else None
            products = tuple(
                ProductRecord(
                    p["kind"], p["spec"], count or 0, (count or 0) * math.prod(p["size"].values())
                )
                for p in data["products"]
            )
            out.append(Launch(name, data["kernel"], _name(domain), count, products))
    return out


def _name(domain: list[Any] | None) -> str:
    if domain is None:
        return ""
    if not domain:
        return "?"
    keys: list[str] = domain[1]
    return f"{domain[0]}[{', '.join(keys)}]" if keys else str(domain[0])
