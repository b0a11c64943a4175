"""The arguments of a step as C: arrays from files, sets and rows of them, and what is new in each
step.
"""

from __future__ import annotations

from collections.abc import Sequence

from .description import (
    PART,
    Array,
    Fixed,
    Key,
    MapArgument,
    NoProgram,
    Numbers,
    OfArray,
    RowsArgument,
    SizeText,
    Standalone,
)
from .names import C_TYPES, TYPES, CNames, literal, number, numbers
from .placement import Placement
from .sizes import c_size
from .structure import StructureCode

GENERATOR = "generator"
PARTS = {"row": "ROW", "col": "COLUMN", "value": "VALUE"}


class ArgumentCode:
    """Lines for all arguments. `declared` are global variables, `read` and `write` the files,
    `checks` what has to hold of sizes, `each` what is done in front of a step, `after` behind it.
    `values` has the C expression of the buffer of each argument, in the memory of the host."""

    def __init__(self, what: Standalone, names: CNames, placement: Placement) -> None:
        self.what, self.names, self.placement = what, names, placement
        self.declared: list[str] = []
        self.read: list[str] = []
        self.write: list[str] = []
        self.checks: list[str] = []
        self.each: list[str] = []
        self.after: list[str] = []
        self.values: dict[str, str] = {}
        self.variables = [names.of("a_", a.name) for a in what.arrays]
        self.first: dict[str, tuple[int, int]] = {}
        for k, array in enumerate(what.arrays):
            self._array(k, array)
        self._forget_matrices()
        if what.generator:
            self._generator()
        for r in what.rows:
            self._rows(r)
        for condition in what.conditions:
            holds = c_size(condition.holds, self.dimension)
            self.checks.append(f'if (!({holds})) fail("%s", {literal(condition.message)});')
        for k, array in enumerate(what.arrays):
            if array.folder == "parameters":
                self._written(k)

    def dimension(self, array: int, d: int) -> str:
        return f"{self.variables[array]}.dims[{d}]"

    # ------------------------------------------------------------ arrays

    def _array(self, k: int, a: Array) -> None:
        variable = self.variables[k]
        self.declared.append(f"static Array {variable};")
        if a.made is not None:
            matrix = self.variables[a.made.matrix]
            made = f"nonzeros(&{matrix}, {PARTS[a.made.part]}, {literal(a.name)})"
            self.read.append(f"{variable} = {made};")
        else:
            fixed = numbers([n if isinstance(n, int) else -1 for n in a.dims])
            folder = f"command->{a.folder}"
            if a.folder == PART:
                folder = self.placement.part("command->data")
            given = f"{folder}, {literal(a.name)}, {TYPES[a.elem]}, {len(a.dims)}"
            self.read.append(f"{variable} = read_array({given}, {fixed});")
        for d, size in enumerate(a.dims):
            if isinstance(size, str):
                i, e = self.first.setdefault(size, (k, d))
                if (i, e) != (k, d):
                    self.checks.append(f"want_same(&{variable}, {d}, &{self.variables[i]}, {e});")

    def _forget_matrices(self) -> None:
        """Matrices of which only the entries are read give their memory back."""
        sources = [r.source for r in self.what.rows]
        read = {s.array for s in sources if isinstance(s, OfArray)}
        matrices = {a.made.matrix for a in self.what.arrays if a.made is not None}
        self.read += [f"forget_numbers(&{self.variables[k]});" for k in sorted(matrices - read)]

    def _generator(self) -> None:
        given = f"command->parameters, {literal(GENERATOR)}, I64, 1, (int64_t[]){{STATE}}"
        self.declared.append("static Array generator;")
        self.read += [f"generator = read_array({given});", "generator_from(&generator);"]
        self.write += ["generator_to(&generator);", "write_array(command->out, &generator);"]

    def _written(self, k: int) -> None:
        variable = self.variables[k]
        for r in self.what.rows:
            match r.source:
                case OfArray(array, axis) if array == k and r.name in self.what.updates:
                    place = -1 if axis is None else axis
                    self.write += self.placement.fetched(f"{self._variable(r)}.data")
                    self.write.append(f"rows_back(&{self._variable(r)}, &{variable}, {place});")
                case _:
                    pass
        self.write.append(f"write_array(command->out, &{variable});")

    # ------------------------------------------------------------ rows

    def _variable(self, r: RowsArgument) -> str:
        return self.names.of("x_", r.label)

    def row_count(self, name: str) -> str:
        """How many rows an argument has."""
        return f"{self._variable(next(r for r in self.what.rows if r.name == name))}.rows"

    def _rows(self, r: RowsArgument) -> None:
        variable, kind = self._variable(r), C_TYPES[r.elem]
        match r.source:
            case OfArray(array, axis):
                self.declared.append(f"static Rows {variable};")
                place = -1 if axis is None else axis
                self.read.append(f"{variable} = rows_of(&{self.variables[array]}, {place});")
                self.values[r.name] = f"{variable}.data"
                return
            case SizeText() as size:
                self.declared.append(f"static {kind} {variable}[1];")
                self.checks.append(f"{variable}[0] = ({kind}){c_size(size, self.dimension)};")
            case Key():
                self.declared.append(f"static {kind} {variable}[1];")
                self.each.append(f"{variable}[0] = draw_key();")
                self.each += self.placement.sent(variable)
            case Numbers() as given:
                self._numbers(r, given)
            case Fixed(values):
                texts = ", ".join(number(x, r.elem) for x in values)
                self.declared.append(f"static {kind} {variable}[] = {{{texts}}};")
        self.values[r.name] = variable

    def _numbers(self, r: RowsArgument, what: Numbers) -> None:
        variable = self._variable(r)
        options = self.names.of("o_", r.label)
        given = ", ".join(f".{k} = {_option(k, x)}" for k, x in what.options.items())
        self.declared.append(f"static const Options {options} = {{{given}}};")
        self.declared.append(f"static {C_TYPES[r.elem]} {variable}[{r.width}];")
        steps, first = "0", "0"
        if what.count is not None:
            counted = next(x for x in self.what.rows if x.name == what.count)
            count = f"{self._variable(counted)}.data"
            self.each += self.placement.fetched(count)
            steps = f"*({C_TYPES[counted.elem]} *){count}"
        elif not what.begun:
            first = self.names.of("begun_", r.label)
            self.declared.append(f"static int {first} = 1;")
            self.after.append(f"{first} = 0;")
        call = (
            f"numbers_of({what.kind}, &{options}, {steps}, {first}, {TYPES[r.elem]}, {variable});"
        )
        self.each.append(call)
        self.each += self.placement.sent(variable)

    # ------------------------------------------------------------ the structure

    def sets(self, code: StructureCode) -> list[str]:
        """The lines that make the sets of the arguments, which `code` then knows."""
        lines: list[str] = []
        for s in self.what.sets:
            variable = self.names.of("s_", s.name)
            code.sets[s.name] = variable
            size = c_size(s.size, self.dimension)
            lines.append(f"Set *{variable} = new_set({literal(s.name)}, {size});")
        for s in self.what.sets:
            for m in s.maps:
                lines += self._map(code, s.name, m)
        return lines

    def _map(self, code: StructureCode, owner: str, m: MapArgument) -> list[str]:
        array = self.what.arrays[m.array]
        column = self.names.of("c_", f"{owner}_{m.label}")
        what = array.name if len(array.dims) == 1 else f"{array.name}[{m.column}]"
        map_text = f"checked_map(&{column}, {code.sets[m.codomain]}->size, {literal(what)}, 0)"
        return [
            f"const Rows {column} = column_of(&{self.variables[m.array]}, {m.axis}, {m.column});",
            f"give({code.sets[owner]}, {literal(m.label)}, {map_text});",
        ]

    def shown(self) -> dict[str, str]:
        """What the arguments of rows are called where their arrays lie."""
        arrays = self.what.arrays
        sources = ((r.name, r.source) for r in self.what.rows)
        return {name: arrays[s.array].name for name, s in sources if isinstance(s, OfArray)}

    def structure_rows(self, inputs: Sequence[str]) -> dict[str, str]:
        """The C expressions of the rows that the structure is made from."""
        found: dict[str, str] = {}
        for r in self.what.rows:
            if r.name not in inputs:
                continue
            if isinstance(r.source, OfArray):
                found[r.name] = f"&{self._variable(r)}"
            elif isinstance(r.source, SizeText):
                given = f".type = {TYPES[r.elem]}, .rows = 1, .data = {self._variable(r)}"
                found[r.name] = f"&(Rows){{{given}}}"
            else:
                raise NoProgram(f"the graph depends on {r.name}, which is another in each step")
        return found


def _option(name: str, value: float) -> str:
    return str(int(value)) if name == "decoupled" else number(value)
