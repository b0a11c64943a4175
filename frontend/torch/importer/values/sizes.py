"""Sizes: which of Dynamo's symbols count rows and which are widths, and the sets they size.

A width becomes a constant (`int` of it adds a guard, so a new width is a new program); a number of
rows never does. A set is a class of size expressions with union-find on top: Dynamo has merged the
symbols of tensors that met, the importer merges what meets by provenance.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

import sympy
import torch
from torch import Tensor, fx
from torch._dynamo.source import AttrSource, ChainedSource
from torch.utils._sympy.functions import Min

from .....runtime.ranks.world import world
from ..calls.canonical import Canonical, canonical
from ..errors import NoRule
from .nodes import Filter, Loops, Origin, Set, Sized, Union

ALONG_DIM = {"index_select", "index_add", "index_reduce", "scatter_add", "scatter_reduce"}
"""What reads or writes along a dimension by index."""

FEW = 16
"""So many numbers for each row make a table: each is read by a loop of its own, and the time to
compile a program grows with their number."""

COUNTED: dict[str, str] = {}
"""The argument that tells how many rows the result has, of ops whose rules name one."""


def expression(size: int | torch.SymInt | torch.SymFloat) -> sympy.Expr:
    """The symbolic expression of a dimension or of a symbolic scalar."""
    if isinstance(size, torch.SymInt | torch.SymFloat | torch.SymBool):
        return size.node.expr
    return sympy.Integer(int(size))


def symbols(size: object) -> set[str]:
    return (
        {str(s) for s in expression(size).free_symbols} if isinstance(size, torch.SymInt) else set()
    )


def example(x: object) -> object:
    """The example value of a node (a fake tensor or a symbolic scalar), or the constant itself."""
    return x.meta.get("example_value") if isinstance(x, fx.Node) else x


def tensors_in(value: object) -> list[Tensor]:
    """The tensors in plain containers (pytree would take ten times as long, and generators twice,
    at every call)."""
    found: list[Tensor] = []
    _find_tensors(value, found)
    return found


def _find_tensors(value: object, found: list[Tensor]) -> None:
    if isinstance(value, Tensor):
        found.append(value)
    elif isinstance(value, dict):
        for x in list(value.values()):
            _find_tensors(x, found)
    elif isinstance(value, (tuple, list)):
        for x in value:
            _find_tensors(x, found)


def storage(value: object) -> int | None:
    """The identity of the memory behind an example tensor."""
    return value.untyped_storage()._cdata if isinstance(value, Tensor) else None


def is_unbacked(symbol: object) -> bool:
    """Whether a symbol stands for a number that only running the program tells."""
    return str(symbol).startswith("u")


def _least(expr: sympy.Expr) -> sympy.Expr | None:
    """The least that a size can be, whatever running the program tells; None: it is not known."""
    parts = [p for p in sympy.Add.make_args(expr) if any(is_unbacked(s) for s in p.free_symbols)]
    if all(p.as_coeff_Mul()[0] > 0 and not p.atoms(sympy.Function) for p in parts):
        return expr - sum(parts)
    return None


def row_symbols(graph: fx.Graph) -> set[str]:
    """The symbols that count rows: last dimensions of integer inputs, first ones of tables,
    whatever is indexed or reduced into, data-dependent sizes, and leading dimensions of float
    inputs whose symbol is nobody's width. What a call puts in the place of a parameter has widths,
    and so have weights of `linear`."""
    rows: set[str] = set()
    widths: set[str] = set()
    likely: set[str] = set()  # unless they are widths
    for node in graph.nodes:
        value = example(node)
        if isinstance(value, Tensor):
            rows |= {s for d in value.shape for s in symbols(d) if is_unbacked(s)}
        if node.op == "placeholder" and isinstance(value, Tensor) and value.dim():
            if _is_parameter(node):
                rest = value.shape
            elif value.is_floating_point():
                likely |= symbols(value.shape[0])
                rest = value.shape[1:]
            elif _is_table(value):
                rows |= symbols(value.shape[0])
                rest = value.shape[1:]
            else:
                rows |= symbols(value.shape[-1])
                rest = value.shape[:-1]
            for d in rest:
                widths |= symbols(d)
        elif node.op.startswith("call") and (call := canonical(node)) and call.fault is None:
            for size in _indexed(call):
                if isinstance(size, torch.SymInt):
                    # `n * width // 8` counts rows of n
                    (rows if expression(size).is_Symbol else likely).update(symbols(size))
            if call.op == "linear" and isinstance(w := example(call.arguments["weight"]), Tensor):
                widths |= {s for d in w.shape for s in symbols(d)}
    return rows | (likely - widths - _beside(rows, graph))


def _beside(rows: set[str], graph: fx.Graph) -> set[str]:
    """The symbols of inputs with another dimension that counts rows for certain: the steps of a
    series or the members of a batch over one graph, `(T, N, F)`."""
    found: set[str] = set()
    for node in graph.nodes:
        value = example(node)
        if node.op == "placeholder" and isinstance(value, Tensor) and value.is_floating_point():
            dims = [symbols(d) for d in value.shape]
            others = [d for d in dims if not d & rows]
            if len(others) < len(dims):
                found.update(*others)
    return found


def _is_table(value: Tensor) -> bool:
    """Whether integers are several for each of more rows, `(N, K)`, as the neighbours of nodes or
    the steps of walks are, and not the ends of edges, `(2, E)`. What the first call has tells."""
    if value.dim() < 2 or not isinstance(value.shape[0], torch.SymInt):
        return False
    first, last = (
        d.node.hint if isinstance(d, torch.SymInt) else d for d in (value.shape[0], value.shape[-1])
    )
    return first is not None and last is not None and 2 <= last < first and last <= FEW


def _is_parameter(placeholder: fx.Node) -> bool:
    """Whether an input is what a module has as a parameter. One that is no `nn.Parameter`, as those
    of `torch.func.functional_call`, has sizes that Dynamo does not fix."""
    source = getattr(placeholder.meta.get("grapharg"), "source", None)
    while isinstance(source, ChainedSource):
        if isinstance(source, AttrSource) and source.member == "_parameters":
            return True
        source = source.base
    return False


def _indexed(call: Canonical) -> list[object]:
    """The sizes of the dimensions that an indexing call indexes."""
    value = example(call.arguments.get("input"))
    if call.op in ALONG_DIM and isinstance(value, Tensor):
        dim = call.arguments["dim"]
        return [value.shape[dim]] if isinstance(dim, int) and value.dim() else []
    if call.op in ("getitem", "index_put") and isinstance(value, Tensor):
        index = call.arguments["index" if call.op == "getitem" else "indices"]
        index = index[0] if isinstance(index, list | tuple) and len(index) == 1 else index
        by_tensor = isinstance(index, fx.Node) and isinstance(example(index), Tensor)
        return [value.shape[0]] if by_tensor and value.dim() else []
    size = COUNTED.get(call.op)
    return [] if size is None else [example(call.arguments[size])]


def sets_behind(s: Set) -> Iterator[Set]:
    """The sets that a set is made from."""
    match s.origin:
        case Filter(parent, _):
            yield parent.find()
        case Union(parts):
            yield from (p.find() for p in parts)
        case Loops(nodes, of, _, _):
            yield from (nodes.find(), of.find())


def made_from(s: Set, other: Set) -> bool:
    """Whether a set is `other`, or is made from it in one or several steps."""
    todo, seen = [s.find()], set[int]()
    while todo:
        x = todo.pop()
        if x is other.find():
            return True
        if x.number not in seen:
            seen.add(x.number)
            todo.extend(sets_behind(x))
    return False


class Sizes:
    """The sets of one graph; `rows` are symbols known to count rows, whatever the graph shows."""

    def __init__(self, graph: fx.Graph, rows: AbstractSet[str] = frozenset()) -> None:
        self.rows = row_symbols(graph) | rows
        self.told, self.env = _told(graph), _environment(graph)
        self.by_size: dict[str, Set] = {}
        self.by_origin: dict[object, Set] = {}
        self.aliases: dict[sympy.Symbol, sympy.Expr] = {}
        self.least: dict[sympy.Basic, sympy.Basic] = {}
        self.widths: dict[sympy.Expr, int] = {}
        self.checks: list[tuple[sympy.Expr, sympy.Expr]] = []

    def is_unknown(self, symbol: object) -> bool:
        """Whether only running the program tells a symbol: no placeholder has it as a size. (One of
        a part of a graph may, where an earlier part has made the rows.)"""
        return is_unbacked(symbol) and str(symbol) not in self.told

    def canonical(self, expr: sympy.Expr) -> sympy.Expr:
        """`expr` with symbols of sets found equal replaced."""
        expr = expr.xreplace(self.least) if self.least and expr.has(Min) else expr
        for _ in self.aliases:  # what stands for a symbol may have another one by now
            known = {s: self.aliases[s] for s in expr.free_symbols if s in self.aliases}
            if not known or (replaced := expr.subs(known)) == expr:
                break
            expr = replaced
        return expr

    def set_of(self, expr: sympy.Expr) -> Set:
        """The set of that size."""
        expr = self.canonical(sympy.sympify(expr))
        key = str(expr)
        if key not in self.by_size:
            self.by_size[key] = Set(expr)
        return self.by_size[key].find()

    def rename(self, symbol: sympy.Expr, expr: sympy.Expr) -> None:
        """A size that only running tells turns out to be another one."""
        if symbol.is_Symbol and is_unbacked(symbol):
            self.aliases[symbol] = self.canonical(expr)

    def is_rows(self, expr: sympy.Expr) -> bool:
        return any(str(s) in self.rows for s in expr.free_symbols)

    def dims(self, value: Tensor) -> list[int | Set]:
        """The dimensions of a fake tensor: widths as numbers, row counts as sets."""
        return [self.dim(d) for d in value.shape]

    def dim(self, size: int | torch.SymInt) -> int | Set:
        if not isinstance(size, torch.SymInt):
            return int(size)
        expr = self.canonical(expression(size))
        if not expr.free_symbols:
            return int(expr)
        if self.is_rows(expr):
            return self.set_of(expr)
        self.widths[expr] = int(size)  # int() inside a backend adds the guard
        if expr.is_Symbol:
            self.aliases[expr] = sympy.Integer(self.widths[expr])
        return self.widths[expr]

    @staticmethod
    def are_some(rows: int | torch.SymInt) -> bool:
        """Whether there are rows in every call of the program (a guard), False where only running
        the program tells, as over several ranks, of which each may have none.

        Raises:
            NoRule: there are none.
        """
        if not isinstance(rows, torch.SymInt):
            none = rows == 0
        else:
            least = _least(expression(rows))
            if least is None or least.is_zero or world().size > 1:
                return False
            none = rows.node.shape_env.evaluate_expr(sympy.Eq(least, 0))
        if none:
            raise NoRule("the extremum of no rows")
        return True

    def found_equal(self, expr: sympy.Expr, rows: sympy.Expr) -> bool:
        """Whether a size is another one in every call of the program (a guard), as the number of
        edges that a graph tells and the rows of a tensor are. They are one from then on."""
        if not (self.is_rows(expr) and self.is_rows(rows)) or not self._holds(sympy.Eq(expr, rows)):
            return False
        one = self.env.replace(rows)  # the guard may have made one symbol of two
        for old in (expr, rows):
            if old.is_Symbol and old != one:
                self.aliases[old] = one
        known = [self.by_size[str(x)].find() for x in (rows, expr) if str(x) in self.by_size]
        for s in known:
            s.expr = one
        self.by_size[str(one)] = functools.reduce(self.unify, known) if known else Set(one)
        return True

    def _holds(self, relation: sympy.Basic) -> bool:
        """Whether a relation of sizes holds in the first call, and if so in every call of the
        program (a guard). What only running the program tells does not."""
        known = not any(map(self.is_unknown, relation.free_symbols)) and self.env is not None
        if not known or not all(s in self.env.backed_var_to_val for s in relation.free_symbols):
            return False
        first = relation.xreplace(self.env.backed_var_to_val)
        return bool(first) and bool(self.env.evaluate_expr(relation))

    def know_least(self, expr: sympy.Expr) -> None:
        """Takes the lesser of two numbers of rows in a size for the one that it is in the first
        call, and so in every call of the program (a guard): `x[:n]` has `n` rows."""
        for least in expr.atoms(Min):
            if not all(arg.is_Symbol for arg in least.args):
                continue  # `x[:3]` is one program, whether there are three rows or not
            for arg in least.args:
                if all(arg == other or self._holds(sympy.Le(arg, other)) for other in least.args):
                    self.least[least] = arg
                    break

    def meet(self, a: Set, b: Set) -> Set:
        """The set that the rows of two sets are combined on, one by one: they turn out to be one,
        or both stay and the rows of the other are read by their number (`Values.on`)."""
        a, b = a.find(), b.find()
        same = self.canonical(a.expr) == self.canonical(b.expr)
        unknown = any(self.is_unknown(s) for x in (a, b) for s in x.expr.free_symbols)
        try:
            if same or not unknown:
                return self.unify(a, b)
        except NoRule:
            pass
        # on that which is made of the other, else on that which came first
        a, b = sorted((a, b), key=lambda s: s.number)
        return b if made_from(b, a) else a

    def unify(self, a: Set, b: Set) -> Set:
        """Two sets turn out to be one.

        Raises:
            NoRule: both are made of others, or one of the other.
        """
        a, b = a.find(), b.find()
        if a is b:
            return a
        if not isinstance(a.origin, Sized) and not isinstance(b.origin, Sized):
            if self._joined_alike(a, b):
                b.merged = a
                return a
            raise NoRule(
                f"values of two different sets meet, of {a.expr} and of {b.expr} rows: index or "
                "reduce one to the other first"
            )
        if not isinstance(b.origin, Sized):
            a, b = b, a
        if made_from(a, b):
            raise NoRule(
                f"values of a set of {b.expr} rows meet values of a set made from it: index one by "
                "the other first"
            )
        self.checks.append((a.expr, b.expr))
        b.merged = a
        return a

    def _joined_alike(self, a: Set, b: Set) -> bool:
        """Whether two sets join as many others, the first of as many rows as the first, and so on,
        in every call of the program (guards): these are one each from then on."""
        if not isinstance(a.origin, Union) or not isinstance(b.origin, Union):
            return False
        if len(a.origin.parts) != len(b.origin.parts):
            return False
        parts = zip(a.origin.parts, b.origin.parts, strict=True)
        pairs = [(p.find(), q.find()) for p, q in parts if p.find() is not q.find()]
        if not all(isinstance(p.origin, Sized) or isinstance(q.origin, Sized) for p, q in pairs):
            return False
        return all(self.found_equal(p.expr, q.expr) for p, q in pairs)

    def born(self, origin: Origin, expr: sympy.Expr) -> Set:
        """The set of a structure op, the same for the same op."""
        expr = self.canonical(expr)
        key = _identity(origin)
        if key not in self.by_origin:
            self.by_origin[key] = Set(expr, origin)
        born = self.by_origin[key].find()
        if isinstance(origin, Loops):
            return born
        if born.expr != expr and expr.is_Symbol:
            self.aliases[expr] = born.expr
        known = self.by_size.get(str(expr))
        if known is None:
            self.by_size[str(expr)] = born
        elif isinstance(known.find().origin, Sized) and not made_from(born, known):
            known.find().merged = born
            self.by_size[str(expr)] = born
        return born


def _environment(graph: fx.Graph) -> Any:
    """What knows the symbols of a graph; None where it has none."""
    for node in graph.nodes:
        value = example(node)
        for size in value.shape if isinstance(value, Tensor) else (value,):
            if isinstance(size, torch.SymInt):
                return size.node.shape_env
    return None


def _told(graph: fx.Graph) -> set[str]:
    """The symbols that are a placeholder, or a dimension of one."""
    values = [example(n) for n in graph.nodes if n.op == "placeholder"]
    sizes = [d for v in values for d in (v.shape if isinstance(v, Tensor) else (v,))]
    expressions = [expression(d) for d in sizes if isinstance(d, torch.SymInt)]
    return {str(e) for e in expressions if e.is_Symbol}


def _identity(origin: Origin) -> object:
    if isinstance(origin, Filter):
        return ("filter", origin.set.find().number, origin.mask.number)
    if isinstance(origin, Union):
        return ("union", *(p.find().number for p in origin.parts))
    if isinstance(origin, Loops):
        of = origin.of.find().number
        return ("loops", origin.nodes.find().number, of, origin.src.number, origin.dst.number)
    raise AssertionError(origin)
