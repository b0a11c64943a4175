"""Compiled programs: shared objects with the plain data that says how to call them.

Nothing here knows tensors: buffers are addresses. runtime/tensors.py allocates them as torch
tensors.
"""

from __future__ import annotations

import ctypes
import functools
import json
import math
import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .carrier import PEER, Carrier, Direct, PhaseCalls, Sharing
from .cpu.heap import BOUND, heap
from .cpu.memory import HOST
from .layout import SCRATCH, Layout, Places, Rows
from .memory import Memory, Table
from .messages import Messages
from .plans import Plans
from .sets import structure
from .sets.arrangement import Arranged, Arrangement
from .sets.set_steps import SETS_MADE
from .sets.sets import SetData
from .sets.tables import Described, GraphTables, Tables, contiguous, sets_of_tables

DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "i1": np.bool_}
INDEX = 4
"""Bytes of a row's number."""

RUNTIMES = {"cpu": "cpu.loader", "cuda": "cuda.loader", "emulator": "emulator.loader"}
"""Who runs programs: modules with a function `load_program`, a :class:`Loader`. Artifacts say who
runs them."""
LOADERS = {**RUNTIMES, "elsewhere": "elsewhere"}
"""The same, with what runs nothing."""

ON_HOST = ("cpu", "emulator")
"""Those that need no device."""


def memory_of(runtime: str, device: str) -> Memory:
    """The memory of a device that those have who run programs so. Raises ValueError for a device on
    which they run none."""
    return import_module(f".{RUNTIMES[runtime]}", __package__).memory_of(device)


class Entry(Protocol):
    """Runs one phase: `workspace` is the address of scratch memory, `pointers` those of all
    buffers."""

    seconds: ctypes.Array[ctypes.c_double] | None

    def run(
        self, phase: PhaseOnGraph, workspace: int, pointers: ctypes.Array[ctypes.c_void_p]
    ) -> None: ...


class Loaded(Protocol):
    """A program that is ready to run, from the shared object at `path`."""

    path: Path

    def entry(self, data: Mapping[str, Any]) -> Entry:
        """What runs a phase with this interface."""
        ...

    def memory(self, device: str) -> Memory:
        """The memory of a device on which the program can run. Raises ValueError for another."""
        ...


class Loader(Protocol):
    """Makes a program ready to run. Raises CompileError, NoCompiler."""

    def __call__(
        self,
        data: Mapping[str, Any],
        source: str,
        *,
        march: str | None,
        sanitize: bool,
        profile: bool,
        denormals: bool,
    ) -> Loaded: ...


@dataclass(frozen=True)
class Buffer:
    """A buffer that the caller provides: its place in the argument array, row shape, element type
    and domain. An input that `gives` a name holds the output of that name after the call.
    """

    slot: int
    name: str
    row: tuple[int, ...]
    dtype: str
    domain: list[Any] | None
    gives: str | None

    @functools.cached_property
    def bytes_of_row(self) -> int:
        return math.prod(self.row) * np.dtype(DTYPES[self.dtype]).itemsize


class Phase:
    """The interface of one phase, and the function that runs it.

    `seconds` adds up the time of each kernel over all calls, where the program is profiled.
    """

    def __init__(self, data: Mapping[str, Any], entry: Entry) -> None:
        self.entry = entry
        self.name: str = data["name"]
        self.kernels: list[str] = data["kernels"]
        self.launches: list[dict[str, Any]] = data["launches"]
        self.workspace: int = data["workspace"]
        self.sizes: list[list[Any]] = data["sizes"]
        self.counts: list[int] = data["counts"]
        self.required: list[tuple[list[Any], int]] = data["required"]
        self.buffers: list[dict[str, Any]] = data["buffers"]
        self.layout = Layout(self.buffers, self.sizes)
        self.plans = Plans(self.layout, self.workspace)
        self.inputs = self.named("input")
        self.outputs = self.named("output")
        self.output_domains = [(b.slot, self.layout.number(b.domain)) for b in self.outputs]
        self.seconds = entry.seconds
        # ctypes makes a type anew when nobody has it any more
        places = max(len(self.buffers), 1)
        self.pointers = ctypes.c_void_p * places
        self.packed = struct.Struct(f"{places}P").pack
        self.numbers = ctypes.c_int64 * max(len(self.sizes) + len(self.counts), 1)

    def named(self, kind: str) -> list[Buffer]:
        return [
            Buffer(k, b["name"], tuple(b["row"]), b["dtype"], b.get("domain"), b.get("gives"))
            for k, b in enumerate(self.buffers)
            if b["kind"] == kind
        ]


