"""The phases of a program as C: what each is called with, on one graph. In Python that is
runtime/program.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .names import BYTES, C_TYPES, CNames, literal, number
from .tables import TableCode

OUTPUT = "out_"


class PhaseCode:
    """Prints a phase. `values` has the C expressions of the buffers that it takes, by name; its
    outputs are added there. `declared` are global variables, `ready` the lines that make the phase
    ready for a graph, `call` the line that runs it."""

    def __init__(
        self, phase: Mapping[str, Any], names: CNames, tables: TableCode, values: dict[str, str]
    ) -> None:
        self.phase, self.names, self.tables, self.values = phase, names, tables, values
        name: str = phase["name"]
        self.n, self.b, self.ws = f"n_{name}", f"b_{name}", f"ws_{name}"
        counts = max(len(phase["sizes"]), 1), max(len(phase["buffers"]), 1)
        self.declared = [
            f"void gnnc_{name}(int threads, char *ws, const int64_t *n, void *const *b);",
            f"static int64_t {self.n}[{counts[0]}];",
            f"static void *{self.b}[{counts[1]}];",
            f"static char *{self.ws};",
        ]
        self.ready = tables.lines
        self.call = f"gnnc_{name}(threads(), {self.ws}, {self.n}, {self.b});"
        self._required()
        for k, domain in enumerate(phase["sizes"]):
            self.ready.append(f"{self.n}[{k}] = {tables.size(domain)};")
        self._slots()
        for k, buffer in enumerate(phase["buffers"]):
            if buffer["kind"] != "temporary":
                self._bind(k, buffer)
        self.ready.append(f"{self.ws} = reserve({phase['workspace']});")

    def _required(self) -> None:
        for domain, count in self.phase["required"]:
            size = self.tables.size(domain)
            line = f"want_size({literal(domain[0])}, {size}, {count});"
            if line not in self.ready:
                self.ready.append(line)

    def _slots(self) -> None:
        """Temporaries whose lives do not overlap share memory."""
        slots: dict[Any, list[int]] = {}
        buffers = self.phase["buffers"]
        for k, b in enumerate(buffers):
            if b["kind"] == "temporary":
                slots.setdefault(("own", k) if b["slot"] is None else b["slot"], []).append(k)
        for members in slots.values():
            most: dict[str, int] = {}
            for k in members:
                b = buffers[k]
                count = self.tables.size(b["domain"])
                most[count] = max(most.get(count, 0), math.prod(b["row"]) * b["bytes"])
            sizes = [f"{count} * {size}" for count, size in most.items()]
            longest = sizes[0]
            for other in sizes[1:]:
                longest = f"greater({longest}, {other})"
            chain = " = ".join(f"{self.b}[{k}]" for k in members)
            self.ready.append(f"{chain} = reserve({longest});")

    def _bind(self, k: int, b: Mapping[str, Any]) -> None:
        target = f"{self.b}[{k}]"
        match b["kind"]:
            case "input":
                self.ready.append(f"{target} = {self.values[b['name']]};")
            case "output":
                count = f"{self.tables.size(b['domain'])}"
                row = math.prod(b["row"]) * BYTES[b["dtype"]]
                self.ready.append(f"{target} = reserve_items({count}, {row});")
                self.values[b["name"]] = target
            case "table":
                name = self.names.of("t_", f"{self.phase['name']}_{k}")
                elem: str = b["dtype"]
                values = ", ".join(number(x, elem) for x in b["values"])
                self.declared.append(f"static {C_TYPES[elem]} {name}[] = {{{values}}};")
                self.ready.append(f"{target} = {name};")
            case _:
                self.ready.append(f"{target} = {self.tables.table(b)};")
