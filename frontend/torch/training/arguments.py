"""The arguments of a captured step, as plain data of codegen/standalone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sympy
import torch
from torch import Tensor, fx
from torch.utils._sympy.printers import PythonPrinter

from ....codegen.standalone.description import (
    Array,
    Condition,
    Fixed,
    Key,
    MapArgument,
    NonZeros,
    NoProgram,
    Numbers,
    OfArray,
    RowsArgument,
    SetArgument,
    SizeText,
)
from ....passes.inter.optimizers import COUNT, RULES
from ..graph_step import StepCall
from ..importer.binding import DropoutKey, FromSize, FromTensor, Imported, RowsBinding, Size
from ..importer.values.sizes import example, expression
from .array_names import ArrayNames
from .optimizer_options import kind_of, options_of

ELEMENTS = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.bool: "i1",
}


class Arguments:
    """What a step's program is given. `arrays` are in files, `places` has the number of each by its
    placeholder."""

    def __init__(
        self, call: StepCall, imported: Imported, names: ArrayNames, begun: Sequence[bool]
    ) -> None:
        self.call, self.imported, self.names, self.begun = call, imported, names, begun
        self.placeholders = call.graph.graph.find_nodes(op="placeholder")
        self.widths = {name: n for name, n in imported.widths}
        self.arrays: list[Array] = []
        self.places: dict[int, int] = {}
        self.matrices: dict[int, Tensor] = {}
        self.symbols: dict[str, tuple[int, int]] = {}
        self.odd_sizes: list[tuple[sympy.Expr, tuple[int, int]]] = []
        self.numbered: dict[int, str] = {}
        self.made = dict(self._made())
        for i, x in enumerate(call.given):
            if isinstance(x, Tensor) and not isinstance(self.made.get(i), Numbers | Fixed):
                self._array(i, x)

    # ------------------------------------------------------------ arrays

    def _made(self) -> Iterator[tuple[int, tuple[str, str] | Numbers | Fixed]]:
        """By placeholder, what the optimizer adds behind the arguments of the graph: the names of
        what it keeps, and its numbers."""
        place = len(self.placeholders)
        for k, group, begun in zip(
            self.call.made.parameters, self.call.groups, self.begun, strict=True
        ):
            rule = RULES[k.rule]
            count = None
            for name in rule.state:
                if name == COUNT:
                    count = self._row_at(place).name
                yield place, self.names.kept(self.call.given[k.placeholder], name)
                place += 1
            optimizer = self.names.begun.step.optimizer
            self.numbered[place] = self.names.kept(self.call.given[k.placeholder], "numbers")[1]
            yield place, Numbers(kind_of(k.rule), options_of(optimizer, group), count, begun)
            place += 1
        for bounds in self.call.given[place:]:
            self.numbered[place] = "bounds"
            yield place, Fixed(tuple(bounds.tolist()))
            place += 1

    def _row_at(self, placeholder: int) -> RowsBinding:
        return next(
            r
            for r in self.imported.rows
            if isinstance(r.source, FromTensor) and r.source.placeholder == placeholder
        )

    def _array(self, place: int, x: Tensor) -> None:
        if x.dtype not in ELEMENTS:
            raise NoProgram(f"{self.imported.placeholders[place]} holds {x.dtype}")
        made = self.made.get(place)
        node = self.placeholders[place] if place < len(self.placeholders) else None
        sizes = x.shape if node is None else example(node).shape
        entry = self.names.entry(x)
        nonzeros = None
        if isinstance(made, tuple):
            folder, name = made
        elif entry is not None and node is not None:
            nonzeros = NonZeros(self._matrix(entry.of, node), entry.part)
            folder, name = self.arrays[nonzeros.matrix].folder, entry.name
        else:
            folder, name = self.names.of(x, self._name(place))
        self.places[place] = len(self.arrays)
        dims = tuple(self._dims(sizes, x))
        self.arrays.append(Array(name, folder, ELEMENTS[x.dtype], dims, nonzeros))

    def _matrix(self, x: Tensor, part: fx.Node) -> int:
        """The number of a dense array, of which a placeholder has a part."""
        known = next((k for k, y in self.matrices.items() if y is x), None)
        if known is not None:
            return known
        folder, name = self.names.of(x, "x")
        dims = tuple(self._dims(part.meta["matrix"].shape, x))
        self.matrices[len(self.arrays)] = x
        self.arrays.append(Array(name, folder, ELEMENTS[x.dtype], dims))
        return len(self.arrays) - 1

    def _name(self, place: int) -> str:
        return self.imported.placeholders[place]

    def _dims(self, sizes: Sequence[Any], x: Tensor) -> Iterator[int | str | None]:
        for d, (size, now) in enumerate(zip(sizes, x.shape, strict=True)):
            expr = expression(size).subs(self.widths)
            at = (len(self.arrays), d)
            if expr.is_Integer:
                yield int(now)
            elif expr.is_Symbol:
                self.symbols.setdefault(str(expr), at)
                yield str(expr)
            else:
                self.odd_sizes.append((expr, at))
                yield None

    # ------------------------------------------------------------ sizes

    def size(self, size: Size) -> SizeText:
        """A size of the bindings."""
        if size.kind is float:
            raise NoProgram(f"the number {size.text} of sizes is no whole number")
        return SizeText(size.text, {n: self._source(n, p, d) for n, p, d in size.names})

    def _source(self, name: str, placeholder: int, dim: int | None) -> tuple[int, int] | int:
        if dim is not None:
            return (self.places[placeholder], dim)
        if name in self.symbols:
            return self.symbols[name]
        return int(self.call.given[placeholder])  # a number of the program

    def conditions(self) -> list[Condition]:
        """What Dynamo and the importer found out of sizes, and the program takes for given."""
        found: list[Condition] = []
        for c in self.imported.checks:
            left, right = self.size(c.left), self.size(c.right)
            both = SizeText(f"({left.text}) == ({right.text})", {**left.names, **right.names})
            found.append(Condition(both, f"{c.message}: the rows have to be as many"))
        for expr, at in self.odd_sizes:
            text = self._text(expr)
            whole = SizeText(f"({text.text}) == here", {**text.names, "here": at})
            found.append(Condition(whole, f"{self._shown(at)} has to be {self._readable(expr)}"))
        for expr in self._guards():
            found.append(
                Condition(self._text(expr), f"the program is made for {self._readable(expr)}")
            )
        return found

    def _guards(self) -> Iterator[sympy.Expr]:
        """What has to hold of the symbols, without what holds anyhow."""
        env = next(
            (
                x.fake_mode.shape_env
                for x in map(example, self.placeholders)
                if isinstance(x, Tensor) and hasattr(x, "fake_mode")
            ),
            None,
        )
        if env is None:
            return
        for guard in env.guards:
            expr = env.replace(guard.expr).subs(self.widths)
            if expr is not sympy.true:
                yield expr
        for name in self.symbols:
            symbol, bounds = next((s, r) for s, r in env.var_to_range.items() if str(s) == name)
            if bounds.lower > 0:
                yield sympy.Ge(symbol, bounds.lower, evaluate=False)

    def _text(self, expr: sympy.Expr) -> SizeText:
        names = {str(s): self._symbol(str(s)) for s in expr.free_symbols}
        return SizeText(PythonPrinter().doprint(expr), names)

    def _symbol(self, name: str) -> tuple[int, int]:
        if name not in self.symbols:
            raise NoProgram(f"a size of the step, {name}, is that of no array")
        return self.symbols[name]

    def _shown(self, at: tuple[int, int]) -> str:
        return f"{self.arrays[at[0]].name}.shape[{at[1]}]"

    def _readable(self, expr: sympy.Expr) -> str:
        shown = {s: sympy.Symbol(self._shown(self._symbol(str(s)))) for s in expr.free_symbols}
        return str(expr.xreplace(shown))

    # ------------------------------------------------------------ sets and rows

    def sets(self) -> list[SetArgument]:
        found: list[SetArgument] = []
        for s in self.imported.sets:
            maps: list[MapArgument] = []
            for m in s.maps:
                shape = list(self.call.given[m.placeholder].shape)
                del shape[m.row_axis]
                column = 0
                for i, n in zip(m.index, shape, strict=True):
                    column = column * n + i
                array = self.places[m.placeholder]
                maps.append(MapArgument(m.label, m.codomain, array, m.row_axis, column))
            found.append(SetArgument(s.name, self.size(s.size), tuple(maps)))
        return found

    def rows(self) -> list[RowsArgument]:
        found: list[RowsArgument] = []
        labels: set[str] = set()
        for r in self.imported.rows:
            label = self._label(r)
            label = f"{label}.{r.name}" if label in labels else label
            labels.add(label)
            source = self._row_source(r)
            found.append(RowsArgument(r.name, label, r.elem, math.prod(r.shape), source))
        return found

    def _label(self, r: RowsBinding) -> str:
        """What an argument is called: as its array, or as the parameter whose numbers it is."""
        if not isinstance(r.source, FromTensor):
            return r.name
        place = r.source.placeholder
        return self.numbered.get(place) or self.arrays[self.places[place]].name

    def _row_source(self, r: RowsBinding) -> OfArray | SizeText | Key | Numbers | Fixed:
        match r.source:
            case FromTensor(placeholder, axis):
                made = self.made.get(placeholder)
                if isinstance(made, Numbers | Fixed):
                    return made
                return OfArray(self.places[placeholder], axis)
            case FromSize(size):
                return self.size(size)
            case DropoutKey():
                return Key()

    def draws(self) -> bool:
        """Whether a step needs random numbers."""
        return any(isinstance(r.source, DropoutKey) for r in self.imported.rows)

    def updates(self) -> Mapping[str, str]:
        """Arguments with the results that become their next values.

        Raises:
            NoProgram: an array that is changed is read as rows in two ways.
        """
        found: dict[str, str] = {}
        for u in self.imported.updates:
            readers = {
                r.name: r.source.row_axis
                for r in self.imported.rows
                if isinstance(r.source, FromTensor) and r.source.placeholder == u.placeholder
            }
            axis = readers.get(u.argument)
            plain = u.result.merge == 1 and u.result.order is None and u.result.row_axis == axis
            if len(readers) != 1 or not plain:
                name = self._name(u.placeholder)
                raise NoProgram(f"the step changes {name}, which it reads as rows in two ways")
            found[u.argument] = u.result.name
        return found
