"""join-parts: what runs over local and over remote edges alike runs once, over both together.

Before: `add (reduce sum %a over %local along dst), (reduce sum %b over %remote along dst)`, where
%a reads rows of owned nodes and %b, made of the same ops, rows that have arrived. After: `reduce
sum %c over %all along dst`, with `%all = inter.union %local, %remote`, whose map `src` leads to
`inter.union %own, %ghost`, and %c reads the stack of owned and arrived rows. A softmax or a maximum
runs over such a union already, and what is stacked for it becomes %c.

So a row has one loop over its edges, as in one process, and owned rows and ghosts get their
gradients in one loop each. For that no edge is summed before all rows are there: it is for ranks
whose messages are copies, beside which nothing goes on. Else split-unions does the opposite.

What takes little work a row is computed on owned rows and ghosts together (attention scores), and
of everything else the rows are stacked. Where the two do not match, they stay apart.

Comes before autodiff, of programs that are partitioned, and after restrict-rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.inter.base import ValueOp
from ...dialects.inter.builder import Builder
from ...dialects.inter.pointwise import AddOp
from ...dialects.inter.ranks import PEER
from ...dialects.inter.reduce import CountOp, DropoutOp, OverAlong, ReduceOp
from ...dialects.inter.sets import SetEnv
from ...dialects.inter.structure import UnionOp, union_type
from ...dialects.inter.types import UNIT, Dom, RowsType, SetType, rows, set_name, set_type
from ...dialects.inter.values import AtOp, StackOp
from ...dialects.signature import body_ops
from ..function_pass import FunctionPass
from .partitioning.copies import is_cheap
from .restricting.needs import BY_ROW
from .split_unions import reads_messages
from .verify_sets import verify_sets

Pair = tuple[str, str]
"""The sets of local and of remote edges, or of owned rows and ghosts."""
Values = tuple[SSAValue, SSAValue]
Ends = dict[str, Pair]
"""By map, what that of the local and that of the remote edges leads to."""


def join_parts(func: FuncOp) -> int:
    """Joins what `func` does over local and over remote edges; returns how many reductions, and
    stacks for such, are over both. Linear in ops."""
    join = _Join(func, verify_sets(func))
    ops = [op for op in body_ops(func) if isinstance(op, AddOp | StackOp)]
    works = [work for op in ops if (work := _work(op)) is not None]
    reading = {work for work in works if join.reads(work)}
    pairs = {work.pair for work in reading}
    # where some of it stayed apart, the groups of edges would be kept twice
    apart = {w.pair[0] for w in works if w not in reading and join.reads_arrived(w)}
    mine = [w for w in works if w.pair in pairs and w.pair[0] not in apart]
    for work in mine:
        join.replace(work)
    return len(mine)


@dataclass(frozen=True)
class _Work:
    """A sum of two reductions or counts, over local and over remote edges, or a stack of the rows
    of these: of what it is made. Of counts there are no rows."""

    op: AddOp | StackOp
    pair: Pair
    xs: Values | None
    along: tuple[str, ...] = ()


def _work(op: AddOp | StackOp) -> _Work | None:
    if isinstance(op, StackOp):
        names = set_type(op.set).part_names
        return _Work(op, (names[0], names[1]), (op.xs[0], op.xs[1])) if len(names) == 2 else None
    a, b = (x.owner for x in op.operands)
    if not isinstance(a, OverAlong) or not isinstance(b, OverAlong) or a.type != b.type:
        return None
    if a.over.keys or b.over.keys or a.along_keys != b.along_keys or len(a.along_keys) != 1:
        return None
    pair = a.over.set, b.over.set
    if isinstance(a, CountOp) and isinstance(b, CountOp):
        return _Work(op, pair, None, a.along_keys)
    if isinstance(a, ReduceOp) and isinstance(b, ReduceOp):
        if all(x.kind.data == "sum" and x.otherwise is None for x in (a, b)):
            return _Work(op, pair, (a.x, b.x), a.along_keys)
    return None


@dataclass
class _Join:
    func: FuncOp
    env: SetEnv
    unions: dict[Pair, str] = field(default_factory=dict[Pair, str])
    values: dict[tuple[str, SSAValue, SSAValue], SSAValue] = field(
        default_factory=dict[tuple[str, SSAValue, SSAValue], SSAValue]
    )
    """By the union that they are on, the rows of two values together."""

    def __post_init__(self) -> None:
        ops = body_ops(self.func)
        made = [op for op in ops if isinstance(op, UnionOp) and len(op.sets) == 2]
        self.known = {(set_name(op.sets[0]), set_name(op.sets[1])): op for op in made}
        self.read: dict[str, set[str]] = {}
        for op in ops:
            if isinstance(op, AtOp):
                self.read.setdefault(set_name(op.set), set()).add(_first(op.path.data))

    # ------------------------------------------------------------ what is joined

    def reads(self, work: _Work) -> bool:
        """Whether rows at hand are read on one side, and rows that arrive on the other."""
        ends = self.ends(work.pair)
        return bool(ends) and work.xs is not None and self._reads_ends(work.xs, work.pair, ends)

    def reads_arrived(self, work: _Work) -> bool:
        """Whether the remote side reads rows that arrive, in whatever way."""
        todo = [] if work.xs is None else [work.xs[1]]
        seen = set(todo)
        while todo:
            op = todo.pop().owner
            if isinstance(op, AtOp) and rows(op.x).dom.set != UNIT:
                if PEER in self.env.info(rows(op.x).dom.set).maps:
                    return True
            elif isinstance(op, ValueOp):
                more = {x for x in op.operands if isinstance(x.type, RowsType)} - seen
                seen |= more
                todo += more
        return False

    def replace(self, work: _Work) -> None:
        """Does once what is done for both sets."""
        op, pair = work.op, work.pair
        ends = self.ends(pair)
        union = self.union(pair, ends)
        b = Builder(self.env, InsertPoint.before(op), vanilla=True)
        if work.xs is None:
            value = b.count(union, work.along, op.type.elem)
        else:
            value = self.on_edges(b, pair, ends, work.xs)
            if work.along:
                value = b.reduce("sum", value, union, work.along)
        value.name_hint = op.results[0].name_hint
        op.results[0].replace_all_uses_with(value)
        Rewriter.erase_op(op)

    # ------------------------------------------------------------ sets

    def ends(self, pair: Pair) -> Ends:
        """The maps of two sets by which one reads rows at hand, and the other rows that arrive."""
        local, remote = pair
        if reads_messages(self.env, local) or not reads_messages(self.env, remote):
            return {}
        maps = [self.env.info(s).maps for s in pair]
        labels = self.read.get(local, set()) & self.read.get(remote, set())
        found: dict[str, Pair] = {}
        for label in (k for k in maps[0] if k in labels and k in maps[1]):
            own, ghost = (m[label].codomain for m in maps)
            if own != ghost and PEER in self.env.info(ghost).maps:
                found[label] = own, ghost
        return found

    def union(self, pair: Pair, ends: Ends | None = None) -> str:
        """The rows of both sets as one."""
        if pair not in self.unions:
            joined = {label: self.union(end) for label, end in (ends or {}).items()}
            self.unions[pair] = self._union(pair, joined)
        return self.unions[pair]

    def _union(self, pair: Pair, joined: dict[str, str]) -> str:
        needed = [self.env.value(s) for s in (*pair, *joined.values())]
        old = self.known.get(pair)
        if old is None:
            b = Builder(self.env, self._behind(needed), vanilla=True)
            return set_name(b.union(*pair, ends=joined, name=f"{_stem(pair[0])}_all"))
        name, types = set_name(old.results[0]), [set_type(s) for s in old.sets]
        old.detach()
        Rewriter.insert_op(old, self._behind(needed))  # it may be read earlier now
        Rewriter.replace_value_with_new_type(old.results[0], union_type(name, types, joined))
        self.env = verify_sets(self.func)
        return name

    def _behind(self, values: Iterable[SSAValue]) -> InsertPoint:
        """Where all of these are there."""
        owners = [v.owner for v in values if isinstance(v.owner, Operation)]
        if not owners:
            return InsertPoint.at_start(self.func.body.block)
        order = {op: i for i, op in enumerate(self.func.body.block.ops)}
        return InsertPoint.after(max(owners, key=order.__getitem__))

    # ------------------------------------------------------------ values

    def _reads_ends(self, xs: Values, pair: Pair, ends: Ends) -> bool:
        """Whether two values are made alike of rows that are read where the maps `ends` lead."""
        todo, seen = [xs], {xs}
        while todo:
            a, b = todo.pop()
            if isinstance(a.owner, AtOp) and isinstance(b.owner, AtOp):
                if _follows(a.owner, b.owner, ends):
                    return True
            elif (operands := _alike(a, b, pair)) is not None:
                more = [v for v in operands if _is_on(v, pair) and v not in seen]
                seen.update(more)
                todo += more
        return False

    def on_edges(self, b: Builder, pair: Pair, ends: Ends, xs: Values) -> SSAValue:
        """The rows of two values on local and remote edges as rows of both."""
        union = self.union(pair)
        if _is_one_row(xs):
            return xs[0]

        def made() -> SSAValue:
            x, y = xs[0].owner, xs[1].owner
            if isinstance(x, AtOp) and isinstance(y, AtOp):
                if (label := _follows(x, y, ends)) is not None:
                    return b.at(union, label, self.on_nodes(b, ends[label], (x.x, y.x)))
                if x.x is y.x and x.path == y.path and self._leads_alike(union, x, y):
                    return b.at(union, x.path.data, x.x)
            elif (operands := _alike(*xs, pair)) is not None:
                return self._again(b, x, union, [self._operand(b, pair, ends, v) for v in operands])
            return b.stack(union, *xs)

        return self._known(union, xs, made)

    def _operand(self, b: Builder, pair: Pair, ends: Ends, v: Values) -> SSAValue:
        if isinstance(v[0].type, SetType):
            return b.set(self.union(pair))
        return self.on_edges(b, pair, ends, v) if _is_on(v, pair) else v[0]

    def on_nodes(self, b: Builder, pair: Pair, xs: Values) -> SSAValue:
        """The rows of two values on owned rows and ghosts as rows of both."""
        union = self.union(pair)

        def made() -> SSAValue:
            op = xs[0].owner
            operands = _alike(*xs, pair)
            if operands is None or not isinstance(op, ValueOp) or not is_cheap(op):
                return b.stack(union, *xs)
            new = [self.on_nodes(b, pair, v) if _is_on(v, pair) else v[0] for v in operands]
            return self._again(b, op, union, new)

        return self._known(union, xs, made)

    def _known(self, union: str, xs: Values, made: Callable[[], SSAValue]) -> SSAValue:
        key = (union, *xs)
        if key not in self.values:
            self.values[key] = made()
            self.values[key].name_hint = xs[0].name_hint
        return self.values[key]

    def _leads_alike(self, union: str, x: AtOp, y: AtOp) -> bool:
        """Whether two reads of one value lead to the same rows as one of the union."""
        whole = self.env.info(union).maps
        return x.otherwise is None and y.otherwise is None and _first(x.path.data) in whole

    @staticmethod
    def _again(
        b: Builder, op: Operation | Block, union: str, operands: Sequence[SSAValue]
    ) -> SSAValue:
        assert isinstance(op, ValueOp)
        new = op.clone()
        new.operands = operands
        Rewriter.replace_value_with_new_type(new.results[0], op.type.on(Dom(union)))
        new.verify_()
        return b.insert(new)


def _first(path: str) -> str:
    return path.split(".")[0]


def _stem(local: str) -> str:
    return local.removesuffix("_local").removesuffix("_own")


def _is_on(v: Values, pair: Pair) -> bool:
    return all(isinstance(x.type, RowsType) and x.type.dom == Dom(s) for x, s in zip(v, pair))


def _follows(x: AtOp, y: AtOp, ends: Ends) -> str | None:
    """The map of both sets through which two reads find rows at hand, and rows that arrive."""
    label = x.path.data
    known = label in ends and x.path == y.path and _is_on((x.x, y.x), ends[label])
    return label if known and x.otherwise is None and y.otherwise is None else None


def _alike(a: SSAValue, b: SSAValue, pair: Pair) -> list[Values] | None:
    """The operands of two ops that do the same, row by row, on two sets; None of others."""
    x, y = a.owner, b.owner
    if not isinstance(x, BY_ROW) or not isinstance(y, BY_ROW) or type(x) is not type(y):
        return None
    if x.properties != y.properties:
        return None
    if not _is_on((a, b), pair) or len(x.operands) != len(y.operands):
        return None
    if isinstance(x, DropoutOp) and x.numbers is None:
        return None  # it draws by the places of rows in their set
    operands = list(zip(x.operands, y.operands, strict=True))
    if rows(a).dims != rows(b).dims or rows(a).elem != rows(b).elem:
        return None
    return operands if all(_fits(v, pair) for v in operands) else None


def _fits(v: Values, pair: Pair) -> bool:
    """Whether two operands are those of two sets, or a single row that both read."""
    if all(isinstance(x.type, SetType) for x in v):
        return tuple(map(set_name, v)) == pair
    return _is_on(v, pair) or _is_one_row(v)


def _is_one_row(v: Values) -> bool:
    """Whether both are the same single row."""
    return v[0] is v[1] and rows(v[0]).dom.set == UNIT


@dataclass(frozen=True)
class JoinPartsPass(FunctionPass):
    """Does what runs over local and over remote edges alike once, over both together."""

    name = "join-parts"

    def on(self, func: FuncOp) -> None:
        join_parts(func)
