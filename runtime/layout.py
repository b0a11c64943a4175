"""Where the buffers of a phase come from, as far as it is the same for all graphs."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .arena import ALWAYS, Use, arena, most_in_use
from .cpu.pool import SMALL
from .reserves import KIND as CHUNKS
from .reserves import MORE, Reserve
from .sets.tables import KINDS, SHARES, Described, Domain, GraphTables

SCRATCH = 0
"""The room for workspace and small temporaries."""
TOGETHER = 16 << 20
"""Bytes of temporaries up to which all of them are small: to ask for a room each would take as long
as the kernels of a batch of small graphs do."""

ONE: Domain = []
"""The domain of a single row."""
Room = tuple[int, int]
"""The number of a piece of memory of a call, and its bytes."""
Rows = tuple[int, int, int | None, int]
"""A buffer of rows: its place, the number of its domain, the place of a table which has a row each
(or None: the domain says how many), and the bytes of a row."""
BytesOf = Callable[[Rows], int]


class Places(NamedTuple):
    """Where the temporaries of a call lie.

    Attributes:
        rooms: those that a call takes, the longest first: a short one would take memory that a
            longer one fits in.
        lent: rooms in the memory of outputs and inputs, with the places of these.
        within: the places of temporaries, their rooms, and how far in they begin.
    """

    rooms: list[Room]
    lent: list[tuple[int, int]]
    within: list[tuple[int, int, int]]


class Living(NamedTuple):
    """A buffer, and the steps from which to which it is in use."""

    rows: Rows
    first: int
    last: int


class Layout:
    """What the buffers of a phase are, each by its place in the argument array.

    Attributes:
        domains: those that sizes are asked of, numbered; first `ONE`, a single row.
        sizes: the numbers of the domains whose sizes C is given.
        rows: inputs, outputs and temporaries.
        reserves: numbers of chunks, with the places that they have among the buffers.
        shares: tables whose lengths the phase asks for.
        tables: those that graphs have, `others` tables and the like that it makes itself.
        living: the same as `rows`, by their kinds and with their lives.
        scratch: the places of temporaries that are scratch memory of a step.
        passed: the places of inputs that forward passed on, and of gradients of its results: as
            long as these, which the caller keeps.
    """

    def __init__(self, buffers: Sequence[Mapping[str, Any]], sizes: Sequence[Domain]) -> None:
        self.domains: list[Domain] = [ONE]
        self.sizes = [self.number(domain) for domain in sizes]
        self.rows: list[Rows] = []
        self.reserves: list[tuple[int, Reserve]] = []
        self.scratch: set[int] = set()
        self.passed: set[int] = set()
        self.shares: list[tuple[int, Described]] = []
        self.tables: list[tuple[int, Described]] = []
        self.others: list[tuple[int, Mapping[str, Any]]] = []
        self.living: dict[str, list[Living]] = {"input": [], "output": [], "temporary": []}
        for k, b in enumerate(buffers):
            if b["kind"] in self.living:
                bytes_of_row = math.prod(b["row"]) * b["bytes"]
                self.rows.append((k, self.number(b["domain"]), b.get("rows_of"), bytes_of_row))
                first, last = b.get("lives") or (0, ALWAYS)
                self.living[b["kind"]].append(Living(self.rows[-1], first, last))
                if b.get("scratch"):
                    self.scratch.add(k)
                if b.get("passed"):
                    self.passed.add(k)
            elif b["kind"] == CHUNKS:
                self.reserves.append((k, Reserve.of_spec(b, self.number)))
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

    def placed(self, bytes_of: BytesOf, workspace: int, spent: Collection[int] = ()) -> Places:
        """Where temporaries lie in a call, by the bytes of a buffer of rows: where an output is to
        lie until then, and where inputs were that nobody reads any more, whose places are `spent`.
        """
        lenders = [b for b in self.living["input"] if b.rows[0] in spent] + self.living["output"]
        there, lent = [Use(workspace, 0, ALWAYS)], list[tuple[int, int]]()
        for rows, first, last in lenders:
            if (size := bytes_of(rows)) >= SMALL:
                lent.append((len(there), rows[0]))
                there.append(Use(size, first, last))
        # an empty one has an address of its own too
        uses = [Use(bytes_of(x) or 1, first, last) for x, first, last in self.living["temporary"]]
        few = sum(use.size for use in uses) <= TOGETHER
        found = arena(there, uses, TOGETHER + 1 if few else SMALL)
        rooms = [(room, size) for room, size in enumerate(found.rooms) if not 0 < room < len(there)]
        rooms.sort(key=lambda room: -room[1])
        placed = zip(self.living["temporary"], found.places, strict=True)
        return Places(rooms, lent, [(b.rows[0], *place) for b, place in placed])

    def most_alive(self, bytes_of: BytesOf, held: Collection[int] = ()) -> int:
        """The most bytes of temporaries, outputs and those inputs whose places are `held` that are
        in use at a step, without scratch memory."""
        return most_in_use(self._uses(bytes_of, held))

    def rooms(self, bytes_of: BytesOf) -> Callable[[int], int]:
        """For each step the bytes that scratch memory may take at it: what is free there when as
        much is in use as at any other, with what lives across phases, and a small part (`MORE`) of
        that. Nothing is looked at before a step is asked for.
        """

        in_use: list[tuple[list[Use], int]] = []
        found: dict[int, int] = {}

        def room(step: int) -> int:
            if step not in found:
                if not in_use:
                    all_uses = list(self._uses(bytes_of, self.passed))
                    in_use.append((all_uses, most_in_use(all_uses)))
                [(uses, most)] = in_use
                taken = sum(size for size, first, last in uses if first <= step <= last)
                found[step] = most + most // MORE - taken
            return found[step]

        return room

    def _uses(self, bytes_of: BytesOf, held: Collection[int] = ()) -> Iterator[Use]:
        for kind, buffers in self.living.items():
            for rows, first, last in buffers:
                if rows[0] not in self.scratch and (kind != "input" or rows[0] in held):
                    yield Use(bytes_of(rows), first, last)