class PhaseOnGraph:
    """A phase with the sizes and tables of one graph filled in, in `memory`; calls may come from
    several threads. `carrier` carries what it exchanges with other ranks.

    Raises:
        ValueError: a set has not as many rows as the program was made for, or nobody carries what
            the phase exchanges.
        MemoryError: there is no memory for the tables.
    """

    def __init__(
        self,
        phase: Phase,
        tables: GraphTables,
        memory: Memory = HOST,
        carrier: Carrier | None = None,
    ) -> None:
        self.phase = phase
        self.memory = memory
        self.carrier = carrier
        self.messages: Messages | None = None
        for domain, count in phase.required:
            if (found := tables.size(domain)) != count:
                raise ValueError(
                    f"set {domain[0]} has {found} rows, the program is made for {count}: "
                    "give a graph with as many, or compile the model for this one"
                )
        layout = phase.layout
        counts = layout.counts(tables)
        self.counts = counts
        self.rows_in_all = sum(counts)
        self.lengths = lengths = {k: len(tables.table(b)) for k, b in layout.shares}
        if layout.reserves:
            room = layout.rooms(self.bytes_of)
            lengths |= {k: reserve.length(counts, room) for k, reserve in layout.reserves}
        lengths |= {k: self.ranks for k, b in layout.others if b["kind"] == "peers"}
        sizes = [counts[d] for d in layout.sizes] + [lengths[k] for k in phase.counts]
        self.sizes = phase.numbers(*sizes)
        self.keep: list[Table] = []
        self.fixed = [0] * len(phase.buffers)
        self.rows = {slot: counts[d] for slot, d in phase.output_domains}
        self.table_bytes: dict[int, int] = {}
        for k, b in layout.tables:
            held, self.table_bytes[k] = tables.uploaded(b, memory)
            if held is not None:
                self._hold(k, held)
        for k, b in layout.others:
            if b["kind"] == "comm":
                self.messages = self._messages(k, b, tables)
            else:
                array = self._own_table(b, tables)
                self.table_bytes[k] = array.nbytes
                self._hold(k, memory.upload(array))
        self.places: dict[tuple[int, ...], Places] = {}
        self.start = phase.packed(*(self.fixed or [0]))

    def bytes_of(self, rows: Rows) -> int:
        """The bytes of a buffer of rows."""
        _, domain, of, size = rows
        return size * (self.counts[domain] if of is None else self.lengths[of])

    @functools.cached_property
    def bytes(self) -> list[int]:
        """The bytes of each buffer."""
        of = {rows[0]: self.bytes_of(rows) for rows in self.phase.layout.rows} | self.table_bytes
        return [of.get(k, 0) for k in range(len(self.phase.buffers))]

    def _hold(self, place: int, table: Table) -> None:
        self.keep.append(table)
        self.fixed[place] = table.address

    def _messages(self, place: int, b: Mapping[str, Any], tables: GraphTables) -> Messages:
        if self.carrier is None:
            raise ValueError(
                f"@{self.phase.name} exchanges rows with other ranks: give a carrier, or "
                "Alone() of runtime/carrier.py where there is one rank"
            )
        index = {k: t for k, t in self.phase.layout.tables if t["kind"] == "index_map"}
        found = Messages.of(
            place, b, tables.size, DTYPES, lambda k: contiguous(tables.table(index[k]))
        )
        if found.publications and not isinstance(self.carrier, Sharing):
            raise ValueError(
                f"in @{self.phase.name} ranks read each other's rows, and a "
                f"{type(self.carrier).__name__} carries messages alone: compile without "
                "publish-rows and publish-totals"
            )
        return found

    @property
    def ranks(self) -> int:
        """How many see each other's memory; 0 where none do."""
        return self.carrier.ranks if isinstance(self.carrier, Sharing) else 0

    @functools.cached_property
    def calls(self) -> PhaseCalls | None:
        """What carries the messages of the phase without Python, where that is possible."""
        if self.messages is None or not isinstance(self.carrier, Direct):
            return None
        return self.carrier.calls(self.phase.name, self.messages)

    def _own_table(self, b: Mapping[str, Any], tables: GraphTables) -> NDArray[Any]:
        """A table of the phase's; those of others' rows are filled when these are published."""
        match b["kind"]:
            case "table":
                return np.array(b["values"], dtype=DTYPES[b["dtype"]])
            case "peers":
                return np.zeros(self.ranks)
            case _:
                return np.zeros(tables.size(b["domain"]), np.uint64)

    def placed(self, spent: tuple[int, ...] = ()) -> Places:
        """Where temporaries lie; `spent` are the places of inputs that the call may write over."""
        if spent not in self.places:
            plans = self.phase.plans
            self.places[spent] = plans.of(self.counts, self.lengths, self.bytes_of, spent)
        return self.places[spent]

    def most_alive(self, held: Collection[int] = ()) -> int:
        """The most bytes of buffers that are in use at a step, of inputs those whose places are
        `held`."""
        return self.phase.layout.most_alive(self.bytes_of, held)

    def call(self, addresses: Mapping[int, int], spent: tuple[int, ...] = ()) -> None:
        """Run the phase; `addresses` gives the inputs and outputs by their place in the argument
        array. Nobody reads those inputs afterwards whose places are `spent`.
        """
        pointers = self.phase.pointers.from_buffer_copy(self.start)
        places = self.placed(spent)
        # a room each, so that the next phase finds them whatever it needs them for
        leases = {room: self.memory.take(size) for room, size in places.rooms}
        start = {room: lease.address for room, lease in leases.items()}
        for room, k in places.lent:
            start[room] = addresses[k]
        for k, room, offset in places.within:
            pointers[k] = start[room] + offset
        for k, address in addresses.items():
            pointers[k] = address
        self.phase.entry.run(self, start[SCRATCH], pointers)


