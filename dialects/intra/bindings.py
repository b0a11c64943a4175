"""Host-level ops of `intra`: which buffers and index tables a phase reads, writes and allocates.

A phase is a `func.func` without arguments; what the caller supplies is named by these ops, so a
table that no kernel reads any more disappears with dead-code elimination.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    FloatAttr,
    IndexType,
    IntAttr,
    MemRefType,
    StringAttr,
    UnitAttr,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue
from xdsl.irdl import (
    irdl_attr_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..assembly import RESULT, TYPED, op_definition
from ..inter.ranks import ALL_REDUCED
from .syntax import IntraOp, buffer_dims, element, need, need_buffer

INDEX32 = MemRefType(i32, (DYNAMIC_INDEX,))
INDEX64 = MemRefType(i64, (DYNAMIC_INDEX,))


@irdl_attr_definition
class DomainAttr(ParametrizedAttribute):
    """`#intra.domain<g[rel, src]>`: the stored rows of `inter.rows<g[rel, src], ..>`."""

    name = "intra.domain"
    set_name: StringAttr
    keys: ArrayAttr[StringAttr]

    @staticmethod
    def get(set_name: str, keys: Sequence[str] = ()) -> DomainAttr:
        return DomainAttr(StringAttr(set_name), ArrayAttr(StringAttr(k) for k in keys))

    @property
    def key_names(self) -> tuple[str, ...]:
        return tuple(k.data for k in self.keys)

    def __str__(self) -> str:
        keys = f"[{', '.join(self.key_names)}]" if self.keys.data else ""
        return f"{self.set_name.data}{keys}"

    def verify(self) -> None:
        keys = self.key_names
        if len(keys) == 1:
            raise VerifyException(
                f"the rows of {self} are those of the set that {keys[0]} leads to: name that set"
            )
        if len(set(keys)) != len(keys):
            raise VerifyException(f"a key of {self} is named twice: drop one")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            name = parser.parse_identifier(" for a set")
            keys = parser.parse_optional_comma_separated_list(
                parser.Delimiter.SQUARE, parser.parse_identifier
            )
        return StringAttr(name), ArrayAttr(StringAttr(k) for k in keys or ())

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<{self}>")


class BindingOp(IntraOp):
    """An op that names something the caller supplies."""

    traits = traits_def(Pure())
    assembly_format = RESULT


@op_definition
class SizeOp(BindingOp):
    """The number of stored rows of a domain (absent: 1, the single row)."""

    name = "intra.size"
    domain = opt_prop_def(DomainAttr)
    result = result_def(IndexType)


@op_definition
class PiecesOp(BindingOp):
    """The number of pieces that a single row is cut into."""

    name = "intra.pieces"
    count = prop_def(IntAttr)
    result = result_def(IndexType)

    def verify_(self) -> None:
        need(self.count.data > 0, "a row has one piece or more")


# ---------------------------------------------------------------- index tables


class TableOfDomain(BindingOp):
    """An index table of a domain."""

    TYPE: ClassVar[MemRefType[Attribute]] = INDEX32
    domain = prop_def(DomainAttr)
    result = result_def()

    def verify_(self) -> None:
        have = self.result.type
        need(have == self.TYPE, f"{self.name} gives {self.TYPE}, not {have}")


@op_definition
class IndexMapOp(TableOfDomain):
    """For every stored row of the domain, the row that `path` leads to.

    -1 where a partial map has no value.
    """

    name = "intra.index_map"
    path = prop_def(StringAttr)


@op_definition
class PairIndexOp(TableOfDomain):
    """For every row of the set, its stored row in a domain of several keys."""

    name = "intra.pair_index"

    def verify_(self) -> None:
        need(
            len(self.domain.keys) > 1,
            "a pair index needs a domain of several keys; one key is an index_map",
        )
        super().verify_()


class GroupOp(TableOfDomain):
    """Rows of the domain grouped by `along`: one path, or several (then by distinct tuples)."""

    along = prop_def(ArrayAttr[StringAttr])

    @property
    def along_paths(self) -> tuple[str, ...]:
        return tuple(k.data for k in self.along)

    def verify_(self) -> None:
        need(bool(self.along.data), 'name the paths to group by, as in `along = ["dst"]`')
        super().verify_()

    def same_group(self, other: GroupOp) -> bool:
        """Whether both are about the same groups of the same rows."""
        return self.domain == other.domain and self.along == other.along

    def group_text(self) -> str:
        """`g by dst`"""
        return f"{self.domain} by {', '.join(self.along_paths)}"


@op_definition
class OffsetsOp(GroupOp):
    """Where each group begins, one more than there are groups (int64)."""

    name = "intra.offsets"
    TYPE: ClassVar[MemRefType[Attribute]] = INDEX64


@op_definition
class MembersOp(GroupOp):
    """The rows of the domain in group order, in their own order inside a group."""

    name = "intra.members"


@op_definition
class MemberMapOp(GroupOp):
    """A map read at the members: `index_map(path)[members[p]]` as one table, so that it streams."""

    name = "intra.member_map"
    path = prop_def(StringAttr)


@op_definition
class MemberPairOp(GroupOp):
    """The pairs of the members: `pair_index(set[keys])[members[p]]` as one table, so that it
    streams.
    """

    name = "intra.member_pair"
    keys = prop_def(ArrayAttr[StringAttr])

    def verify_(self) -> None:
        super().verify_()
        need(len(self.keys) > 1, "pairs have several keys; one key is a member_map")
        need(not self.domain.keys.data, "members of pairs have no pairs of their own")


@op_definition
class WitnessOp(GroupOp):
    """One row of each group, its first; -1 where the group is empty."""

    name = "intra.witness"


# ---------------------------------------------------------------- buffers


class Lives(NamedTuple):
    """The steps of its phase from which to which a buffer is in use, both with it, by number."""

    first: int
    last: int


class Living(IntraOp):
    """Rows over the stored rows of `domain` (absent: one), in use from the step `first` to the step
    `last` of the phase (plan-memory; before it both are absent).
    """

    domain = opt_prop_def(DomainAttr)
    first = opt_prop_def(IntAttr)
    last = opt_prop_def(IntAttr)
    result = result_def(MemRefType)

    @property
    def lives(self) -> Lives | None:
        """When the buffer is in use; None where nobody has planned that."""
        if self.first is None or self.last is None:
            return None
        return Lives(self.first.data, self.last.data)

    @lives.setter
    def lives(self, lives: Lives) -> None:
        self.properties["first"] = IntAttr(lives.first)
        self.properties["last"] = IntAttr(lives.last)

    def verify_(self) -> None:
        need_buffer(self.result.type, "a buffer")
        need((self.first is None) == (self.last is None), "a life has a first step and a last one")
        if (lives := self.lives) is not None:
            need(0 <= lives.first <= lives.last, "a life ends where it begins, or at a later step")


class NamedBuffer(BindingOp, Living):
    """A buffer that the caller knows by name."""

    buffer = prop_def(StringAttr)


@op_definition
class InputOp(NamedBuffer):
    """Rows that the kernels read. With `gives` they are written as well: in the end they are the
    output of that name. `constant` ones stay as they are for many calls, so that @prepare may read
    them. With `along` they lie in the order of the members of these groups, and are read at
    positions of segments over the groups (pack-members)."""

    name = "intra.input"
    gives = opt_prop_def(StringAttr)
    constant = opt_prop_def(UnitAttr)
    along = opt_prop_def(ArrayAttr[StringAttr])

    def is_in_order_of(self, group: GroupOp) -> bool:
        """Whether the rows lie in the order of the members of these groups."""
        return self.domain == group.domain and self.along == group.along


@op_definition
class OutputOp(NamedBuffer):
    """Rows that the kernels write."""

    name = "intra.output"
    traits = traits_def()


@op_definition
class TableOp(BindingOp):
    """One literal row."""

    name = "intra.table"
    value = prop_def(ArrayAttr[FloatAttr])
    result = result_def(MemRefType)

    def verify_(self) -> None:
        need_buffer(self.result.type, "a buffer")
        n = math.prod(buffer_dims(self.result))
        need(len(self.value) == n, f"a row of {n} numbers needs as many, not {len(self.value)}")


class MemoryOp(IntraOp):
    """An op that names memory: no other one names the same."""

    traits = traits_def()
    assembly_format = RESULT


@op_definition
class AllocOp(MemoryOp, Living):
    """A temporary."""

    name = "intra.alloc"


class PeerOp(MemoryOp):
    """An op that names what other ranks publish."""

    def known_domain(self) -> tuple[DomainAttr | None] | None:
        """See the function of this name."""
        raise NotImplementedError(f"{self.name} says nothing of its rows: define known_domain")


@op_definition
class PartOp(BindingOp):
    """The rows of a buffer from `offset` (absent: 0) on: a part of a union, without a copy."""

    name = "intra.part"
    buffer = operand_def(MemRefType)
    offset = opt_operand_def(IndexType)
    result = result_def(MemRefType)
    assembly_format = f"$buffer (`,` $offset^)? {TYPED}"

    def verify_(self) -> None:
        need_whole_rows(self.buffer, "a part")
        need(
            self.result.type == self.buffer.type,
            f"a part has the type of its buffer, {self.buffer.type}, not {self.result.type}",
        )


@op_definition
class ViewOp(BindingOp):
    """The same memory with another row shape.

    `domain` is where the rows of the result lie. Where the number of rows changes (a single row
    `3x8` seen as 3 rows `8`, or back), the set that gets or had the rows must have that many; or
    they are as many `pieces` of the single row, and of no set.
    """

    name = "intra.view"
    buffer = operand_def(MemRefType)
    domain = opt_prop_def(DomainAttr)
    pieces = opt_prop_def(IntAttr)
    result = result_def(MemRefType)
    assembly_format = f"$buffer {TYPED}"

    def verify_(self) -> None:
        need_buffer(self.result.type, "a view")
        need_whole_rows(self.buffer, "a view")
        a, b = (math.prod(buffer_dims(v)) for v in (self.buffer, self.result))
        need(
            element(self.buffer.type) == element(self.result.type),
            "a view keeps the element type: store a cast into another buffer instead",
        )
        need(
            a % b == 0 or b % a == 0,
            f"rows of {a} numbers cannot be seen as rows of {b}: one must divide the other",
        )
        if self.pieces is not None:
            need(self.domain is None, "pieces of a single row are rows of no set: drop the domain")
            need(
                a == b * self.pieces.data,
                f"{self.pieces.data} pieces of {b} numbers are no row of {a}",
            )

    def required(self) -> tuple[DomainAttr, int] | None:
        """(a domain, how many rows it must have), None where the view asks nothing of the caller.

        A single row seen as the rows of a domain, or the other way round.
        """
        before = known_domain(self.buffer)
        a, b = (math.prod(buffer_dims(v)) for v in (self.buffer, self.result))
        if before == (None,) and self.domain is not None:
            return self.domain, a // b
        if before is not None and before[0] is not None and self.domain is None:
            return before[0], b // a
        return None


@op_definition
class ColumnsOp(BindingOp):
    """`intra.columns %all {first = 32}`: the numbers of each row of an allocation from `first` on,
    as many as a row of the result has. Their rows lie as far apart as those of the allocation."""

    name = "intra.columns"
    buffer = operand_def(MemRefType)
    first = prop_def(IntAttr)
    result = result_def(MemRefType)
    assembly_format = f"$buffer {TYPED}"

    def verify_(self) -> None:
        need_buffer(self.result.type, "what columns are called")
        need(
            isinstance(self.buffer.owner, AllocOp),
            "columns are those of an intra.alloc, which alone may lie between others",
        )
        need(
            element(self.buffer.type) == element(self.result.type),
            "columns keep the element type: store a cast into another buffer instead",
        )
        a, b = (math.prod(buffer_dims(v)) for v in (self.buffer, self.result))
        first = self.first.data
        need(
            0 <= first <= a - b,
            f"a row of {a} numbers has no {b} from number {first} on",
        )


@op_definition
class SumSizesOp(BindingOp):
    """The sum of sizes: where a part of a union begins."""

    name = "intra.sum_sizes"
    left = operand_def(IndexType)
    right = operand_def(IndexType)
    result = result_def(IndexType)
    assembly_format = f"$left `,` $right {TYPED}"


# ---------------------------------------------------------------- what a buffer is


def root(buffer: SSAValue) -> SSAValue:
    """The allocation, input or output that a view, part or columns belong to."""
    while isinstance(buffer.owner, ViewOp | PartOp | ColumnsOp):
        buffer = buffer.owner.buffer
    return buffer


def pitch(buffer: SSAValue) -> int:
    """Numbers from one row of a buffer to the next."""
    whole = buffer.owner.buffer if isinstance(buffer.owner, ColumnsOp) else buffer
    return math.prod(buffer_dims(whole))


def need_whole_rows(buffer: SSAValue, what: str) -> None:
    """Raises VerifyException for columns, of which there is no `what`."""
    need(
        not isinstance(buffer.owner, ColumnsOp),
        f"{what} is of whole rows: take the columns of what it is to be of",
    )


def known_domain(buffer: SSAValue) -> tuple[DomainAttr | None] | None:
    """(the domain of the rows,) of a buffer; None where it is not known here, as of a part."""
    op = buffer.owner
    if isinstance(op, ViewOp) and op.pieces is not None:
        return None
    if isinstance(op, ColumnsOp):
        return known_domain(op.buffer)
    if isinstance(op, NamedBuffer | AllocOp | ViewOp):
        return (op.domain,)
    if isinstance(op, PeerOp):
        return op.known_domain()
    return (None,) if isinstance(op, TableOp) else None


def need_reducible(kind: str, buffer: SSAValue) -> None:
    """Raises VerifyException where a buffer is not reduced so over ranks."""
    need(kind in ALL_REDUCED, f"kind {kind!r} is none of {', '.join(ALL_REDUCED)}")
    need(
        element(buffer.type) != i1,
        "truth values are not reduced: cast them to numbers first",
    )
    need(known_domain(buffer) is not None, "a reduction over ranks is of whole buffers")


def domain_text(domain: DomainAttr | None) -> str:
    """`g[rel, src]`, or `the single row`."""
    return "the single row" if domain is None else str(domain)
