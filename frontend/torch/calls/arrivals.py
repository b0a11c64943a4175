"""Edges of batches that are arranged before a program asks for it.

A loader makes its batches ahead, in threads of its own. What programs asked of the edges of its
batches before (their orders, runtime/sets/arrangement.py) it makes of those of the next ones too,
and a program finds it under the tensor, as it does what it has prepared for a graph itself: an edit
in place, or other numbers of nodes, and it is made anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import Tensor

from ....runtime.memo import Memo
from ....runtime.sets.arrangement import Arranged, Arrangement, Order

KEPT = 64
"""Lists of edges of which something made ahead is kept."""
MOST = 4
"""Ways of arranging edges that one loader makes ahead."""


class Request(NamedTuple):
    """Orders of a set whose maps are these rows of a list of edges: 0 has the sources, 1 the
    targets."""

    rows: tuple[int, ...]
    orders: tuple[Order, ...]


class Asked:
    """What programs have asked of the edges of one kind of a loader's batches."""

    def __init__(self) -> None:
        self.requests: tuple[Request, ...] = ()

    def note(self, request: Request) -> None:
        """The next batches are to bring this along."""
        if request not in self.requests and len(self.requests) < MOST:
            self.requests = (*self.requests, request)


@dataclass(frozen=True)
class Arrival:
    """What was made of a list of edges between `counts` sources and targets."""

    asked: Asked
    counts: tuple[int, int]
    made: dict[Request, Arranged]

    def arranged(self, request: Request, codomains: Sequence[int]) -> Arranged | None:
        """What was asked, if it was made for as many rows."""
        if request not in self.made:
            self.asked.note(request)
        same = all(n == self.counts[row] for row, n in zip(request.rows, codomains, strict=True))
        return self.made.get(request) if same else None


_arrivals = Memo(KEPT)


def arrive(edges: Tensor, counts: tuple[int, int], asked: Asked) -> None:
    """Makes what was asked of the edges of batches before. To be called when the edges (integers
    on the host, shape [2, edges]) are as a program will see them; one thread is used."""
    rows = edges.detach().numpy()
    made: dict[Request, Arranged] = {}
    for request in asked.requests:
        arrangement = Arrangement(("",) * len(request.rows), request.orders)
        codomains = [counts[row] for row in request.rows]
        found = arrangement.arranged([rows[row] for row in request.rows], codomains, threads=1)
        if isinstance(found, Arranged):  # else the call says what is wrong
            made[request] = found
    _arrivals.get_for([edges], None, lambda: Arrival(asked, counts, made))


@dataclass(frozen=True)
class Ahead:
    """What is known of the edges that are the maps of a set, by name `rows` of a list."""

    arrival: Arrival
    rows: Mapping[str, int]

    def arranged(self, arrangement: Arrangement, codomains: Sequence[int]) -> Arranged | None:
        """See runtime/sets/arrangement.py."""
        rows = tuple([self.rows[name] for name in arrangement.maps])
        return self.arrival.arranged(Request(rows, arrangement.orders), codomains)


def ahead(edges: Any, rows: Mapping[str, int]) -> Ahead | None:
    """What a loader has made of a list of edges; None where it is no loader's."""
    if not len(_arrivals):
        return None
    found = _arrivals.find([edges], None)
    return None if found is None else Ahead(found, rows)
