"""The main file of a program that trains without Python."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .arguments import ArgumentCode
from .description import Standalone
from .names import BYTES, CNames, literal
from .phases import PhaseCode
from .placement import Placement
from .reports import report
from .structure import StructureCode
from .tables import TableCode

HEAD = """\
/* Trains {name} without Python; printed by gnnc. Arrays in data/ may be of another graph. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "generator.h"
#include "npy.h"
#include "optimizers.h"
#include "places.h"
#include "report.h"
#include "steps.h"
{headers}
__attribute__((unused)) static int64_t greater(int64_t a, int64_t b) {{ return a > b ? a : b; }}

__attribute__((unused)) static void want_size(const char *set, int64_t found, int64_t made)
{{
    if (found != made)
        fail("set %s has %" PRId64 " rows, the program is made for %" PRId64, set, found, made);
}}
"""

MAIN = """\
int main(int count, char **words)
{{
{starts}    const Command command = command_of(count, words, {epochs});
{begins}    double *seconds = reserve_items(command.epochs, sizeof *seconds);
    read_arrays(&command);
    check_sizes();
    make_graph();
    prepare();
    for (int64_t i = 0; i < command.epochs; i++) {{
        const double start = now();
        step();
        seconds[i] = now() - start;
        report({start} + i * {step});
    }}
    write_arrays(&command);
    if (command.times) show_time(median(seconds, command.epochs));
{ends}    return 0;
}}
"""


def print_program(what: Standalone, placement: Placement) -> str:
    """The C text of the main file, for a target whose kernels find their buffers there.

    Raises:
        NoProgram: a part of the step has no form without Python.
    """
    return _Printer(what, placement).text()


class _Printer:
    def __init__(self, what: Standalone, placement: Placement) -> None:
        self.what = what
        self.placement = placement
        self.names = CNames()
        self.arguments = ArgumentCode(what, self.names, placement)
        self.globals: list[str] = list(self.arguments.declared)
        self.values: dict[str, str] = dict(self.arguments.values)
        self.made: set[str] = set()
        """Those of `values` that kernels make."""

    def text(self) -> str:
        what = self.what
        graph, phases = self._graph()
        epochs = what.epochs
        number = max(0, len(range(epochs.start, epochs.stop, epochs.step)))
        headers = "".join(f'#include "{h}"\n' for h in self.placement.headers)
        starts, begins, ends = (
            "".join(f"    {line}\n" for line in lines)
            for lines in (self.placement.starts(), self.placement.begins(), self.placement.ends())
        )
        once = self.placement.once()
        write = [*self.placement.section("the end of the training"), *once, *self.arguments.write]
        show = [*once, 'fprintf(stderr, "%.6f seconds a step\\n", seconds);']
        shown = report(what.lines, self.values, self.placement)
        parts = [
            HEAD.format(name=what.name, headers=headers),
            *self.globals,
            "",
            function("read_arrays(const Command *command)", self.arguments.read),
            function("check_sizes(void)", self.arguments.checks),
            function("make_graph(void)", graph),
            function("prepare(void)", self._prepare(phases)),
            function("step(void)", self._step(phases)),
            function("report(int64_t epoch)", ["(void)epoch;", *once, *shown]),
            function("write_arrays(const Command *command)", write),
            function("show_time(double seconds)", show),
            MAIN.format(
                epochs=number,
                start=epochs.start,
                step=epochs.step,
                starts=starts,
                begins=begins,
                ends=ends,
            ),
        ]
        return "\n".join(parts)

    def _graph(self) -> tuple[list[str], dict[str, PhaseCode]]:
        """The lines that make sets, tables and buffers, and the phases."""
        artifact: Mapping[str, Any] = self.what.artifact
        code = StructureCode(self.names)
        lines = [*self.placement.section("the making of the graph"), *self.arguments.sets(code)]
        code.rows |= self.arguments.structure_rows(artifact["structure"]["inputs"])
        code.shown |= self.arguments.shown()
        for name, inputs, outputs, attrs in artifact["structure"]["steps"]:
            lines.append(code.step(name, inputs, outputs, attrs))
        handed = {n: code.rows[key] for n, key in artifact["structure"]["rows"].items()}
        self.values |= {n: f"({x})->data" for n, x in handed.items()}
        tables = TableCode(code.sets, artifact["maps"], lines)
        phases: dict[str, PhaseCode] = {}
        for name in ("prepare", "forward"):
            if name in artifact["phases"]:
                phase = artifact["phases"][name]
                made = PhaseCode(phase, self.names, tables, self.values, self.made, self.placement)
                phases[name] = made
                self.globals += made.declared
        kept = set(handed.values())
        lines += [f"drop_rows({x});" for x in code.made if x not in kept]
        return without_unused(lines, code.sets.values()), phases

    def _prepare(self, phases: Mapping[str, PhaseCode]) -> list[str]:
        return phases["prepare"].call if "prepare" in phases else []

    def _step(self, phases: Mapping[str, PhaseCode]) -> list[str]:
        forward = phases["forward"]
        given = {b["name"] for b in forward.phase["buffers"] if b.get("gives") is not None}
        lines = [*self.placement.section("a step"), *self.arguments.each, *forward.call]
        for argument, result in self.what.updates.items():
            if argument not in given:
                lines.append(self._copied(argument, result, forward))
        for result, message in self.what.held.items():
            holds = self.placement.number(self.values[result], "uint8_t")
            lines.append(f'if (!{holds}) fail("%s", {literal(message)});')
        return [*lines, *self.arguments.after]

    def _copied(self, argument: str, result: str, forward: PhaseCode) -> str:
        row = next(r for r in self.what.rows if r.name == argument)
        output = next(b for b in forward.phase["buffers"] if b.get("name") == result)
        count = self.arguments.row_count(argument) if output["domain"] is not None else "1"
        size = f"{count} * INT64_C({row.width * BYTES[row.elem]})"
        to = self.placement.given(self.values[argument], size)
        return self.placement.copied(to, self.values[result], size)


def without_unused(lines: Sequence[str], variables: Iterable[str]) -> list[str]:
    """The lines, of which those that make a set that no other reads only make it: to check maps."""
    text = "\n".join(lines)
    once = {f"Set *{v} = " for v in variables if len(re.findall(rf"\b{v}\b", text)) == 1}
    out: list[str] = []
    for line in lines:
        head, equals, rest = line.partition(" = ")
        out.append(rest if f"{head}{equals}" in once else line)
    return out


def function(head: str, lines: Iterable[str]) -> str:
    """A function that gives nothing."""
    body = "".join(f"    {line}\n" for line in lines)
    return f"static void {head}\n{{\n{body}}}\n"
