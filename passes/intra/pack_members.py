"""pack-members: inputs that segments read at the members of their groups are laid in that order.

The entries of a sparse matrix, or the weights of edges, lie in one order, that of the user. A
segment over another one, the columns of a matrix that is in the order of its rows, reads them
through the table of members: a cache line for each number, and the table itself. Inputs that are
`constant` are laid in the order of the groups once, by @prepare, and stream from there. So is what
@prepare computes, where that reads `constant` inputs: it is done for many calls then. Rows of
`line` bytes and more stay where they are, for they fill the lines that are read.

Before: `%e = lookup %members[%p]; load %x[%e]`. After: `load %x_by_col[%p]`, an input `along` col.

Comes behind fuse-traversals, which sees who reads the same members.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue, TypeAttribute
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.inter.sets import SetEnv
from ...dialects.inter.types import Dom, RowsType
from ...dialects.intra.bindings import (
    BindingOp,
    InputOp,
    MembersOp,
    MemoryOp,
    NamedBuffer,
    OutputOp,
)
from ...dialects.intra.rows import LoadOp, LookupOp, SegmentOp, nests
from ...dialects.intra.steps import phases
from ...dialects.intra.syntax import buffer_dims, element, element_bytes
from ...dialects.signature import Names, return_of
from ..dead_ops import erase_dead
from ..lowering.nests import Host
from .cut_stages import uncut

STRUCTURE, PREPARE = "structure", "prepare"
LINE = 64
"""Bytes that are read of memory at least."""


class Read(NamedTuple):
    """A row of an input that a segment reads at a member of its group."""

    load: LoadOp
    input: InputOp
    members: MembersOp
    segment: SegmentOp

    @property
    def dom(self) -> Dom:
        """The rows that are read."""
        domain = self.members.domain
        return Dom(domain.set_name.data, domain.key_names)

    @property
    def order(self) -> Hashable:
        """What is read, in the order of which groups."""
        return self.input.buffer, self.members.domain, self.members.along


class Laid(NamedTuple):
    """An input in order: one of its reads, and its name."""

    read: Read
    name: str


@dataclass(frozen=True)
class PackMembersPass(ModulePass):
    """Lays constant inputs in the order in which segments read them."""

    name = "pack-members"

    line: int = LINE

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {f.sym_name.data: f for f in op.body.block.ops if isinstance(f, FuncOp)}
        if not {STRUCTURE, PREPARE} <= set(functions):
            return  # nothing is kept from call to call
        later = [f for f in phases(op) if f.sym_name.data != PREPARE]
        names = Names(b.buffer.data for b in op.walk() if isinstance(b, NamedBuffer))
        packed = Packed(SetEnv.of(functions[STRUCTURE]), Prepared(functions[PREPARE]), names)
        for func in later:
            uncut(func, self.name)
            for read in list(packed.reads(func, self.line)):
                packed.redirect(read, func)
            erase_dead(func.body.block)
        packed.lay()


class Prepared:
    """@prepare, and what it gives that is kept for many calls, by name."""

    def __init__(self, func: FuncOp) -> None:
        self.func = func
        ops = list(func.body.block.ops)
        kept = any(isinstance(op, InputOp) and op.constant is not None for op in ops)
        outputs = [op for op in ops if isinstance(op, OutputOp)]
        self.given = {op.buffer.data: op for op in outputs if kept}

    def add(self, host: Host) -> None:
        """Adds what was built, behind what is there."""
        block = self.func.body.block
        bindings = [op for op in block.ops if isinstance(op, BindingOp | MemoryOp)]
        Rewriter.insert_op(list(host.head), InsertPoint.at_start(block))
        for op in reversed(bindings):  # nests may read them
            op.detach()
            Rewriter.insert_op(op, InsertPoint.at_start(block))
        Rewriter.insert_op(host.steps, InsertPoint.before(return_of(self.func)))
        erase_dead(self.func.body.block)


@dataclass
class Packed:
    """The inputs that are laid in order, each once for each order."""

    env: SetEnv
    prepared: Prepared
    names: Names
    known: dict[Hashable, Laid] = field(default_factory=dict[Hashable, Laid])

    def reads(self, func: FuncOp, line: int) -> Iterator[Read]:
        """The reads of a phase that are better made in order."""
        for op in (op for nest in nests(func) for op in nest.walk()):
            read = read_of(op) if isinstance(op, LoadOp) else None
            if read is not None and self.stays(read.input) and self.is_whole(read):
                if row_bytes(read.input) < line:
                    yield read

    def stays(self, given: InputOp) -> bool:
        """Whether an input is the same for many calls."""
        return given.constant is not None or given.buffer.data in self.prepared.given

    def is_whole(self, read: Read) -> bool:
        """Whether every row is a member of a group: a partial map leaves rows out."""
        return not any(
            "partial" in self.env.flags(read.dom.set, k) for k in read.members.along_paths
        )

    def redirect(self, read: Read, func: FuncOp) -> None:
        """Lets a segment read at its position."""
        by = "_".join(read.members.along_paths).replace(".", "_")
        if read.order not in self.known:
            name = self.names.fresh(f"{read.input.buffer.data}_by_{by}")
            self.known[read.order] = Laid(read, name)
        given = InputOp.make(
            [],
            [read.input.result.type],
            buffer=StringAttr(self.known[read.order].name),
            domain=read.members.domain,
            along=read.members.along,
        )
        Rewriter.insert_op(given, InsertPoint.at_start(func.body.block))
        at = LoadOp.make([given.result, read.segment.position, None], [read.load.result.type])
        Rewriter.replace_op(read.load, at)

    def lay(self) -> None:
        """Adds nests over positions to @prepare, which store what is known so far."""
        host = Host(self.env)
        for read, name in self.known.values():
            dims, elem = buffer_dims(read.input.result), element(read.input.result.type)
            assert isinstance(elem, TypeAttribute)
            nest = host.nest(read.dom)
            _, members = host.group(read.dom, read.members.along_paths)
            row = nest.load(
                self._source(host, read.input, RowsType.get(read.dom, dims, elem)),
                nest.lookup(members, nest.row),
            )
            nest.store(row, host.output(name, read.dom, dims, elem))
        self.prepared.add(host)

    def _source(self, host: Host, given: InputOp, t: RowsType) -> SSAValue:
        """Where @prepare has an input of a later phase."""
        own = self.prepared.given.get(given.buffer.data)
        return host.input(given.buffer.data, t, given.constant) if own is None else own.result


def read_of(op: LoadOp) -> Read | None:
    """What a load reads, if that is an input at a member of a segment's group."""
    given, found = op.buffer.owner, op.row.owner
    if not isinstance(given, InputOp) or op.otherwise is not None:
        return None
    if not isinstance(found, LookupOp) or not isinstance(found.row.owner, Block):
        return None
    members, loop = found.table.owner, found.row.owner.parent_op()
    if not isinstance(members, MembersOp) or not isinstance(loop, SegmentOp):
        return None
    return Read(op, given, members, loop) if given.domain == members.domain else None


def row_bytes(given: InputOp) -> int:
    """The memory that a row takes."""
    return math.prod(buffer_dims(given.result)) * element_bytes(element(given.result.type))
