"""Statements of a program: loops, fields, sums and the return."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from .errors import suggestion
from .expressions import Expressions
from .scope import Place, Row, Scope, text
from .source import Source
from .values import Program, Site, Value
from .widths import joined, shown

LOOPS = {
    "edges": Site.EDGE,
    "nodes": Site.NODE,
    "src_nodes": Site.SRC,
    "dst_nodes": Site.DST,
}


def read_program(function: object) -> Program:
    """A function as a program.

    Raises:
        ProgramError: it is none; the error has the place.
        TypeError: its source is not to be had.
    """
    return _Reader(Source(function)).program()


@dataclass
class _Sum:
    """A field of a node that is summed up in a loop over its edges."""

    start: Value
    total: Value | None = None


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.scope = Scope(source)
        self.expressions = Expressions(self.scope)
        self.sums: dict[str, _Sum] = {}
        self.effects = 0  # fields that were set so far

    def program(self) -> Program:
        body = self.source.tree.body
        if _is_docstring(body[0]):
            body = body[1:]
        if not body or not isinstance(body[-1], ast.Return):
            last = body[-1] if body else self.source.tree
            raise self.scope.error(
                last,
                'a program ends in a return of fields: return n["name"] (n: the row of a loop)',
            )
        for s in body[:-1]:
            self.statement(s)
        results = self.results(body[-1])
        return Program(
            self.source,
            self.scope.graph,
            self.scope.arguments,
            results,
            not isinstance(body[-1].value, ast.Tuple),
            self.scope.one_kind,
            "etype" in self.scope.asks,
            "ntype" in self.scope.asks,
        )

    # ------------------------------------------------------------ statements

    def statement(self, s: ast.stmt) -> None:
        match s:
            case ast.For():
                self.loop(s)
            case ast.Assign(targets=[target]):
                self.assign(target, self.expressions.read(s.value), s)
            case ast.AugAssign():
                self.augment(s)
            case ast.Pass():
                pass
            case _:
                raise self.scope.error(s, _refused(s))

    def loop(self, s: ast.For) -> None:
        if s.orelse:
            raise self.scope.error(s.orelse[0], "a loop has no else: put this behind the loop")
        row = self.row_of(s)
        before, self.effects = self.effects, 0
        self.scope.enter(row, s.target)
        for inner in s.body:
            self.statement(inner)
        self.scope.leave()
        if not self.effects:
            raise self.scope.error(s, f'this loop sets no field: {row.name}["name"] = ..')
        self.effects += before
        self.finish_sums()

    def row_of(self, s: ast.For) -> Row:
        """The row of a loop."""
        if not isinstance(s.target, ast.Name):
            raise self.scope.error(s.target, "a loop has one row: for e in g.edges()")
        if self.scope.rows and self.scope.rows[-1].site.is_node:
            return self.expressions.edges_of(s.target, s.iter)
        if self.scope.rows:
            raise self.scope.error(
                s,
                "no loop stands inside a loop over edges: sum in a loop over nodes, "
                "`for n in g.dst_nodes(): for e in n.incoming_edges()`",
            )
        g = self.scope.graph
        match s.iter:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr=attr), args=[], keywords=[]
            ):
                pass
            case _:
                raise self.scope.error(
                    s.iter, f"a loop is over {', '.join(f'{g}.{k}()' for k in LOOPS)}"
                )
        if name != g:
            raise self.scope.error(s.iter, f"`{name}` is not the graph, which is `{g}`")
        if attr not in LOOPS:
            hint = suggestion(attr, LOOPS, "there are")
            raise self.scope.error(s.iter, f"a graph has no {attr}(): {hint}")
        return Row(s.target.id, LOOPS[attr])

    # ------------------------------------------------------------ fields

    def assign(self, target: ast.expr, value: Value, s: ast.stmt) -> None:
        if isinstance(target, ast.Name):
            self.scope.set_local(target.id, value, target)
            return
        place, name = self.field(target)
        if place.path or place.row is not self.scope.row:
            raise self.scope.error(s, self.no_reduction(place, name))
        self.set_field(place, name, value, target)

    def set_field(self, place: Place, name: str, value: Value, at: ast.AST) -> None:
        self.scope.write(place, name, value, at)
        self.effects += 1

    def field(self, target: ast.expr) -> tuple[Place, str]:
        """The row and the name that a target has."""
        if isinstance(target, ast.Attribute) and self.scope.place(target.value) is not None:
            raise self.scope.error(
                target, f'fields are set by name: {ast.unparse(target.value)}["{target.attr}"] = ..'
            )
        if not isinstance(target, ast.Subscript):
            raise self.scope.error(target, 'set a field, row["name"] = .., or a local name')
        place, name = self.scope.place(target.value), text(target.slice)
        if place is None:
            if isinstance(target.value, ast.Name) and target.value.id in self.scope.arguments:
                raise self.scope.error(
                    target, f"`{target.value.id}` is an argument and cannot be set: set a field"
                )
            raise self.scope.error(
                target,
                f"`{ast.unparse(target.value)}` is no row of a loop here: fields are set in "
                "loops over rows",
            )
        if name is None:
            raise self.scope.error(target.slice, 'a field is named by a text: row["name"]')
        return place, name

    def no_reduction(self, place: Place, name: str) -> str:
        """What is wrong with setting a field of a node in a loop over edges."""
        if place.row.site is Site.EDGE:
            end = "incoming" if place.path == "dst" else "outgoing"
            return (
                f"many edges set `{name}` of one node: sum in a loop over nodes, `for n in "
                f"g.{place.path}_nodes(): for e in n.{end}_edges()`"
            )
        n = place.row.name
        return (
            f'this loop is no reduction, each edge would set `{name}` anew: {n}["{name}"] += .. '
            f"sums, max(.. for e in {n}.incoming_edges()) takes the greatest"
        )

    # ------------------------------------------------------------ sums

    def augment(self, s: ast.AugAssign) -> None:
        if isinstance(s.target, ast.Name):
            old = self.expressions.read(ast.copy_location(ast.Name(s.target.id), s.target))
            new = self.expressions.binary(s.op, old, self.expressions.read(s.value), s)
            self.scope.set_local(s.target.id, new, s)
            return
        place, name = self.field(s.target)
        if place.row is self.scope.row and not place.path:
            self.update(place, name, s)
        elif place.row.site is Site.EDGE:
            raise self.scope.error(s, self.no_reduction(place, name))
        else:
            self.add_to_sum(place, name, s)

    def update(self, place: Place, name: str, s: ast.AugAssign) -> None:
        """`e["att"] /= x` on the row of the loop itself."""
        fields = self.scope.edge_fields if place.site is Site.EDGE else self.scope.node_fields
        if name in self.scope.inputs or name in fields:
            old = self.scope.read(place, name, s.target)
        else:
            raise self.scope.error(s, self.no_start(place.row.name, name, fields))
        value = self.expressions.binary(s.op, old, self.expressions.read(s.value), s)
        self.set_field(place, name, value, s.target)

    @staticmethod
    def no_start(
        row: str, name: str, known: dict[str, Value] | dict[str, tuple[Site, Value]]
    ) -> str:
        near = suggestion(name, known, "")
        meant = f", or {near}" if near.startswith("did") else ""
        return f'`{name}` has no value to add to: begin with {row}["{name}"] = 0.0{meant}'

    def add_to_sum(self, place: Place, name: str, s: ast.AugAssign) -> None:
        """`n["total"] += x` in a loop over the edges of n."""
        row = self.scope.row
        assert row is not None and row.node is not None
        if not isinstance(s.op, ast.Add):
            raise self.scope.error(
                s,
                "this loop is no reduction: += sums; max, min and mean are "
                f"max(.. for e in {place.row.name}.incoming_edges())",
            )
        if name not in self.sums:
            if name in self.scope.inputs:
                raise self.scope.error(
                    s.target, f"`{name}` is an argument and cannot be set: sum into a field"
                )
            if name not in self.scope.node_fields:
                raise self.scope.error(
                    s, self.no_start(place.row.name, name, self.scope.node_fields)
                )
            outer = Place(place.row, place.site, "")
            self.sums[name] = _Sum(self.scope.read(outer, name, s.target))
            self.scope.running.add(name)
        found = self.sums[name]
        term = self.expressions.reduced("sum", self.expressions.read(s.value), row, s)
        if found.total is None:
            found.total = term
        else:
            found.total = self.expressions.functions.pointwise("add", [found.total, term], s)
        if joined(found.start.shape, found.total.shape) != found.total.shape:
            raise self.scope.error(
                s,
                f"`{name}` starts as {shown(found.start.shape)} and is summed as "
                f"{shown(found.total.shape)}: begin with 0.0",
            )
        self.effects += 1

    def finish_sums(self) -> None:
        """Sets the fields that the loop has summed up."""
        row = self.scope.row
        for name, found in self.sums.items():
            assert row is not None and found.total is not None
            value = found.total
            if found.start.op != "const" or found.start.attrs["value"] != 0.0:
                args = [found.start, found.total]
                value = self.expressions.functions.pointwise("add", args, found.total.at)
            self.scope.running.discard(name)
            self.set_field(Place(row, row.site, ""), name, value, value.at)
        self.sums.clear()

    # ------------------------------------------------------------ results

    def results(self, s: ast.Return) -> tuple[tuple[str, Value], ...]:
        if s.value is None:
            raise self.scope.error(s, 'a program returns fields: return n["name"]')
        items = s.value.elts if isinstance(s.value, ast.Tuple) else [s.value]
        return tuple(self.result(e) for e in items)

    def result(self, e: ast.expr) -> tuple[str, Value]:
        """`n["name"]`, of the row of a loop before."""
        name = text(e.slice) if isinstance(e, ast.Subscript) else None
        row = self.scope.results_of(e.value) if isinstance(e, ast.Subscript) else None
        if name is None or row is None:
            rows = ", ".join(f'{r}["name"]' for r in self.scope.past) or 'n["name"]'
            raise self.scope.error(e, f"a program returns fields of rows of its loops: {rows}")
        site = row.site
        if site.is_node and name in self.scope.node_fields:  # whichever loop had that variable last
            site = self.scope.node_fields[name][0]
        value = self.scope.read(Place(row, site, ""), name, e)
        if value.site is Site.ONE:  # a row each, though all are equal
            value = Value("spread", (value,), site, value.shape, e)
        return name, value


def _is_docstring(s: ast.stmt) -> bool:
    return isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)


def _refused(s: ast.stmt) -> str:
    match s:
        case ast.While():
            return "a program has no while: it loops over g.edges() and nodes"
        case ast.If():
            return "a program has no if: where(condition, a, b), or `a if condition else b`"
        case ast.Return():
            return "the return stands once, at the end of the program"
        case ast.Assign():
            return "set one name at a time"
        case ast.AnnAssign():
            return "fields and names have no annotation: name = value"
        case ast.Expr():
            return 'this value goes nowhere: keep it in a field, row["name"] = ..'
        case ast.FunctionDef() | ast.ClassDef():
            return "a program defines nothing inside: write the formula where it is used"
        case _:
            return (
                f"{type(s).__name__} has no place in a program: it has loops, fields and a return"
            )
