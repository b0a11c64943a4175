"""Expressions of a program: from syntax to values, with every check that needs no tensors."""

from __future__ import annotations

import ast
import types

from .declarations import TABLES
from .errors import suggestion
from .functions import FUNCTIONS, PARAMETERS, ROW_FOLDS, Functions
from .scope import Place, Row, Scope, text
from .values import Site, Value
from .widths import names as names_in
from .widths import product, width

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Pow: "pow",
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}
_DEGREES = {"in_degree": "dst", "out_degree": "src"}


class Expressions:
    """Reads expressions at the place that the scope is at."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.functions = Functions(scope)

    def read(self, e: ast.expr) -> Value:
        """The value of an expression.

        Raises:
            ProgramError: it has none here.
        """
        match e:
            case ast.Constant():
                return self._constant(e)
            case ast.Name():
                return self._name(e)
            case ast.Attribute():
                return self._attribute(e)
            case ast.Subscript():
                return self._subscript(e)
            case ast.BinOp():
                return self.binary(e.op, self.read(e.left), self.read(e.right), e)
            case ast.UnaryOp():
                return self._unary(e)
            case ast.Compare():
                return self._compare(e)
            case ast.BoolOp():
                return self._bool(e)
            case ast.IfExp():
                parts = [self.read(x) for x in (e.test, e.body, e.orelse)]
                return self.functions.call("where", parts, (), e)
            case ast.Call():
                return self._call(e)
            case _:
                what = type(e).__name__
                raise self.scope.error(
                    e,
                    f"an expression of this kind ({what}) has no meaning here: use + - * / ** @,"
                    " comparisons and functions",
                )

    def binary(self, op: ast.operator, a: Value, b: Value, at: ast.AST) -> Value:
        """An operator on two values."""
        if isinstance(op, ast.MatMult):
            return self.functions.matmul(a, b, at)
        if type(op) not in _BINARY:
            raise self.scope.error(at, "there are the operators + - * / ** and @")
        self.functions.numbers((a, b), at)
        return self.functions.pointwise(_BINARY[type(op)], (a, b), at)

    def _unary(self, e: ast.UnaryOp) -> Value:
        x = self.read(e.operand)
        if isinstance(e.op, ast.Not):
            return self._logical("logical_not", [x], e)
        self.functions.numbers([x], e)
        if isinstance(e.op, ast.Invert):
            raise self.scope.error(e, "there is no ~ of numbers: `not` turns a comparison")
        return x if isinstance(e.op, ast.UAdd) else self.functions.pointwise("neg", [x], e)

    def _compare(self, e: ast.Compare) -> Value:
        if len(e.ops) > 1 or type(e.ops[0]) not in _COMPARISONS:
            raise self.scope.error(e, "compare two numbers: a < b, or `a < b and b < c`")
        args = [self.read(e.left), self.read(e.comparators[0])]
        self.functions.numbers(args, e)
        x = self.functions.pointwise(_COMPARISONS[type(e.ops[0])], args, e)
        return Value(x.op, x.args, x.site, x.shape, e, x.attrs, boolean=True)

    def _bool(self, e: ast.BoolOp) -> Value:
        name = "logical_and" if isinstance(e.op, ast.And) else "logical_or"
        first, *others = (self.read(x) for x in e.values)
        for x in others:
            first = self._logical(name, [first, x], e)
        return first

    def _logical(self, name: str, args: list[Value], e: ast.expr) -> Value:
        if not all(x.boolean for x in args):
            raise self.scope.error(e, "and, or and not join comparisons: x > 0.0 and y > 0.0")
        x = self.functions.pointwise(name, args, e)
        return Value(x.op, x.args, x.site, x.shape, e, x.attrs, boolean=True)

    # ------------------------------------------------------------ names

    def _constant(self, e: ast.Constant) -> Value:
        if isinstance(e.value, bool) or not isinstance(e.value, int | float):
            raise self.scope.error(e, f"{e.value!r} is no number of a program")
        return self.number(float(e.value), e)

    def number(self, value: float, at: ast.AST) -> Value:
        return Value("const", (), Site.ONE, (), at, {"value": value})

    def _name(self, e: ast.Name) -> Value:
        scope, name = self.scope, e.id
        if (found := scope.local(name, e)) is not None:
            return found
        if name in scope.arguments:
            return self._argument(e)
        if any(r.name == name for r in scope.rows):
            raise scope.error(e, f'`{name}` is a row, not a number: read a field, {name}["name"]')
        if name == scope.graph:
            raise scope.error(e, f"`{name}` is the graph: loop over its edges() or nodes")
        if name in scope.past:
            raise scope.error(e, f"`{name}` is the row of a loop that is over: write one more loop")
        if name in scope.ended:
            raise scope.error(
                e, f'`{name}` was set in a loop that is over: keep it in a field, row["{name}"]'
            )
        outer = scope.outer.get(name)
        if isinstance(outer, int | float) and not isinstance(outer, bool):
            return self.number(float(outer), e)
        known = {n for names in scope.locals for n in names} | set(scope.arguments)
        hint = suggestion(name, known, "there are")
        raise scope.error(e, f"`{name}` is used before it is set: {hint}")

    def _argument(self, e: ast.Name) -> Value:
        argument = self.scope.arguments[e.id]
        if argument.kind != "Weights":
            row = self.scope.row
            here = f"{row.name}.{e.id}" if row and row.site is Site.EDGE else f"e.src.{e.id}"
            if row is not None and row.site.is_node and argument.kind != "Edges":
                here = f"{row.name}.{e.id}"
            raise self.scope.error(
                e, f"`{e.id}` has a row for each of the {argument.kind.lower()}: read one, {here}"
            )
        if argument.table is not None:
            index = f"e.{argument.table}" if argument.table == "etype" else f"n.{argument.table}"
            raise self.scope.error(
                e, f"`{e.id}` has a block for each type, choose one: {e.id}[{index}]"
            )
        return Value("input", (), Site.ONE, argument.shape, e, {"name": e.id})

    # ------------------------------------------------------------ rows

    def _attribute(self, e: ast.Attribute) -> Value:
        place = self._place(e.value)
        if self.scope.place(e) is not None:
            raise self.scope.error(e, f"a row is no number: read a field, {ast.unparse(e)}.name")
        if e.attr in TABLES:
            raise self.scope.error(e, f"a type is no number: it chooses weights, W[{e.attr}]")
        if e.attr in _DEGREES:
            return self._degree(place, e.attr, e)
        return self.scope.read(place, e.attr, e)

    def _place(self, e: ast.expr) -> Place:
        """The row that an expression names."""
        place = self.scope.place(e)
        if place is None:
            if isinstance(e, ast.Name) and e.id not in self.scope.arguments:
                self._name(e)  # says what is wrong with the name, if anything
            raise self.scope.error(
                e, f"`{ast.unparse(e)}` is no row of a loop: fields are those of e, e.src, e.dst, n"
            )
        return place

    def _degree(self, place: Place, name: str, at: ast.AST) -> Value:
        side = _DEGREES[name]
        site = Site.DST if side == "dst" else Site.SRC
        if place.site is Site.EDGE:
            raise self.scope.error(at, f"nodes have an {name}: {place.row.name}.{side}.{name}")
        if place.site is not site:
            self.scope.one_kind = True  # edges end at source nodes too
            site = Site.NODE
        value = Value("degree", (), site, (), at, {"along": (side,)})
        if not place.path:
            return value
        return Value("read", (value,), Site.EDGE, (), at, {"path": place.path})

    def _subscript(self, e: ast.Subscript) -> Value:
        if isinstance(e.value, ast.Name) and e.value.id in self.scope.arguments:
            return self._block(e, e.value)
        if isinstance(e.value, ast.Attribute) and e.value.attr in _DEGREES:
            return self._typed_degree(e, e.value)
        place = self._place(e.value)
        name = text(e.slice)
        if name is None:
            raise self.scope.error(
                e.slice, f'a field is named by a text: {ast.unparse(e.value)}["name"]'
            )
        return self.scope.read(place, name, e)

    def _block(self, e: ast.Subscript, name: ast.Name) -> Value:
        """`W[e.etype]`: the block of weights that is for the type of an edge or a node."""
        argument = self.scope.arguments[name.id]
        if argument.kind != "Weights":
            self._argument(name)
        if argument.table is None:
            raise self.scope.error(
                e,
                f"`{name.id}` is one block for all: write {name.id}, or declare it "
                f"Weights['etype', ..]",
            )
        path = self._type(e.slice, argument.table)[1]
        self.scope.asks.add(argument.table)
        site = Site.ONE if self.scope.row is None else self.scope.row.site
        attrs = {"name": name.id, "table": argument.table, "path": path}
        return Value("block", (), site, argument.shape, e, attrs)

    def _type(self, index: ast.expr, table: str) -> tuple[Place, str]:
        """The row whose type an index is, and the path to the type."""
        rows = [r.name for r in self.scope.rows]
        e = next((r.name for r in self.scope.rows if r.site is Site.EDGE), "e")
        n = next((r.name for r in self.scope.rows if r.site.is_node), None)
        meant = f"{e}.etype" if table == "etype" else f"{n or e + '.src'}.ntype"
        if not isinstance(index, ast.Attribute) or index.attr not in TABLES:
            raise self.scope.error(index, f"weights are chosen by a type: write {meant} as index")
        place = self._place(index.value) if rows else None
        if place is None:
            raise self.scope.error(index, f"there is no row here: use {meant} inside a loop")
        own = "etype" if place.site is Site.EDGE else "ntype"
        if index.attr != own:
            what = "an edge" if own == "etype" else "a node"
            other = meant if table == index.attr else f"{ast.unparse(index.value)}.{own}"
            raise self.scope.error(index, f"{what} has no {index.attr}: did you mean `{other}`?")
        if own != table:
            raise self.scope.error(
                index, f"these weights have a block for each {table}: did you mean `{meant}`?"
            )
        return place, f"{place.path}.{own}" if place.path else own

    def _typed_degree(self, e: ast.Subscript, of: ast.Attribute) -> Value:
        """`n.in_degree[e.etype]`: the edges of one type that end at the node."""
        side = _DEGREES[of.attr]
        place = self._place(of.value)
        edge, _ = self._type(e.slice, "etype")
        if edge.path or place.path != side:
            raise self.scope.error(
                e,
                f"an {of.attr} by type is that of the {side} of an edge: "
                f"{edge.row.name}.{side}.{of.attr}[{edge.row.name}.etype]",
            )
        self.scope.asks.add("etype")
        return Value("degree", (), Site.EDGE, (), e, {"along": (side, "rel")})

    # ------------------------------------------------------------ calls

    def _call(self, e: ast.Call) -> Value:
        name = self._function(e.func)
        if name == "width":
            return self._width(e)
        if name in ROW_FOLDS and e.args and isinstance(e.args[0], ast.GeneratorExp):
            return self._over_edges(name, e, e.args[0])
        numbers = self._parameters(name, e)
        count = 1 if name in PARAMETERS else len(e.args)
        args = [self.read(x) for x in e.args[:count]]
        return self.functions.call(name, args, numbers, e)

    def _function(self, f: ast.expr) -> str:
        """The name of a function, which may stand behind that of a module: `torch.exp`."""
        if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name):
            if isinstance(self.scope.outer.get(f.value.id), types.ModuleType):
                f = ast.copy_location(ast.Name(f.attr), f)
        if not isinstance(f, ast.Name) or f.id not in FUNCTIONS:
            name = ast.unparse(f)
            hint = suggestion(name.rpartition(".")[2], FUNCTIONS, "there are")
            raise self.scope.error(f, f"`{name}` is no function of the language: {hint}")
        return f.id

    def _parameters(self, name: str, e: ast.Call) -> list[float]:
        """The numbers behind the first argument, of functions that have a parameter."""
        if name not in PARAMETERS:
            if e.keywords:
                raise self.scope.error(e.keywords[0], f"{name} has no named arguments")
            return []
        given = [*e.args[1:], *(k.value for k in e.keywords)]
        values = [self.read(x) for x in given]
        if len(values) > 1 or any(v.op != "const" for v in values):
            parameter = PARAMETERS[name][0]
            raise self.scope.error(e, f"{name}(x, {parameter}) takes one number as {parameter}")
        return [float(v.attrs["value"]) for v in values]

    def _width(self, e: ast.Call) -> Value:
        found = width(text(e.args[0]) or "?") if len(e.args) == 1 else None
        known = {n for a in self.scope.arguments.values() for n in names_in(a.shape)}
        if found is None or not names_in((found,)) <= known:
            hint = suggestion(found or "", known, "there are")
            raise self.scope.error(e, f'width("name") is the number behind a width: {hint}')
        return Value("width", (), Site.ONE, (), e, {"width": product((found,))})

    def _over_edges(self, kind: str, e: ast.Call, loop: ast.GeneratorExp) -> Value:
        """`sum(.. for e in n.incoming_edges())`."""
        generator = loop.generators[0]
        if len(loop.generators) > 1 or generator.ifs:
            raise self.scope.error(
                loop,
                f"{kind} is over one loop without conditions: multiply with where(.., 1.0, 0.0)",
            )
        row = self.edges_of(generator.target, generator.iter)
        assert row.node is not None
        self.scope.enter(row, generator.target)
        x = self.read(loop.elt)
        self.scope.leave()
        return self.reduced(kind, x, row, e)

    def edges_of(self, target: ast.expr, iterable: ast.expr) -> Row:
        """The row of a loop over the edges of the node of the loop around it."""
        node = self.scope.row
        ends = {"incoming_edges": "dst", "outgoing_edges": "src"}
        match iterable:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)):
                fits = node is not None and node.site.is_node and name == node.name
            case _:
                fits, attr = False, ""
        if not fits or node is None or attr not in ends or not isinstance(target, ast.Name):
            n = node.name if node is not None and node.site.is_node else "n"
            inside = "" if node is not None and node.site.is_node else ", in a loop over nodes"
            raise self.scope.error(
                iterable,
                f"an inner loop is over {n}.incoming_edges() or {n}.outgoing_edges(){inside}",
            )
        end = ends[attr]
        if node.site is (Site.SRC if end == "dst" else Site.DST):
            self.scope.one_kind = True
        return Row(target.id, Site.EDGE, node, end)

    def reduced(self, kind: str, x: Value, row: Row, at: ast.AST) -> Value:
        """The fold of a value over the edges of each node."""
        self.functions.numbers([x], at)
        assert row.node is not None
        attrs = {"kind": kind, "along": row.end}
        return Value("reduce", (x,), row.node.site, x.shape, at, attrs)
