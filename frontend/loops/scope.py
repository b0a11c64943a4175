"""What names mean at a place of a program: rows of loops, fields, local names, arguments."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from .declarations import read_signature
from .errors import ProgramError, suggestion
from .source import Source
from .values import Site, Value
from .widths import shown

SITES = {"Nodes": Site.NODE, "SrcNodes": Site.SRC, "DstNodes": Site.DST, "Edges": Site.EDGE}
"""Where arguments with rows have these."""


@dataclass(frozen=True)
class Row:
    """The variable of a loop. One over the edges of a node knows the node, and at which `end` of
    the edges that is."""

    name: str
    site: Site
    node: Row | None = None
    end: str = ""


@dataclass(frozen=True)
class Place:
    """A row that an expression names, as seen from the innermost loop: along `path` ("" itself)."""

    row: Row
    site: Site
    path: str

    def shown(self) -> str:
        return f"{self.row.name}.{self.path}" if self.row.site is Site.EDGE else self.row.name


class Scope:
    """Fields stay for the whole program, local names and rows as long as their loop."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.graph, self.arguments = read_signature(source)
        self.outer = source.outer()
        self.edge_fields: dict[str, Value] = {}
        self.node_fields: dict[str, tuple[Site, Value]] = {}
        self.running: set[str] = set()  # fields of the node whose sum is not complete
        self.rows: list[Row] = []
        self.past: dict[str, Row] = {}
        self.locals: list[dict[str, Value]] = [{}]
        self.ended: set[str] = set()  # local names of loops that are over
        self.asks: set[str] = set()  # "etype", "ntype"
        self.one_kind = any(a.kind == "Nodes" for a in self.arguments.values())
        self.inputs = {
            name: Value("input", (), SITES[a.kind], a.shape, a.at, {"name": name})
            for name, a in self.arguments.items()
            if a.kind in SITES
        }

    @property
    def row(self) -> Row | None:
        """The variable of the innermost loop."""
        return self.rows[-1] if self.rows else None

    def error(self, at: ast.AST, message: str) -> ProgramError:
        return self.source.error(at, message)

    # ------------------------------------------------------------ loops

    def enter(self, row: Row, at: ast.expr) -> None:
        """Begins a loop over rows."""
        if row.name in (self.graph, *self.arguments) or row.name in [r.name for r in self.rows]:
            raise self.error(at, f"`{row.name}` has a meaning already: name the loop's row apart")
        self.rows.append(row)
        self.locals.append({})
        self.one_kind |= row.site is Site.NODE

    def leave(self) -> None:
        """Ends the innermost loop."""
        row = self.rows.pop()
        self.past[row.name] = row
        self.ended.update(self.locals.pop())

    # ------------------------------------------------------------ rows

    def place(self, e: ast.expr) -> Place | None:
        """The row that an expression names (`e`, `e.src`, `n`); None where it names none."""
        if isinstance(e, ast.Attribute):
            row = self._row(e.value)
            if row is None or e.attr not in ("src", "dst"):
                return None
            if row.site is not Site.EDGE:
                hint = f"loop over the edges, `for e in {row.name}.incoming_edges()`"
                raise self.error(e, f"`{row.name}` is a node, only edges have .{e.attr}: {hint}")
            return Place(row, Site.SRC if e.attr == "src" else Site.DST, e.attr)
        row = self._row(e)
        if row is None:
            return None
        if row is self.row:
            return Place(row, row.site, "")
        inner = self.row
        assert inner is not None and inner.node is row
        return Place(row, row.site, inner.end)

    def _row(self, e: ast.expr) -> Row | None:
        return next((r for r in self.rows if isinstance(e, ast.Name) and e.id == r.name), None)

    # ------------------------------------------------------------ local names

    def local(self, name: str, at: ast.AST) -> Value | None:
        """What a local name means, seen from the innermost loop."""
        value = next((names[name] for names in reversed(self.locals) if name in names), None)
        row = self.row
        if value is None or row is None or row.node is None or not value.site.is_node:
            return value
        return Value("read", (value,), Site.EDGE, value.shape, at, {"path": row.end}, value.boolean)

    def set_local(self, name: str, value: Value, at: ast.AST) -> None:
        """Gives a local name its meaning.

        Raises:
            ProgramError: it has one already that is not of this loop.
        """
        if name in (self.graph, *self.arguments) or name in [r.name for r in self.rows]:
            raise self.error(
                at, f"`{name}` is an argument or a row and cannot be set: choose another name"
            )
        if any(name in names for names in self.locals[:-1]):
            raise self.error(
                at,
                f'`{name}` was set outside of this loop: sums are fields, row["{name}"] += .., '
                "another value has another name",
            )
        self.locals[-1][name] = value

    # ------------------------------------------------------------ fields

    def read(self, place: Place, name: str, at: ast.AST) -> Value:
        """A field or an input of a row, seen from the innermost loop.

        Raises:
            ProgramError: there is none of that name, or it is one of other rows.
        """
        if place.site is Site.EDGE:
            return self._edge_value(place, name, at)
        value = self._node_value(place, name, at)
        if not place.path or value.site is Site.ONE:
            return value
        return Value("read", (value,), Site.EDGE, value.shape, at, {"path": place.path})

    def _edge_value(self, place: Place, name: str, at: ast.AST) -> Value:
        if found := self.edge_fields.get(name) or self._input(name, Site.EDGE):
            return found
        e = place.row.name
        if name in self.node_fields or self._node_input(name):
            raise self.error(
                at, f'`{name}` is a value of nodes: {e}.src["{name}"] or {e}.dst["{name}"]'
            )
        known = {*self.edge_fields, *(n for n, v in self.inputs.items() if v.site is Site.EDGE)}
        raise self.error(at, self._unknown("an edge", name, known))

    def _node_value(self, place: Place, name: str, at: ast.AST) -> Value:
        if name in self.running:
            raise self.error(
                at, f"the sum `{name}` is not complete inside its loop: read it after the loop"
            )
        if name in self.node_fields:
            site, value = self.node_fields[name]
        elif (found := self._node_input(name)) is not None:
            site, value = found.site, found
        elif name in self.edge_fields or self._input(name, Site.EDGE):
            raise self.error(at, self._at_edges(place, name))
        else:
            known = {n for n, v in self.inputs.items() if v.site.is_node} | set(self.node_fields)
            raise self.error(at, self._unknown("a node", name, known))
        if not site.includes(place.site):
            raise self.error(
                at,
                f"`{name}` is a value of {site.value}, {place.shown()} is one of "
                f"{place.site.value}: set it in a loop over nodes()",
            )
        return value

    @staticmethod
    def _at_edges(place: Place, name: str) -> str:
        n = place.row.name
        if place.row.site is Site.EDGE:
            return f'`{name}` is a value of edges, not of a node: {n}["{name}"]'
        return (
            f'`{name}` is a value of edges, a node has many: sum(e["{name}"] for e in '
            f"{n}.incoming_edges())"
        )

    @staticmethod
    def _unknown(what: str, name: str, known: set[str]) -> str:
        return f"{what} has no `{name}` here: {suggestion(name, known, 'it has')}"

    def _input(self, name: str, site: Site) -> Value | None:
        found = self.inputs.get(name)
        return found if found is not None and found.site is site else None

    def _node_input(self, name: str) -> Value | None:
        found = self.inputs.get(name)
        return found if found is not None and found.site.is_node else None

    def write(self, place: Place, name: str, value: Value, at: ast.AST) -> None:
        """Sets a field of the rows of a loop.

        Raises:
            ProgramError: it is an input, or has other rows or another width already.
        """
        if name in self.inputs:
            raise self.error(
                at, f"`{name}` is an argument and cannot be set: choose another name for the field"
            )
        if value.boolean:
            raise self.error(at, "a field holds numbers: where(condition, 1.0, 0.0)")
        old = self.node_fields.get(name, (Site.EDGE, self.edge_fields.get(name)))
        if old[1] is not None:
            self._check_same(place, name, value, old[0], old[1], at)
        if place.site is Site.EDGE:
            self.edge_fields[name] = value
        else:
            self.node_fields[name] = (place.site, value)

    def _check_same(
        self, place: Place, name: str, value: Value, site: Site, before: Value, at: ast.AST
    ) -> None:
        if site is not place.site:
            raise self.error(
                at,
                f"`{name}` is a field of {site.value} already: choose another name for that of "
                f"{place.site.value}",
            )
        if before.shape != value.shape and before.shape:
            raise self.error(
                at,
                f"`{name}` was {shown(before.shape)} and would be {shown(value.shape)}: choose "
                "another name for the second",
            )

    def results_of(self, e: ast.expr) -> Row | None:
        """The row of a loop that is over, whose fields a program returns."""
        return self.past.get(e.id) if isinstance(e, ast.Name) else None


def text(node: ast.AST) -> str | None:
    """The name in `row["name"]`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None
