"""Builds host functions of `intra`: buffers, index tables, and nests over the stored rows of a
domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray
from xdsl.builder import Builder
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IndexType,
    IntAttr,
    IntegerAttr,
    StringAttr,
    f64,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import PassFailedException

from ...dialects.inter.sets import SetEnv
from ...dialects.inter.types import ONE, UNIT, Dom, RowsType, SetType
from ...dialects.intra import rows
from ...dialects.intra.bindings import (
    INDEX32,
    INDEX64,
    AllocOp,
    DomainAttr,
    IndexMapOp,
    InputOp,
    MemberMapOp,
    MembersOp,
    OffsetsOp,
    OutputOp,
    PairIndexOp,
    PartOp,
    SizeOp,
    SumSizesOp,
    TableOp,
    ViewOp,
    WitnessOp,
    known_domain,
)
from ...dialects.intra.steps import Step
from ...dialects.intra.syntax import (
    FLOATS,
    IntraOp,
    buffer_dims,
    buffer_type,
    element,
    row_dims,
    row_type,
)

INDEX = IndexType()


def fn_params(params: dict[str, float]) -> DictionaryAttr | None:
    """The parameters of a pointwise function as an attribute."""
    return DictionaryAttr({k: FloatAttr(v, f64) for k, v in params.items()}) if params else None


@dataclass
class Host:
    """The body of one phase: emits tables and buffers once, and steps in order."""

    env: SetEnv
    front: list[IntraOp] = field(default_factory=list[IntraOp])
    """What comes first of all, from the last to the first."""
    head: dict[IntraOp, None] = field(default_factory=dict[IntraOp, None])
    steps: list[Step] = field(default_factory=list[Step])
    tables: dict[object, SSAValue] = field(default_factory=dict[object, SSAValue])
    starts: dict[str, list[SSAValue]] = field(default_factory=dict[str, list[SSAValue]])
    """Of unions by label, where the parts behind the first begin."""

    def block(self) -> Block:
        """The finished body: tables and buffers, then the steps in order."""
        return Block([*reversed(self.front), *self.head, *self.steps])

    # ------------------------------------------------------------ domains

    def storage(self, dom: Dom) -> Dom:
        """Where the rows of a domain lie: one key is stored per row of its codomain."""
        if dom.set == UNIT:
            return ONE
        if len(dom.keys) == 1:
            return Dom(self.env.codomain(dom.set, dom.keys[0]))
        return dom

    @staticmethod
    def attribute(dom: Dom) -> DomainAttr | None:
        return None if dom.set == UNIT else DomainAttr.get(dom.set, dom.keys)

    # ------------------------------------------------------------ tables and buffers

    def once(self, key: object, op: IntraOp) -> SSAValue:
        """The result of a table op, emitted when first asked for."""
        if key not in self.tables:
            self.tables[key] = self.add(op)
        return self.tables[key]

    def size(self, dom: Dom) -> SSAValue:
        """The number of stored rows."""
        at = self.storage(dom)
        if ("size", at) not in self.tables:  # asked for each part of a union, for those before it
            self.tables["size", at] = self.add(SizeOp.make([], [INDEX], domain=self.attribute(at)))
        return self.tables["size", at]

    def index_map(self, dom: Dom, path: str) -> SSAValue:
        domain = DomainAttr.get(dom.set, dom.keys)
        op = IndexMapOp.make([], [INDEX32], domain=domain, path=StringAttr(path))
        return self.once(("map", dom, path), op)

    def pair_index(self, dom: Dom) -> SSAValue:
        domain = DomainAttr.get(dom.set, dom.keys)
        return self.once(("pair", dom), PairIndexOp.make([], [INDEX32], domain=domain))

    def witness(self, dom: Dom) -> SSAValue:
        """A row of the set for each stored row of `dom`."""
        domain = DomainAttr.get(dom.set)
        along = ArrayAttr(StringAttr(k) for k in dom.keys)
        op = WitnessOp.make([], [INDEX32], domain=domain, along=along)
        return self.once(("witness", dom), op)

    def group(self, dom: Dom, along: Sequence[str]) -> tuple[SSAValue, SSAValue]:
        """Offsets and members of the rows of `dom` grouped by `along`."""
        domain = DomainAttr.get(dom.set, dom.keys)
        keys = ArrayAttr(StringAttr(k) for k in along)
        offsets = OffsetsOp.make([], [INDEX64], domain=domain, along=keys)
        members = MembersOp.make([], [INDEX32], domain=domain, along=keys)
        return (
            self.once(("offsets", dom, *along), offsets),
            self.once(("members", dom, *along), members),
        )

    def member_map(self, dom: Dom, along: str) -> SSAValue:
        """The group of each row of `dom` in group order: ascending."""
        domain, path = DomainAttr.get(dom.set, dom.keys), StringAttr(along)
        op = MemberMapOp.make([], [INDEX32], domain=domain, along=ArrayAttr([path]), path=path)
        return self.once(("member map", dom, along), op)

    def input(self, name: str, t: RowsType, constant: Attribute | None = None) -> SSAValue:
        """Rows that the caller gives."""
        kind, domain = buffer_type(t.dims, t.elem), self.attribute(self.storage(t.dom))
        op = InputOp.make([], [kind], buffer=StringAttr(name), domain=domain, constant=constant)
        return self.once(("input", name), op)

    def buffer(self, dom: Dom, dims: Sequence[int], elem: Attribute) -> SSAValue:
        """A temporary over the stored rows of a domain."""
        domain = self.attribute(self.storage(dom))
        return self.add(AllocOp.make([], [buffer_type(dims, elem)], domain=domain))

    def output(self, name: str, dom: Dom, dims: Sequence[int], elem: Attribute) -> SSAValue:
        kind, domain = buffer_type(dims, elem), self.attribute(self.storage(dom))
        return self.add(OutputOp.make([], [kind], buffer=StringAttr(name), domain=domain))

    def view(self, buffer: SSAValue, dom: Dom, dims: Sequence[int]) -> SSAValue:
        """The same memory as rows of shape `dims` over `dom`."""
        domain = self.attribute(self.storage(dom))
        if tuple(dims) == buffer_dims(buffer) and known_domain(buffer) == (domain,):
            return buffer
        t = buffer_type(dims, element(buffer.type))
        return self.add(ViewOp.make([buffer], [t], domain=domain))

    def part(self, buffer: SSAValue, union: SetType, k: int) -> SSAValue:
        """The rows of the k-th part of a union."""
        return self.add(PartOp.make([buffer, self.start(union, k)], [buffer.type]))

    def start(self, union: SetType, k: int) -> SSAValue | None:
        """How many rows of a union are before its k-th part; None for the first. Each start is that
        of the part before and one size more: a union has hundreds of parts, of hundreds of
        relations.
        """
        found = self.starts.setdefault(union.label, [])
        sizes = [self.size(Dom(name)) for name in union.part_names[len(found) : k]]
        for n in sizes:
            found.append(self.add(SumSizesOp.make([found[-1], n], [INDEX])) if found else n)
        return found[k - 1] if k else None

    def move_first(self, buffer: SSAValue, view: IntraOp | None) -> None:
        """Put a buffer, and a new view of it, in front of the views that were made of the one it
        replaces."""
        assert isinstance(op := buffer.owner, IntraOp)
        del self.head[op]
        self.front += [op] if view is None else [view, op]

    def table(self, numbers: NDArray[Any], dims: Sequence[int], elem: Attribute) -> SSAValue:
        """A literal row."""
        key = ("table", numbers.tobytes(), tuple(dims), elem)
        value = ArrayAttr(FloatAttr(float(x), f64) for x in numbers.reshape(-1).tolist())
        return self.once(key, TableOp.make([], [buffer_type(dims, elem)], value=value))

    def add(self, op: IntraOp) -> SSAValue:
        self.head[op] = None
        return op.results[0]

    # ------------------------------------------------------------ nests

    def nest(self, dom: Dom) -> Nest:
        """Open a nest over the stored rows of `dom`; it is complete when the caller is done with
        it.
        """
        body = Block(arg_types=[INDEX])
        self.steps.append(rows.TraverseOp.build_op(self.size(dom), body))
        return Nest(self, dom, body)

    def grouped_nest(self, dom: Dom, key: str) -> tuple[Nest, SSAValue]:
        """A nest that visits the stored rows of `dom` group by group, with the row that `key` leads
        to: in their own order where that is one, else in the order of the groups' members.
        """
        nest = self.nest(dom)
        position = nest.row
        if dom.keys[:1] == (key,):
            return nest, nest.lookup(self.index_map(dom, key), position)
        _, members = self.group(dom, (key,))
        index = nest.lookup(self.member_map(dom, key), position)
        nest.row = nest.lookup(members, position)
        return nest, index


class Nest:
    """Emits row ops at the end of one block: the body of a nest, or of a segment in it."""

    def __init__(self, host: Host, dom: Dom, body: Block) -> None:
        self.host = host
        self.dom = dom
        self.row: SSAValue = body.args[0]
        self.builder = Builder(InsertPoint.at_end(body))

    def emit(self, op: IntraOp) -> SSAValue:
        self.builder.insert(op)
        return op.results[0]

    def do(self, op: Operation) -> None:
        """An op without a result."""
        self.builder.insert(op)

    # ------------------------------------------------------------ indices

    def first(self) -> SSAValue:
        return self.emit(rows.FirstOp.make([], [INDEX]))

    def lookup(self, table: SSAValue, row: SSAValue) -> SSAValue:
        return self.emit(rows.LookupOp.make([table, row], [INDEX]))

    def along(self, path: str, row: SSAValue | None = None) -> SSAValue:
        """Where `path`, from a row of this domain's set, leads.

        Raises:
            PassFailedException: some stored rows of the domain may have no row of the set.
        """
        env, dom = self.host.env, self.dom
        at = self.row if row is None else row
        if not dom.keys:
            return self.lookup(self.host.index_map(dom, path), at)
        for key in dom.keys:
            rest = env.determines(dom.set, key, path)
            if rest is None:
                continue
            if len(dom.keys) > 1:
                path = f"{key}.{rest}" if rest else key
                return self.lookup(self.host.index_map(dom, path), at)
            if not rest:
                return at
            return self.lookup(self.host.index_map(self.host.storage(dom), rest), at)
        return self.lookup(self.host.index_map(Dom(dom.set), path), self.set_row(at, path))

    def set_row(self, row: SSAValue, what: str) -> SSAValue:
        """A row of the set of which `row` is the stored row: all of them agree on `what`.

        Raises:
            PassFailedException: there may be none.
        """
        dom = self.dom
        if not dom.keys:
            return row
        if len(dom.keys) == 1 and "onto" not in self.host.env.flags(dom.set, dom.keys[0]):
            raise PassFailedException(
                f"lower-to-intra: {what} cannot be read at the rows of {dom}, which no row of "
                f"{dom.set} may have: declare the map onto"
            )
        return self.lookup(self.host.witness(dom), row)

    def index(self, value: Dom, row: SSAValue | None = None) -> SSAValue:
        """The stored row of a value on `value` that belongs to a row of this nest (or to `row` of
        its domain).
        """
        at = self.row if row is None else row
        if value == self.dom:
            return at
        if value.set == UNIT:
            return self.first()
        if len(value.keys) == 1:
            return self.along(value.keys[0], at)
        if value.keys:
            return self.lookup(self.host.pair_index(value), self.set_row(at, f"a value on {value}"))
        raise PassFailedException(
            f"lower-to-intra: a value on {value} cannot be read at the rows of {self.dom}"
        )

    # ------------------------------------------------------------ rows

    def load(self, buffer: SSAValue, row: SSAValue, otherwise: SSAValue | None = None) -> SSAValue:
        t = row_type(buffer_dims(buffer), element(buffer.type))
        return self.emit(rows.LoadOp.make([buffer, row, otherwise], [t]))

    def store(self, value: SSAValue, buffer: SSAValue) -> None:
        self.do(rows.StoreOp.make([value, buffer, self.row]))

    def total(self, value: SSAValue, buffer: SSAValue, kind: str) -> None:
        self.do(rows.TotalOp.make([value, buffer], kind=StringAttr(kind)))

    def const(self, value: float, elem: Attribute, dims: Sequence[int] = ()) -> SSAValue:
        number = FloatAttr(float(value), f64) if elem in FLOATS else IntegerAttr(int(value), i64)
        return self.emit(rows.ConstOp.make([], [row_type(dims, elem)], value=number))

    def apply(
        self,
        fn: str,
        *xs: SSAValue,
        elem: Attribute | None = None,
        params: DictionaryAttr | None = None,
    ) -> SSAValue:
        """A pointwise function; `elem` is the result's element type, the last operand's by
        default.
        """
        dims = rows.broadcast_dims([row_dims(x.type) for x in xs])
        t = row_type(dims, elem or element(xs[-1].type))
        return self.emit(rows.ApplyOp.make(xs, [t], fn=StringAttr(fn), params=params))

    def cast(self, x: SSAValue, elem: Attribute) -> SSAValue:
        if element(x.type) == elem:
            return x
        return self.emit(rows.CastOp.make([x], [row_type(row_dims(x.type), elem)]))

    def reshape(self, x: SSAValue, dims: Sequence[int]) -> SSAValue:
        if row_dims(x.type) == tuple(dims):
            return x
        return self.emit(rows.ReshapeOp.make([x], [row_type(dims, element(x.type))]))

    def transpose(self, x: SSAValue, perm: Sequence[int]) -> SSAValue:
        if list(perm) == list(range(len(perm))):
            return x
        dims = row_dims(x.type)
        t = row_type([dims[p] for p in perm], element(x.type))
        return self.emit(rows.TransposeOp.make([x], [t], perm=ArrayAttr(IntAttr(p) for p in perm)))

    def dot(self, spec: str, a: SSAValue, b: SSAValue) -> SSAValue:
        left, right = spec.split("->")[0].split(",")
        size = dict(zip(left, row_dims(a.type), strict=True)) | dict(
            zip(right, row_dims(b.type), strict=True)
        )
        t = row_type([size[c] for c in spec.split("->")[1]], element(a.type))
        return self.emit(rows.DotOp.make([a, b], [t], spec=StringAttr(spec)))

    # ------------------------------------------------------------ segments

    def segment(self, over: Dom, along: Sequence[str], group: SSAValue | None = None) -> Segment:
        """Open a loop over the rows of `over` in this nest's group; close it with
        `Segment.reduce`.
        """
        offsets, members = self.host.group(over, along)
        return Segment(self, over, offsets, members, self.row if group is None else group)


class Segment(Nest):
    """The body of a segment: `row` is the stored row of the domain that is reduced."""

    def __init__(
        self, outer: Nest, over: Dom, offsets: SSAValue, members: SSAValue, group: SSAValue
    ) -> None:
        body = Block(arg_types=[INDEX])
        super().__init__(outer.host, over, body)
        self.outer = outer
        self.body = body
        self.offsets = offsets
        self.group = group
        self.position = body.args[0]
        self.row = self.lookup(members, self.position)

    def reduce(self, values: Sequence[SSAValue], kinds: Sequence[str]) -> list[SSAValue]:
        """Close the loop; the reduced rows."""
        self.do(rows.YieldOp.make(values))
        op = rows.SegmentOp.build_op(
            self.offsets, self.group, kinds, [v.type for v in values], self.body
        )
        self.outer.builder.insert(op)
        return list(op.results)