@dataclass
class OnGraph:
    """What a program has prepared for one graph: tables, phases, and the rows that @prepare
    computed. `noted` is what the caller keeps of the graph.
    """

    tables: GraphTables
    phases: dict[str, PhaseOnGraph]
    memory: Memory
    rows: dict[str, Any] = field(default_factory=dict[str, Any])
    noted: Any = None


class Program:
    """A loaded artifact (codegen/common/artifact.py); with `profile` its phases measure their
    kernels, with `denormals` they do not take denormal numbers for 0.

    Raises:
        ValueError: the artifact is for a target that is not run here.
        CompileError, NoCompiler: from the tool chain.
    """

    def __init__(
        self,
        artifact: str,
        *,
        march: str | None = None,
        sanitize: bool = False,
        profile: bool = False,
        denormals: bool = False,
    ) -> None:
        data = json.loads(artifact)
        if data["runtime"] not in LOADERS:
            raise ValueError(
                f"this program is for the target {data['target']}, which {data['runtime']} runs: "
                f"those at hand are {', '.join(RUNTIMES)}"
            )
        self.data: dict[str, Any] = data
        self.target: str = data["target"]
        chosen = "#define GNNC_PROFILE\n" * profile + "#define GNNC_DENORMALS\n" * denormals
        self.source: str = chosen + data["source"]
        loader: Loader = import_module(f".{LOADERS[data['runtime']]}", __package__).load_program
        self.loaded = loaded = loader(
            data,
            self.source,
            march=march,
            sanitize=sanitize,
            profile=profile,
            denormals=denormals,
        )
        self.path = loaded.path
        self.phases = {
            name: Phase(spec, loaded.entry(spec))
            for name, spec in data["phases"].items()
            if spec["buffers"] or name != "prepare"  # nothing may depend on the graph alone
        }
        steps = [
            structure.Step(name, tuple(inputs), tuple(outputs), attrs)
            for name, inputs, outputs, attrs in data["structure"]["steps"]
        ]
        self.plan = [s for s in steps if s.inputs]
        self.constants = structure.run_plan([s for s in steps if not s.inputs], {})
        """What steps of the plan make that read nothing, the same for all graphs."""
        self.made = {s.outputs[0] for s in steps}
        self.sets_made = {s.outputs[0] for s in steps if s.name in SETS_MADE}
        self.structure_inputs: list[str] = data["structure"]["inputs"]
        self.structure_rows: dict[str, str] = data["structure"]["rows"]
        self.codomains: dict[str, dict[str, str]] = data["maps"]
        self.gradients: dict[str, str] = data["gradients"]
        self.cotangents: dict[str, str] = data["cotangents"]
        self.read_for: dict[str, list[str]] = data["read_for"]

    @functools.cached_property
    def sets_of_tables(self) -> set[str]:
        """The sets whose maps are read for the tables of all phases."""
        buffers = [b for p in self.phases.values() for b in p.buffers]
        sizes = [
            {"kind": "size", "domain": d}
            for p in self.phases.values()
            for d in (*p.sizes, *(d for d, _ in p.required))
        ]
        return sets_of_tables([*buffers, *sizes], self.codomains)

    @functools.cached_property
    def tables(self) -> list[Described]:
        """The tables of all phases, each once."""
        found = {b.key: b for p in self.phases.values() for _, b in p.layout.tables}
        return list(found.values())

    @functools.cached_property
    def arrangements(self) -> dict[str, Arrangement]:
        """What is asked of the maps of sets that calls give."""
        given = {name: maps for name, maps in self.codomains.items() if name not in self.made}
        found = {name: Arrangement.of(name, list(m), self.tables) for name, m in given.items()}
        return {name: a for name, a in found.items() if a is not None}

    @property
    def kernels(self) -> list[str]:
        """Names of the kernels of all phases, in order."""
        return [k for p in self.phases.values() for k in p.kernels]

    def on_graph(
        self,
        sets: dict[str, SetData],
        rows: Mapping[str, NDArray[Any]],
        device: str = "cpu",
        carrier: Carrier | None = None,
    ) -> OnGraph:
        """Make the sets and tables for one graph; `rows` are the integer arguments that sets depend
        on, `device` is where the other arguments are. A program of one rank of several needs a
        `carrier`, whose plans are for this part of the graph.

        `sets` is emptied, so that what a set says of its rows goes as soon as tables are made of
        it, unless somebody else has the set.

        Raises:
            IndexError: an index out of range, naming the argument.
            ValueError: the program does not run on that device, or needs a carrier.
            MemoryError: there is no memory for the tables.
        """
        memory = self.loaded.memory(device)
        arranged: dict[str, Arranged] = {}
        for name, s in sets.items():
            arrangement = self.arrangements.get(name)
            found = None if arrangement is None else arrangement.of_set(s)
            if found is not None:
                arranged[name] = found
            else:
                s.check()
        kept = {*sets, *self.sets_made, *self.structure_rows.values()}
        given = set(sets)
        done = structure.run_plan(self.plan, {**self.constants, **sets, **rows}, kept, carrier)
        sets.clear()
        if carrier is not None:
            for name, s in done.items():
                if isinstance(s, SetData) and name not in given and PEER in s.maps:
                    carrier.know(name, s.map(PEER).array)
        read = self.sets_of_tables
        made = {
            k: v if k in read else v.outline() for k, v in done.items() if isinstance(v, SetData)
        }
        handed: dict[str, Any] = {}
        for name, key in self.structure_rows.items():
            rows_made = done[key]
            assert not isinstance(rows_made, SetData)
            handed[name] = contiguous(rows_made)
        rows_in_all = sum(s.size for s in made.values())
        tables = Tables(made, self.codomains)
        for name, found in arranged.items():
            tables.have(name, self.arrangements[name], found)
        del done, made, arranged
        tables.make(self.tables)
        phases = {name: PhaseOnGraph(p, tables, memory, carrier) for name, p in self.phases.items()}
        tables.settle()
        if rows_in_all * INDEX >= BOUND:
            heap.trim()  # of what was freed meanwhile the heap keeps a part that no kernel asks for
        return OnGraph(tables, phases, memory, handed)
