"""global-rows: a program on some rows of a graph draws and counts as the program on all of them.

In a run on a part of a graph, or on a sample, a set has some of its rows, in an order of its own.
Few ops ask which row is which, or how many there are; arguments tell them:

    %i : !inter.rows<S, i64> {inter.global_rows}                the number of each row of S
    %n : !inter.rows<unit, i64> {inter.global_count = ["S"]}    how many rows S has
    %c : !inter.rows<N, i64> {inter.global_count = ["g", "dst"]}    how many each group has

all in the whole graph. Only dropout has a form of its own for that, `over %S as %i`. The others say
it with ops that all passes know: `iota %S` is %i, `index %g[src]` is %i seen through the map, size
and count are %n, and a mean is a sum divided by %n, so that the means of the parts add up to that
of the whole. Sets and counts that no argument speaks of are not cut.

Comes before autodiff. What later passes count and number is meant of the rows at hand: a share
among them, the last of them. `reduce last` takes rows in the order at hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, StringAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue, Use
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException, VerifyException
from xdsl.utils.hints import isa

from ...dialects.attributes import GLOBAL_COUNT, GLOBAL_ROWS
from ...dialects.inter.base import ValueOp
from ...dialects.inter.builder import Builder
from ...dialects.inter.reduce import CountOp, DropoutOp, OverAlong, ReduceOp
from ...dialects.inter.sets import SetEnv
from ...dialects.inter.structure import AttachOp
from ...dialects.inter.types import UNIT, Dom, RowsType, is_integer, set_name, unstrs
from ...dialects.inter.values import AtOp, IndexOp, IotaOp, SizeOp, StackOp
from ...dialects.signature import arg_attributes, body_ops
from ..function_pass import FunctionPass
from .verify_sets import verify_sets

Groups = tuple[str, frozenset[str]]
"""A set and the maps whose values make groups of its rows; none: all rows."""


def global_rows(func: FuncOp) -> None:
    """Lets the ops of `func` know the global rows that its arguments tell. Linear in ops."""
    known = Known(func, verify_sets(func))
    for op in body_ops(func):
        if isinstance(op, DropoutOp):
            known.number(op)
            continue
        if isinstance(op, IndexOp):
            _keep_maps(op, known.env)
        if isinstance(op, ValueOp) and op.results[0].uses.get_length():
            if (value := known.value(op)) is not None:
                Rewriter.replace_op(op, [], [value])


@dataclass
class Known:
    """What the arguments of a function say of the whole graph."""

    func: FuncOp
    env: SetEnv
    rows: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    counts: dict[Groups, SSAValue] = field(default_factory=dict[Groups, SSAValue])

    def __post_init__(self) -> None:
        for a, attrs in zip(self.func.body.block.args, arg_attributes(self.func), strict=True):
            if GLOBAL_ROWS in attrs:
                name = a.type.dom.set if isinstance(a.type, RowsType) else UNIT
                _need(a, GLOBAL_ROWS, name != UNIT, Dom(name))
                self.rows[name] = a
            if isa(groups := attrs.get(GLOBAL_COUNT), ArrayAttr[StringAttr]):
                name, *maps = unstrs(groups) or [""]
                self.counts[name, frozenset(maps)] = a
                _need(a, GLOBAL_COUNT, True, self.groups(name, maps))

    def groups(self, name: str, maps: Sequence[str]) -> Dom:
        """Where a count of groups lives."""
        try:
            self.env.info(name)
            return self.env.reduced(Dom(name), maps)
        except VerifyException as error:
            raise PassFailedException(f"global-rows: {GLOBAL_COUNT}: {error}") from error

    def count(self, op: OverAlong) -> SSAValue | None:
        """The sizes of the groups of a reduction."""
        over = op.over
        return None if over.keys else self.counts.get((over.set, frozenset(op.along_keys)))

    def number(self, op: DropoutOp) -> None:
        """Gives a dropout the numbers of its rows."""
        i = None if op.set is None else self.rows.get(set_name(op.set))
        if op.numbers is None and i is not None:
            op.operands = [*op.operands, i]

    def value(self, op: ValueOp) -> SSAValue | None:
        """What to take in the place of an op that numbers or counts rows, where that is known."""
        b = Builder(self.env, InsertPoint.before(op))
        match op:
            case IotaOp():
                return self.numbers(op, set_name(op.set))
            case IndexOp():
                i = self.numbers(op, self.env.codomain(set_name(op.set), op.path.data))
                return None if i is None else _seen(b, op, i)
            case SizeOp():
                return self.counts.get((set_name(op.set), frozenset()))
            case CountOp():
                n = self.count(op)
                return None if n is None else b.cast(n, op.type.elem)
            case ReduceOp() if op.kind.data == "mean":
                n = self.count(op)
                return None if n is None else _mean(b, op, n)
            case _:
                return None

    def numbers(self, op: IotaOp | IndexOp, s: str) -> SSAValue | None:
        """The global numbers of the rows of `s`, which `op` gives.

        Raises:
            PassFailedException: they become a map, which must lead to rows at hand.
        """
        if s not in self.rows:
            return None
        for label, codomain in _maps_of(op.results[0]):
            if codomain in self.rows:
                raise PassFailedException(
                    f"global-rows: {op.name} becomes the map {label}, which leads to rows of "
                    f"{codomain} at hand and not to global ones: give the set as an argument"
                )
        return self.rows[s]


def _need(a: SSAValue, attribute: str, is_set: bool, dom: Dom) -> None:
    if not is_set or a.type != RowsType.get(dom, (), i64):
        want = f"!inter.rows<{dom if is_set else 'S'}, i64>"
        raise PassFailedException(
            f"global-rows: an argument with {attribute} is {want}, this one is {a.type}"
        )


def _maps_of(v: SSAValue) -> Iterator[tuple[str, str]]:
    """The maps that are made from an integer value: their names and where they lead."""
    todo, seen = [v], {v}
    while todo:
        for use in todo.pop().uses:
            op = use.operation
            if isinstance(op, AttachOp):
                yield _map_of(op, use.index)
            elif isinstance(op, ValueOp) and is_integer(op.type.elem) and op.results[0] not in seen:
                seen.add(op.results[0])
                todo.append(op.results[0])


def _keep_maps(op: IndexOp, env: SetEnv) -> None:
    """Lets maps that are a path of maps be made of numbers of the rows at hand, to which the path
    leads there: by an op of their own, which stays."""
    end = env.codomain(set_name(op.set), op.path.data)
    for use in list(op.results[0].uses):
        made = use.operation
        ends = {_map_of(made, use.index)[1]} if isinstance(made, AttachOp) else set[str]()
        if isinstance(made, StackOp):  # a map of a union that is such a path in each part
            ends = {m[1] if m else "" for m in map(_map_at, made.results[0].uses)}
        if ends == {end}:
            own = op.clone()
            Rewriter.insert_op(own, InsertPoint.before(op))
            made.operands[use.index] = own.results[0]


def _map_at(use: Use) -> tuple[str, str] | None:
    """The map that a value becomes where it is used: its name and where it leads."""
    op = use.operation
    return _map_of(op, use.index) if isinstance(op, AttachOp) and use.index else None


def _map_of(op: AttachOp, operand: int) -> tuple[str, str]:
    """The map that an operand becomes: its name and where it leads."""
    label, m = list(op.new_maps().items())[operand - 1]
    return label, m.codomain


def _seen(b: Builder, op: IndexOp, i: SSAValue) -> SSAValue:
    """The numbers `i` at the rows that a map leads to, -1 where it has no value."""
    partial = b.env.is_partial(set_name(op.set), op.path.data)
    otherwise = [b.const(-1, (), i64)] if partial else []
    return b.emit(AtOp, [op.set, i, otherwise], {"path": op.path}, dom=op.type.dom)


def _mean(b: Builder, op: ReduceOp, n: SSAValue) -> SSAValue:
    """The rows at hand summed and divided by `n`, at least 1."""
    elem = op.type.elem
    total = b.reduce("sum", op.x, op.over, op.along_keys)
    divisor = b.pointwise("maximum", b.cast(n, elem), b.const(1.0, (), elem))
    return b.div(total, b.reshape(divisor, (1,) * len(op.type.dims)))


@dataclass(frozen=True)
class GlobalRowsPass(FunctionPass):
    """Gives a program on some rows of a graph the numbers and counts of the whole graph."""

    name = "global-rows"

    def on(self, func: FuncOp) -> None:
        global_rows(func)
