"""How many bytes a kernel must move and how many operations it must do, from its IR.

Bytes: rows of the nest's own domain once, whether read or written; rows found through a table once
for each look-up (each edge), with their width, as if nothing stayed in a cache between two
look-ups; each table entry once; matrices and totals once. What a nest keeps to itself (block-local
rows, partial sums) counts nothing.

Operations: a product of a row with a matrix, an outer product and a dot are two for each
multiplication; a pointwise function, whichever, is one for each number it gives; a reduction one
for each number that goes in. Heavy functions are counted beside that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from ..dialects.intra import bindings, rows
from ..dialects.intra.syntax import buffer_dims, element, element_bytes, inside, length
from ..dialects.pointwise import POINTWISE

INDEX_BYTES, OFFSET_BYTES = 4, 8


class Sizes(Protocol):
    """The sizes of one graph; `keys` and `along` are those of the binding ops."""

    def rows(self, set_name: str, keys: tuple[str, ...]) -> int:
        """Stored rows of a domain."""
        ...

    def groups(self, set_name: str, keys: tuple[str, ...], along: tuple[str, ...]) -> int:
        """Groups of a domain's rows along paths."""
        ...

    def members(self, set_name: str, keys: tuple[str, ...], along: tuple[str, ...]) -> int:
        """Rows in all these groups together."""
        ...


@dataclass(frozen=True)
class Access:
    """What a kernel reads or writes at one place of its nest: `moved` bytes in all, in rows of
    `row` bytes, of a buffer that takes `whole` bytes. Rows that are `gathered` are found through a
    table, the others lie in order."""

    moved: float
    row: int
    whole: float
    gathered: bool


@dataclass(frozen=True)
class Work:
    """What one call of a kernel takes.

    `moved` is bytes read and written, `operations` are floating-point ones, and `touched` is how
    many bytes all buffers take that the kernel reads or writes anything of: its working set. Of the
    bytes moved `gathers` has those of rows found through tables: so many, in rows of so many bytes,
    of a buffer of so many. Of the operations `functions` are exponentials and the like, which take
    more than one.
    """

    moved: float
    operations: float
    touched: float
    gathers: tuple[tuple[float, int, float], ...] = ()
    functions: float = 0


def work_of_phase(func: FuncOp, sizes: Sizes) -> list[Work]:
    """The work of each nest of a phase, in the order of its kernels."""
    return [work_of(nest, sizes) for nest in rows.nests(func)]


def work_of(nest: rows.TraverseOp, sizes: Sizes) -> Work:
    """The work of one nest."""
    counter = _counted(nest, sizes)
    working_set = sum(map(counter.whole, counter.buffers))
    moved = sum(a.moved for a in counter.accesses.values())
    gathers = [(a.moved, a.row, a.whole) for a in counter.accesses.values() if a.gathered]
    return Work(moved, counter.operations, working_set, tuple(gathers), counter.functions)


def accesses_of(nest: rows.TraverseOp, sizes: Sizes) -> tuple[list[Access], float]:
    """The bytes of one nest, place by place, and its operations."""
    counter = _counted(nest, sizes)
    return list(counter.accesses.values()), counter.operations


def rows_of(nest: rows.TraverseOp, sizes: Sizes) -> int:
    """How many rows a nest has."""
    return _Counter(nest, sizes).size(nest.size)


def _counted(nest: rows.TraverseOp, sizes: Sizes) -> _Counter:
    counter = _Counter(nest, sizes)
    for op in nest.walk():
        counter.count(op)
    return counter


