"""New graphs at little cost: a program whose tables all come from one call of C a set
(sets/arrangement.py) needs to look up only once what they are and where they lie.

A program like that has its sets from the caller, and reads nothing of them but sizes, groups by a
map, and maps in the order of these. Whatever else it needs, or is given, `Program.on_graph` does: a
graph that is not small, sets that are made of others, and indices out of range, which it names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from numpy.typing import NDArray

from .carrier import Carrier
from .cpu.memory import HOST, HostArray
from .memory import Memory, Table
from .program import OnGraph, Phase, PhaseOnGraph, Program
from .sets.arrangement import LARGEST, Arranged, Arrangement, Column, MadeAhead
from .sets.sets import Group
from .sets.tables import Described, Domain, counts_up


class Given(NamedTuple):
    """The maps of a set by name, integers of `rows` rows each, as they lie in memory, and what
    somebody has made of them before."""

    columns: Mapping[str, Column]
    rows: int
    ahead: MadeAhead | None


class Place(NamedTuple):
    """A table: a number among what was made of a set."""

    set: str
    number: int


class AtOnce:
    """What is the same for all graphs of a program."""

    def __init__(self, program: Program, places: Mapping[str, Place]) -> None:
        self.places = places
        self.codomains = program.codomains
        self.arranged = [
            (name, a, [program.codomains[name][label] for label in a.maps])
            for name, a in program.arrangements.items()
        ]
        self.phases = program.phases

    @staticmethod
    def of(program: Program) -> AtOnce | None:
        """None where a program reads more of sets, or does not run on the host."""
        if program.data["runtime"] != "cpu" or program.plan or program.structure_rows:
            return None
        arrangements = program.arrangements
        if any(maps and name not in arrangements for name, maps in program.codomains.items()):
            return None
        if not all(map(_is_plain, program.phases.values())):
            return None
        places = {b.key: _place(b, arrangements) for b in program.tables}
        known = {key: place for key, place in places.items() if place is not None}
        return AtOnce(program, known) if len(known) == len(places) else None

    def on_graph(
        self,
        count: Mapping[str, int],
        given: Mapping[str, Given],
        carrier: Carrier | None = None,
    ) -> OnGraph | None:
        """The program on a graph of sets with so many rows, of which those with maps are `given`;
        None where `Program.on_graph` has to do it, or to say why it cannot be done. `carrier`: see
        there.

        Raises:
            ValueError: a set has not as many rows as the program was made for.
        """
        if max(count.values(), default=0) > LARGEST:
            return None
        made: dict[str, Arranged] = {}
        for name, arrangement, into in self.arranged:
            columns, rows, ahead = given[name]
            if rows != count[name]:
                return None
            codomains = [count[other] for other in into]
            found = None if ahead is None else ahead.arranged(arrangement, codomains)
            if found is None:
                in_order = [columns[label] for label in arrangement.maps]
                found = arrangement.of_columns(in_order, rows, codomains)
            if not isinstance(found, Arranged):
                return None
            made[name] = found
        tables = TablesAtOnce(self, count, made)
        phases = {name: PhaseOnGraph(p, tables, HOST, carrier) for name, p in self.phases.items()}
        tables.settle()
        return OnGraph(tables, phases, HOST)


class TablesAtOnce:
    """The tables of one graph, as `Tables` of sets/tables.py has them."""

    def __init__(
        self, plan: AtOnce, count: Mapping[str, int], made: Mapping[str, Arranged]
    ) -> None:
        self._plan, self._count, self._made = plan, count, made

    def size(self, domain: Domain) -> int:
        """See `Tables`."""
        name, keys = domain
        for key in keys:
            for step in key.split("."):
                name = self._plan.codomains[name][step]
        return self._count[name]

    def table(self, spec: Mapping[str, Any]) -> NDArray[Any]:
        """See `Tables`."""
        assert isinstance(spec, Described)
        name, number = self._plan.places[spec.key]
        return self._made[name].arrays[number]

    def uploaded(self, spec: Mapping[str, Any], memory: Memory) -> tuple[Table | None, int]:
        """See `Tables`."""
        assert isinstance(spec, Described)
        name, number = self._plan.places[spec.key]
        made = self._made[name]
        array = made.arrays[number]
        if spec["kind"] == "members" and counts_up(array):
            return None, array.nbytes
        return HostArray(array, made.addresses[number]), array.nbytes

    def settle(self) -> None:
        """See `Tables`."""
        self._made = {name: found.starts() for name, found in self._made.items()}

    def group(self, domain: Domain, along: list[str]) -> Group:
        """See `Tables`; of the rows nothing is known any more."""
        (by,) = along
        arrangement = next(a for name, a, _ in self._plan.arranged if name == domain[0])
        ptr = self._made[domain[0]].arrays[arrangement.ptr_at(by)]
        return Group(ptr, None)


def _is_plain(phase: Phase) -> bool:
    """Whether the phase asks for sizes and tables, and exchanges no rows of sets."""
    layout = phase.layout
    asked = [*layout.domains, *(d for d, _ in phase.required)]
    few = all(not domain or len(domain[1]) < 2 for domain in asked)
    return few and not layout.shares and all(_is_fixed(b) for _, b in layout.others)


def _is_fixed(b: Mapping[str, Any]) -> bool:
    """Whether what a phase has of its own is the same on all graphs: a table of numbers, or what
    ranks reduce of single rows."""
    if b["kind"] != "comm":
        return b["kind"] == "table"
    reduced = [rows for r in b["reductions"] for rows in r["buffers"]]
    return not b["moves"] and not b["publications"] and not any(rows["at"] for rows in reduced)


def _place(b: Described, arrangements: Mapping[str, Arrangement]) -> Place | None:
    """Where a table is; None where it is not one that is made at once."""
    name, keys = b["domain"]
    arrangement = arrangements.get(name)
    number = None if arrangement is None or keys else arrangement.number(b)
    return None if number is None else Place(name, number)
