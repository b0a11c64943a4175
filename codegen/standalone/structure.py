"""The structure of a program as C: the steps of its plan (codegen/common/structure_plan.py) as
calls of the library (runtime/standalone/steps.h).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from .description import NoProgram
from .names import C_TYPES, TYPES, CNames, keys, literal, number, numbers

Attrs = Mapping[str, Any]

FUNCTIONS = {
    **{n: n.upper() for n in ("add", "sub", "div", "floordiv", "mod", "neg", "abs", "sign")},
    **{n: n.upper() for n in ("floor", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge")},
    **{n: n.upper() for n in ("logical_and", "logical_or", "logical_not", "where")},
    "mul": "MULTIPLY",
}
"""The pointwise steps, by their names in the library."""


class StructureCode:
    """Prints steps. `sets` and `rows` have the C expressions (addresses) of values by name."""

    def __init__(self, names: CNames) -> None:
        self.names = names
        self.sets: dict[str, str] = {}
        self.rows: dict[str, str] = {}
        self.shown: dict[str, str] = {}
        """What the user calls an argument of rows, for messages."""
        self.made: list[str] = []
        """Rows that steps have made, to be given back."""

    def step(self, name: str, inputs: Sequence[str], outputs: Sequence[str], attrs: Attrs) -> str:
        """The line of a step.

        Raises:
            NoProgram: the library has no such step.
        """
        (out,) = outputs
        if name in FUNCTIONS:
            return self._rows(out, self._pointwise(name, inputs))
        if name in _SETS:
            variable = self.names.of("s_", out)
            text = _SETS[name](self, literal(out), inputs, attrs)
            self.sets[out] = variable
            return f"Set *{variable} = {text};"
        if name in _ROWS:
            return self._rows(out, _ROWS[name](self, inputs, attrs))
        raise NoProgram(f"a program without Python has no structure step {name!r} (for {out})")

    def _rows(self, out: str, text: str) -> str:
        variable = self.names.of("r_", out)
        self.rows[out] = variable
        self.made.append(variable)
        return f"Rows *{variable} = {text};"

    def _pointwise(self, name: str, inputs: Sequence[str]) -> str:
        return f"pointwise({FUNCTIONS[name]}, {len(inputs)}, {self.list_of_rows(inputs)})"

    def list_of_rows(self, inputs: Sequence[str]) -> str:
        return f"(const Rows *[]){{{', '.join(self.rows[x] for x in inputs)}}}"

    def follow(self, sets: Sequence[str], path: Sequence[str]) -> str:
        """The map of a path from the first of the sets that own its maps."""
        maps = [f"map_of({self.sets[s]}, {literal(m)})" for s, m in zip(sets, path, strict=True)]
        text = maps[0]
        for other in maps[1:]:
            text = f"then({text}, {other})"
        return text

    # ------------------------------------------------------------ sets

    def filter(self, out: str, inputs: Sequence[str], attrs: Attrs) -> str:
        g = self.sets[inputs[0]]
        if attrs.get("no_loops", len(inputs) == 1):
            return f"filter_loops({out}, {g})"
        return f"filter_rows({out}, {g}, {self.rows[inputs[1]]})"

    def interval(self, out: str, inputs: Sequence[str], attrs: Attrs) -> str:
        base, lo, hi = inputs
        return f"interval({out}, {self.sets[base]}, {self.rows[lo]}, {self.rows[hi]})"

    def loops(self, out: str, inputs: Sequence[str], attrs: Attrs) -> str:
        return f"loops({out}, {self.sets[inputs[0]]}, {int(bool(attrs.get('remaining')))})"

    def union(self, out: str, inputs: Sequence[str], attrs: Attrs) -> str:
        places: dict[str, list[int]] = attrs.get("places", {})
        count = len(inputs) - len(places)
        unions = dict(zip(places, inputs[count:], strict=True))
        parts = ", ".join(self.sets[s] for s in inputs[:count])
        entries: list[str] = []
        for name in attrs["maps"]:
            union = self.sets[unions[name]] if name in unions else "NULL"
            at = (
                f"(const int[]){{{', '.join(map(str, places[name]))}}}"
                if name in places
                else "NULL"
            )
            entries.append(f"{{{literal(name)}, {union}, {at}}}")
        given = f"(United[]){{{', '.join(entries)}}}" if entries else "NULL"
        return f"unite({out}, {count}, (Set *[]){{{parts}}}, {len(entries)}, {given})"

    def attach(self, out: str, inputs: Sequence[str], attrs: Attrs) -> str:
        maps: list[str] = attrs["maps"]
        values, codomains = inputs[1 : 1 + len(maps)], inputs[1 + len(maps) :]
        entries: list[str] = []
        called: list[str] = attrs.get("what", maps)
        for name, what, x, s in zip(maps, called, values, codomains, strict=True):
            flags = (str(int(name in attrs.get(f, ()))) for f in ("partial", "mono", "onto"))
            parts = (
                literal(name),
                literal(self.shown.get(what, what)),
                self.rows[x],
                self.sets[s],
                *flags,
            )
            entries.append(f"{{{', '.join(parts)}}}")
        given = f"(Attached[]){{{', '.join(entries)}}}" if entries else "NULL"
        return f"attach({out}, {self.sets[inputs[0]]}, {len(maps)}, {given})"

    def range(self, out: str, inputs: Sequence[str], attrs: Attrs) -> str:
        return f"new_set({out}, {attrs['size']})"

    def sized(self, out: str, inputs: Sequence[str], attrs: Attrs) -> str:
        return f"sized({out}, {self.rows[inputs[0]]})"

    def derive(self, out: str, inputs: Sequence[str], attrs: Attrs) -> str:
        path: list[str] = attrs["path"]
        name = literal(attrs.get("name", ".".join(path)))
        rest = self.follow(inputs[1:], path[1:])
        return f"derive({out}, {self.sets[inputs[0]]}, {name}, {literal(path[0])}, {rest})"

    # ------------------------------------------------------------ rows

    def read(self, inputs: Sequence[str], attrs: Attrs) -> str:
        g, x = inputs
        to = attrs.get("to")
        fine = "NULL" if to is None else keys(to)
        return f"read_rows({self.sets[g]}, {self.rows[x]}, {keys(attrs['from'])}, {fine})"

    def const(self, inputs: Sequence[str], attrs: Attrs) -> str:
        elem, value, shape = attrs["elem"], attrs["value"], attrs.get("shape", [])
        exact = "0" if elem in ("f32", "f64") else number(value, elem)
        inexact = number(value) if elem in ("f32", "f64") else "0"
        return f"constant({TYPES[elem]}, {inexact}, {exact}, {len(shape)}, {numbers(shape)})"

    def table(self, inputs: Sequence[str], attrs: Attrs) -> str:
        elem = attrs["elem"]
        flat, dims = _flat(attrs["values"])
        values = ", ".join(number(x, elem) for x in flat)
        data = f"({C_TYPES[elem]}[]){{{values}}}" if flat else "NULL"
        return f"table({TYPES[elem]}, {data}, {len(dims)}, {numbers(dims)})"

    def index(self, inputs: Sequence[str], attrs: Attrs) -> str:
        return f"indices({self.follow(inputs, attrs['path'])})"

    def iota(self, inputs: Sequence[str], attrs: Attrs) -> str:
        return f"iota({self.sets[inputs[0]]})"

    def size(self, inputs: Sequence[str], attrs: Attrs) -> str:
        return f"size_of({self.sets[inputs[0]]})"

    def at(self, inputs: Sequence[str], attrs: Attrs) -> str:
        n = len(attrs["path"])
        rest = "NULL" if len(inputs) == n + 1 else self.rows[inputs[n + 1]]
        return f"at({self.follow(inputs[:n], attrs['path'])}, {self.rows[inputs[n]]}, {rest})"

    def stack(self, inputs: Sequence[str], attrs: Attrs) -> str:
        return f"stack({self.sets[inputs[0]]}, {self.list_of_rows(inputs[1:])})"

    def part(self, inputs: Sequence[str], attrs: Attrs) -> str:
        u, x = inputs
        return f"part({self.sets[u]}, {self.rows[x]}, {attrs['index']})"

    def as_rows(self, inputs: Sequence[str], attrs: Attrs) -> str:
        owner, x = inputs
        return f"as_rows({self.sets[owner]}, {self.rows[x]})"

    def as_unit(self, inputs: Sequence[str], attrs: Attrs) -> str:
        owner, x = inputs
        return f"as_unit({self.sets[owner]}, {self.rows[x]}, {attrs['rows']})"

    def reduce(self, inputs: Sequence[str], attrs: Attrs) -> str:
        g, x, *rest = inputs
        other = self.rows[rest[0]] if rest else "NULL"
        kind = attrs["kind"].upper()
        over = attrs.get("over")
        fine = "NULL" if over is None else keys(over)
        given = f"{self.sets[g]}, {self.rows[x]}, {other}, {kind}"
        return f"reduce({given}, {keys(attrs['along'])}, {fine})"

    def count(self, inputs: Sequence[str], attrs: Attrs) -> str:
        over = attrs.get("over")
        fine = "NULL" if over is None else keys(over)
        elem = TYPES[attrs.get("elem", "i64")]
        return f"count({self.sets[inputs[0]]}, {keys(attrs['along'])}, {fine}, {elem})"

    def cast(self, inputs: Sequence[str], attrs: Attrs) -> str:
        return f"cast({self.rows[inputs[0]]}, {TYPES[attrs['elem']]})"

    def shaped(self, name: str) -> Callable[[Sequence[str], Attrs], str]:
        def printed(inputs: Sequence[str], attrs: Attrs) -> str:
            shape = attrs["shape"]
            return f"{name}({self.rows[inputs[0]]}, {len(shape)}, {numbers(shape)})"

        return printed

    def reshape(self, inputs: Sequence[str], attrs: Attrs) -> str:
        return self.shaped("reshape")(inputs, attrs)

    def broadcast(self, inputs: Sequence[str], attrs: Attrs) -> str:
        return self.shaped("broadcast")(inputs, attrs)

    def transpose(self, inputs: Sequence[str], attrs: Attrs) -> str:
        return f"transpose({self.rows[inputs[0]]}, {numbers(attrs['order'], 'int')})"

    def slice(self, inputs: Sequence[str], attrs: Attrs) -> str:
        cut = ", ".join(str(attrs[k]) for k in ("dim", "lo", "hi"))
        return f"slice({self.rows[inputs[0]]}, {cut}, {attrs.get('step', 1)})"

    def concat(self, inputs: Sequence[str], attrs: Attrs) -> str:
        return f"concat({len(inputs)}, {self.list_of_rows(inputs)}, {attrs['dim']})"

    def row_reduce(self, inputs: Sequence[str], attrs: Attrs) -> str:
        dims: list[int] = attrs["dims"]
        reduced = "".join("1" if d in dims else "0" for d in range(32))
        return f"row_reduce({self.rows[inputs[0]]}, {attrs['kind'].upper()}, {literal(reduced)})"


_SETS: dict[str, Callable[[StructureCode, str, Sequence[str], Attrs], str]] = {
    "filter": StructureCode.filter,
    "interval": StructureCode.interval,
    "loops": StructureCode.loops,
    "union": StructureCode.union,
    "attach": StructureCode.attach,
    "range": StructureCode.range,
    "sized": StructureCode.sized,
    "derive": StructureCode.derive,
}

_ROWS: dict[str, Callable[[StructureCode, Sequence[str], Attrs], str]] = {
    "read": StructureCode.read,
    "const": StructureCode.const,
    "table": StructureCode.table,
    "index": StructureCode.index,
    "iota": StructureCode.iota,
    "size": StructureCode.size,
    "at": StructureCode.at,
    "stack": StructureCode.stack,
    "part": StructureCode.part,
    "as_rows": StructureCode.as_rows,
    "as_unit": StructureCode.as_unit,
    "reduce": StructureCode.reduce,
    "count": StructureCode.count,
    "cast": StructureCode.cast,
    "reshape": StructureCode.reshape,
    "transpose": StructureCode.transpose,
    "broadcast": StructureCode.broadcast,
    "slice": StructureCode.slice,
    "concat": StructureCode.concat,
    "row_reduce": StructureCode.row_reduce,
}


def _flat(values: Any) -> tuple[list[Any], list[int]]:
    """Nested lists as one, with their lengths."""
    if not isinstance(values, list):
        return [values], []
    parts = [_flat(x) for x in cast("list[Any]", values)]
    dims = [len(parts), *(parts[0][1] if parts else [])]
    return [x for part, _ in parts for x in part], dims