@dataclass
class _Counter:
    """Counts one nest; what is read twice at the same place is counted once."""

    nest: rows.TraverseOp
    sizes: Sizes
    accesses: dict[object, Access] = field(default_factory=dict[object, Access])
    operations: float = 0
    functions: float = 0
    buffers: set[SSAValue] = field(default_factory=set[SSAValue])

    # ------------------------------------------------------------ how often

    def size(self, v: SSAValue) -> int:
        """A size that the host knows."""
        op = v.owner
        if isinstance(op, bindings.SumSizesOp):
            return self.size(op.left) + self.size(op.right)
        if isinstance(op, bindings.PiecesOp):
            return op.count.data
        assert isinstance(op, bindings.SizeOp)
        return self.domain_rows(op.domain)

    def domain_rows(self, domain: bindings.DomainAttr | None) -> int:
        return 1 if domain is None else self.sizes.rows(domain.set_name.data, domain.key_names)

    def times(self, index: SSAValue) -> float:
        """How many values an index takes in the whole nest."""
        if isinstance(index, BlockArgument):
            loop = index.block.parent_op()
            return self.positions(loop) if isinstance(loop, rows.SegmentOp) else self.all_rows()
        assert isinstance(index, OpResult)
        if isinstance(index.op, rows.LookupOp):
            return self.times(index.op.row)
        return 1

    def all_rows(self) -> float:
        return self.size(self.nest.size)

    def positions(self, segment: rows.SegmentOp) -> float:
        """How many rows the segment reduces in all; for groups that are looked up, as many as if
        each were of the mean length."""
        members, groups = self.group_sizes(segment.offsets)
        return members * self.times(segment.row) / max(groups, 1)

    def group_sizes(self, offsets: SSAValue) -> tuple[int, int]:
        """(rows in all groups, groups)"""
        op = offsets.owner
        assert isinstance(op, bindings.OffsetsOp)
        group = (op.domain.set_name.data, op.domain.key_names, op.along_paths)
        return self.sizes.members(*group), self.sizes.groups(*group)

    def runs(self, op: Operation) -> float:
        """How often an op in the nest's body, or in a segment's, is done."""
        segment = inside(op, rows.SegmentOp)
        return self.positions(segment) if isinstance(segment, rows.SegmentOp) else self.all_rows()

    # ------------------------------------------------------------ what an op takes

    def count(self, op: Operation) -> None:
        """Adds one op."""
        match op:
            case rows.LoadOp() | rows.StoreOp():
                self.move(op.buffer, op.row, self.times(op.row), row_bytes(op.buffer))
            case rows.LookupOp():
                self.move(op.table, op.row, self.times(op.row), INDEX_BYTES)
            case rows.SegmentOp():
                self.count_offsets(op.offsets, op.row)
                kinds = zip(op.kinds, op.results, strict=True)
                numbers = sum(length(r) for k, r in kinds if k.data != "last")
                self.operations += self.positions(op) * numbers
            case rows.LengthOp():
                self.count_offsets(op.offsets, op.row)
            case rows.MatmulOp() | rows.OuterOp():
                self.move_whole(op.weight if isinstance(op, rows.MatmulOp) else op.buffer)
                self.operations += self.runs(op) * 2 * math.prod(op.sizes().values())
            case rows.TotalOp():
                self.move_whole(op.buffer)
                self.operations += self.runs(op) * length(op.value)
            case rows.DotOp():
                self.operations += self.runs(op) * 2 * math.prod(op.sizes().values())
            case rows.FoldOp():
                self.operations += self.runs(op) * length(op.x)
            case rows.ApplyOp() | rows.DropoutOp():
                numbers = self.runs(op) * length(op.result)
                self.operations += numbers
                if isinstance(op, rows.ApplyOp) and POINTWISE[op.fn.data].heavy:
                    self.functions += numbers
            case _:
                pass

    def count_offsets(self, offsets: SSAValue, row: SSAValue) -> None:
        self.move(offsets, row, self.times(row) + 1, OFFSET_BYTES)

    def move(self, buffer: SSAValue, index: SSAValue, count: float, row: int) -> None:
        """`count` rows of so many bytes, at an index."""
        gathered = isinstance(index, OpResult) and isinstance(index.op, rows.LookupOp)
        of = bindings.root(buffer)
        place = (buffer, self.place(index))
        self.accesses[place] = Access(count * row, row, self.whole(of), gathered)
        self.buffers.add(of)

    def move_whole(self, buffer: SSAValue) -> None:
        """A matrix, a total: each of its rows once, however many rows of the nest use it."""
        of = bindings.root(buffer)
        size = self.whole(of)
        self.accesses[buffer] = Access(size, row_bytes(buffer), size, False)
        self.buffers.add(of)

    def place(self, index: SSAValue) -> object:
        """The same for indices that are the same number in every row."""
        if isinstance(index, OpResult) and isinstance(index.op, rows.LookupOp):
            return index.op.table, self.place(index.op.row)
        if isinstance(index, OpResult) and isinstance(index.op, rows.FirstOp):
            return "first"
        return index

    # ------------------------------------------------------------ working set

    def whole(self, buffer: SSAValue) -> float:
        """The bytes that a buffer or table takes as a whole."""
        op = buffer.owner
        match op:
            case bindings.OffsetsOp() | bindings.WitnessOp():
                group = (op.domain.set_name.data, op.domain.key_names, op.along_paths)
                groups = self.sizes.groups(*group)
                offsets = isinstance(op, bindings.OffsetsOp)
                return (groups + 1) * OFFSET_BYTES if offsets else groups * INDEX_BYTES
            case bindings.GroupOp():
                group = (op.domain.set_name.data, op.domain.key_names, op.along_paths)
                return self.sizes.members(*group) * INDEX_BYTES
            case bindings.PairIndexOp():
                return self.sizes.rows(op.domain.set_name.data, ()) * INDEX_BYTES
            case bindings.TableOfDomain():
                return self.domain_rows(op.domain) * INDEX_BYTES
            case bindings.NamedBuffer() | bindings.AllocOp():
                return self.domain_rows(op.domain) * row_bytes(buffer)
            case _:
                return row_bytes(buffer)


def row_bytes(buffer: SSAValue) -> int:
    """The memory that one row of a buffer takes."""
    return element_bytes(element(buffer.type)) * math.prod(buffer_dims(buffer))
