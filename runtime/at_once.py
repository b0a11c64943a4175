"""New graphs at little cost: a program whose tables all come from one call of C a set
(sets/arrangement.py) needs to look up only once what they are and where they lie.

A program like that reads nothing of its sets but sizes, groups by a map, and maps in the order of
these. The sets that it makes of others are made step by step (sets/structure.py), their tables at
once as those of the caller's are. Whatever else it needs, or is given, `Program.on_graph` does: a
graph that is not small, maps that are not defined everywhere, and indices out of range, which it
names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from numpy.typing import NDArray

from .carrier import Carrier
from .cpu.memory import HOST, HostArray
from .memory import Memory, Table
from .program import OnGraph, Phase, PhaseOnGraph, Program
from .sets.arrangement import LARGEST, Arranged, Arrangement, Column, MadeAhead
from .sets.sets import Group, SetData
from .sets.structure import run_plan
from .sets.tables import Described, Domain, Tables, contiguous, counts_up

Structure: TypeAlias = Callable[[], tuple[Mapping[str, SetData], Mapping[str, NDArray[Any]]]]
"""The sets of a call, and the integer rows that sets are made of."""


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

    def __init__(
        self,
        program: Program,
        asked: Mapping[str, Arrangement],
        places: Mapping[str, Place],
    ) -> None:
        self.places = places
        self.codomains = program.codomains
        self.phases = program.phases
        self.plan, self.constants = program.plan, program.constants
        self.rows = program.structure_rows
        self.kept = program.sets_made | set(self.rows.values())
        self.asked = asked
        # the maps of a set are read as they lie in memory where they are all a caller's
        self.given = [
            (name, a, [self.codomains[name][label] for label in a.maps])
            for name, a in asked.items()
            if name not in program.sets_made and self.codomains[name].keys() >= set(a.maps)
        ]
        own = {name for name, _, _ in self.given}
        self.derived = [name for name in asked if name not in own]
        self.has_partial = False
        """Whether a graph had maps that are not defined everywhere: others have them as well."""

    @staticmethod
    def of(program: Program) -> AtOnce | None:
        """None where a program reads more of sets, or does not run on the host."""
        if program.data["runtime"] != "cpu" or not all(map(_is_plain, program.phases.values())):
            return None
        asked: dict[str, Arrangement] = {}
        for name, maps in program.codomains.items():
            labels = _labels(name, program)
            if name not in program.sets_made:
                labels = [*maps, *(label for label in labels if label not in maps)]
            if not labels:
                continue
            found = Arrangement.of(name, labels, program.tables)
            asked[name] = found or Arrangement(tuple(labels), ())
        places = {b.key: _place(b, asked) for b in program.tables}
        known = {key: place for key, place in places.items() if place is not None}
        return AtOnce(program, asked, known) if len(known) == len(places) else None

    def on_graph(
        self,
        count: Mapping[str, int],
        given: Mapping[str, Given],
        structure: Structure,
        carrier: Carrier | None = None,
    ) -> OnGraph | None:
        """The program on a graph of sets with so many rows, of which those with maps are `given`;
        None where `Program.on_graph` has to do it, or to say why it cannot be done. `carrier`: see
        there.

        Raises:
            IndexError, ValueError: what sets are made of leads to no row, or does not fit.
            ValueError: a set has not as many rows as the program was made for.
        """
        steps = bool(self.plan or self.derived or self.rows)
        if max(count.values(), default=0) > LARGEST or self.has_partial:
            return None
        if steps and carrier is not None:
            return None
        made: dict[str, Arranged] = {}
        for name, arrangement, into in self.given:
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
        handed: dict[str, Any] = {}
        if steps:
            sets = self._made(structure, made, handed)
            if sets is None:
                return None
            count = {**count, **{name: s.size for name, s in sets.items()}}
        tables = TablesAtOnce(self, count, made)
        phases = {name: PhaseOnGraph(p, tables, HOST, carrier) for name, p in self.phases.items()}
        tables.settle()
        return OnGraph(tables, phases, HOST, handed)

    def _made(
        self, structure: Structure, made: dict[str, Arranged], handed: dict[str, Any]
    ) -> Mapping[str, SetData] | None:
        """All sets, those that the program makes too, which are put among the arranged ones."""
        sets, rows = structure()
        for name, s in sets.items():
            if name in made:
                for label, array in zip(self.asked[name].maps, made[name].maps, strict=True):
                    s.maps[label].check_by(array)
            else:
                s.check()
        done = run_plan(self.plan, {**self.constants, **sets, **rows}, {*self.kept, *sets})
        for name, key in self.rows.items():
            value = done[key]
            assert not isinstance(value, SetData)
            handed[name] = contiguous(value)
        found = {name: s for name, s in done.items() if isinstance(s, SetData)}
        tables = Tables(found, self.codomains)
        for name in self.derived:
            arrangement = self.asked[name]
            maps = [tables.path([name, []], label) for label in arrangement.maps]
            if any(m.partial for m in maps):
                self.has_partial = True
                return None
            arrays = [m.array for m in maps]
            arranged = arrangement.arranged(arrays, [m.codomain for m in maps])
            if not isinstance(arranged, Arranged):
                return None
            made[name] = arranged
        return found


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
        arrangement = self._plan.asked[domain[0]]
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


def _labels(name: str, program: Program) -> list[str]:
    """The maps that tables of the set's own rows are made of, dotted where they lead on."""
    found: dict[str, None] = {}
    for b in program.tables:
        if b["domain"] == [name, []]:
            found |= dict.fromkeys((*b.get("along", ()), *filter(None, [b.get("path")])))
    return list(found)


def _place(b: Described, arrangements: Mapping[str, Arrangement]) -> Place | None:
    """Where a table is; None where it is not one that is made at once."""
    name, keys = b["domain"]
    arrangement = arrangements.get(name)
    number = None if arrangement is None or keys else arrangement.number(b)
    return None if number is None else Place(name, number)
