"""The phases of a program as C: what each is called with, on one graph. In Python that is
runtime/program.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .names import BYTES, C_TYPES, CNames, literal, number
from .placement import Placement
from .tables import TableCode

SHARES = {"cuts": 8, "pieces": 24}
"""How work is shared among the blocks of a device: the bytes of each entry."""


class PhaseCode:
    """Prints a phase. `values` has the C expressions of the buffers that it takes, by name: blocks
    of the host, or what kernels have `made`; its outputs are added to both. `declared` are global
    variables, `ready` the lines that make the phase ready for a graph, `call` those that run it.

    Raises:
        NoProgram: the phase exchanges rows with other ranks, and the program is for one process.
    """

    def __init__(
        self,
        phase: Mapping[str, Any],
        names: CNames,
        tables: TableCode,
        values: dict[str, str],
        made: set[str],
        placement: Placement,
    ) -> None:
        self.phase, self.names, self.tables, self.values = phase, names, tables, values
        self.made, self.placement = made, placement
        self.shares: dict[int, str] = {}
        self.lengths: dict[int, str] = {}
        self.counted = False
        name: str = phase["name"]
        self.n, self.b, self.ws = f"n_{name}", f"b_{name}", f"ws_{name}"
        sizes = len(phase["sizes"])
        lengths = max(sizes + len(phase["counts"]), 1), max(len(phase["buffers"]), 1)
        self.declared = [
            placement.prototype(name),
            f"static int64_t {self.n}[{lengths[0]}];",
            f"static void *{self.b}[{lengths[1]}];",
            f"static char *{self.ws};",
        ]
        self.ready = tables.lines
        self.call = [
            *placement.section(f"the phase {name}"),
            placement.call(name, self.ws, self.n, self.b),
        ]
        self._required()
        for k, domain in enumerate(phase["sizes"]):
            self.ready.append(f"{self.n}[{k}] = {tables.size(domain)};")
        for k, buffer in enumerate(phase["buffers"]):
            if buffer["kind"] in SHARES:
                self._share(k, buffer)
            elif buffer["kind"] == "chunks":
                self.lengths[k] = self._chunks(buffer)
        for k, place in enumerate(phase["counts"]):
            self.ready.append(f"{self.n}[{sizes + k}] = {self.lengths[place]};")
        self._temporaries()
        for k, buffer in enumerate(phase["buffers"]):
            if buffer["kind"] not in ("temporary", "chunks"):
                self._bind(k, buffer)
        if phase["workspace"]:
            self.ready.append(f"{self.ws} = {placement.reserved(phase['workspace'])};")

    def _required(self) -> None:
        for domain, count in self.phase["required"]:
            size = self.tables.size(domain)
            line = f"want_size({literal(domain[0])}, {size}, {count});"
            if line not in self.ready:
                self.ready.append(line)

    def _share(self, k: int, b: Mapping[str, Any]) -> None:
        variable = self.names.of("h_", f"{self.phase['name']}_{k}")
        self.shares[k] = variable
        self.lengths[k] = f"{variable}.count"
        self.ready.append(f"const Shares {variable} = {self.tables.shares(b)};")

    def _chunks(self, b: Mapping[str, Any]) -> str:
        """What rows are cut into (runtime/reserves.py)."""
        rows = " + ".join([f"INT64_C({b['pieces']})", *map(self.tables.size, b["rows"])])
        members = "INT64_C(0)" if b["work"] is None else self.tables.size(b["work"])
        numbers = {"rows": rows, "members": members, "most": b["chunks"]}
        names = ("row_cost", "grain", "bytes", "block", "round")
        numbers |= {name: b[name] for name in names} | {"room": self._room(b["step"])}
        cut = ", ".join(f".{name} = {value}" for name, value in numbers.items())
        return f"reserved({b['of'].upper()}, (Cut){{{cut}}})"

    def _room(self, step: int) -> str:
        """What scratch memory may take at a step."""
        name = f"rows_{self.phase['name']}"
        if not self.counted:
            self.counted = True
            buffers = [b for b in self.phase["buffers"] if not b.get("scratch")]
            living = [b for b in buffers if b["kind"] in ("temporary", "output") or "passed" in b]
            uses = [self._use(b) for b in living]
            self.ready.append(f"const int64_t {name}[] = {{{', '.join(uses or ['0'])}}};")
        return f"room_at(sizeof {name} / 24, {name}, {step})"

    def _use(self, b: Mapping[str, Any]) -> str:
        """The bytes of a buffer of rows, and the steps from which to which it is in use."""
        of = b.get("rows_of")
        count = self.tables.size(b["domain"]) if of is None else self.lengths[of]
        first, last = b.get("lives") or (0, "INT64_MAX")
        return f"{count} * INT64_C({math.prod(b['row']) * b['bytes']}), {first}, {last}"

    def _temporaries(self) -> None:
        """Temporaries whose lives do not overlap share memory."""
        buffers = [(k, b) for k, b in enumerate(self.phase["buffers"]) if b["kind"] == "temporary"]
        if not buffers:
            return
        name: str = self.phase["name"]
        uses = [self._use(b) for _, b in buffers]
        self.ready.append(f"const int64_t uses_{name}[] = {{{', '.join(uses)}}};")
        self.ready.append(f"int64_t at_{name}[{len(uses)}];")
        size = f"laid_out({len(uses)}, uses_{name}, at_{name})"
        self.ready.append(f"char *const block_{name} = {self.placement.reserved(size)};")
        for i, (k, _) in enumerate(buffers):
            self.ready.append(f"{self.b}[{k}] = block_{name} + at_{name}[{i}];")

    def _bind(self, k: int, b: Mapping[str, Any]) -> None:
        target = f"{self.b}[{k}]"
        match b["kind"]:
            case "input":
                value = self.values[b["name"]]
                size = self._size(b)
                value = value if b["name"] in self.made else self.placement.given(value, size)
                self.ready.append(f"{target} = {value};")
            case "output":
                self.ready.append(f"{target} = {self.placement.reserved(self._size(b))};")
                self.values[b["name"]] = target
                self.made.add(b["name"])
            case "table":
                name = self.names.of("t_", f"{self.phase['name']}_{k}")
                elem: str = b["dtype"]
                values = ", ".join(number(x, elem) for x in b["values"])
                self.declared.append(f"static {C_TYPES[elem]} {name}[] = {{{values}}};")
                self.ready.append(f"{target} = {self.placement.given(name, f'sizeof {name}')};")
            case kind if kind in SHARES:
                share = self.shares[k]
                size = f"{share}.count * INT64_C({SHARES[kind]})"
                self.ready.append(f"{target} = {self.placement.given(f'{share}.at', size)};")
            case "comm":
                self.ready += self.placement.carried(target, b, self.tables)
            case _:
                array, size = self.tables.table(b)
                self.ready.append(f"{target} = {self.placement.given(array, size)};")

    def _size(self, b: Mapping[str, Any]) -> str:
        row = math.prod(b["row"]) * BYTES[b["dtype"]]
        return f"{self.tables.size(b['domain'])} * INT64_C({row})"
