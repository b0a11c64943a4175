"""Where the buffers of a phase come from, as far as it is the same for all graphs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .cpu.pool import SMALL
from .sets.tables import KINDS, SHARES, Described, Domain, GraphTables

ALIGN = 64
"""Small temporaries begin at multiples of so many bytes."""
SCRATCH = "scratch"
"""The region for workspace and small temporaries."""

ONE: Domain = []
"""The domain of a single row."""
Region = tuple[Any, int]
"""A piece of memory of a call, and its bytes."""
Rows = tuple[int, int, int | None, int]
"""A buffer of rows: its place, the number of its domain, the place of a table which has a row each
(or None: the domain says how many), and the bytes of a row."""
BytesOf = Callable[[Rows], int]


class Places(NamedTuple):
    """Where the temporaries of a call lie.

    Attributes:
        regions: the longest first: a short one would take memory that a longer one fits in.
        small: temporaries with their places in `SCRATCH`, where the workspace comes first.
        large: the others by their regions.
    """

    regions: list[Region]
    small: list[tuple[int, int]]
    large: list[tuple[Any, list[int]]]


class Layout:
    """What the buffers of a phase are, each by its place in the argument array.

    Attributes:
        domains: those that sizes are asked of, numbered; first `ONE`, a single row.
        sizes: the numbers of the domains whose sizes C is given.
        rows: inputs, outputs and temporaries.
        shares: tables whose lengths the phase asks for.
        tables: those that graphs have, `others` tables and the like that it makes itself.
        members: the temporaries of each region, as `rows`: those that are never in use at the
            same time share one.
    """

    def __init__(self, buffers: Sequence[Mapping[str, Any]], sizes: Sequence[Domain]) -> None:
        self.domains: list[Domain] = [ONE]
        self.sizes = [self.number(domain) for domain in sizes]
        self.rows: list[Rows] = []
        self.shares: list[tuple[int, Described]] = []
        self.tables: list[tuple[int, Described]] = []
        self.others: list[tuple[int, Mapping[str, Any]]] = []
        self.members: dict[Any, list[Rows]] = {}
        for k, b in enumerate(buffers):
            if b["kind"] in ("input", "output", "temporary"):
                bytes_of_row = math.prod(b["row"]) * b["bytes"]
                self.rows.append((k, self.number(b["domain"]), b.get("rows_of"), bytes_of_row))
                if b["kind"] == "temporary":
                    key = ("own", k) if b["slot"] is None else b["slot"]
                    self.members.setdefault(key, []).append(self.rows[-1])
            elif b["kind"] not in KINDS:
                self.others.append((k, b))
            else:
                self.tables.append((k, Described(b)))
                if b["kind"] in SHARES:
                    self.shares.append(self.tables[-1])

    def number(self, domain: Domain | None) -> int:
        """The number of a domain; None is a single row."""
        domain = domain or ONE
        if domain not in self.domains:
            self.domains.append(domain)
        return self.domains.index(domain)

    def counts(self, tables: GraphTables) -> list[int]:
        """How many rows each domain has on a graph."""
        return [1, *(tables.size(domain) for domain in self.domains[1:])]

    def placed(self, bytes_of: BytesOf, workspace: int) -> Places:
        """Where temporaries lie in a call, by the bytes of a buffer of rows."""
        scratch = workspace
        small: list[tuple[int, int]] = []
        large: list[tuple[Any, list[int]]] = []
        regions: list[Region] = []
        for key, members in self.members.items():
            size = max([bytes_of(rows) for rows in members])
            places = [k for k, *_ in members]
            if size >= SMALL:
                large.append((key, places))
                regions.append((key, size))
                continue
            offset = -(-scratch // ALIGN) * ALIGN
            small += [(k, offset) for k in places]
            scratch = offset + max(size, 1)  # an empty one has an address of its own too
        regions.append((SCRATCH, scratch))
        regions.sort(key=lambda region: -region[1])
        return Places(regions, small, large)
