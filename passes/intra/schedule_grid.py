"""schedule-grid: how each nest is laid on the blocks and threads of a GPU.

Attaches `{schedule = #intra.grid<..>}` to every nest: as many lanes compute a row as its longest
row has vectors of 16 bytes, a whole block where that is more than a warp holds in registers or
where there is a single row; `rows` of them go through the stages together, as many as shared
memory holds. Where a thread holds more sums than the registers of two blocks a multiprocessor
leave it, one block has them. The numbers depend on widths only, never on a graph or a device, so
that one program gives the same bits on all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, VectorType
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from ...dialects.intra.bindings import SizeOp
from ...dialects.intra.remote import is_remote
from ...dialects.intra.rows import AwaitOp, LoadOp, MatmulOp, OuterOp, SegmentOp, TraverseOp
from ...dialects.intra.schedule import WARP, GridAttr
from ...dialects.intra.steps import phases
from ...dialects.intra.syntax import length, row_bytes
from ..targets import Target, target_of
from .cut_stages import uncut
from .registers import FILE, MOST, estimate
from .schedule import most_chunks, partial_bytes, products

WIDE = 128
"""Numbers of a row that are as much work as an edge of another."""
REGISTERS = 8
"""Vectors that a lane holds of a row."""


@dataclass(frozen=True)
class ScheduleGridPass(ModulePass):
    """Decide threads, lanes and tiles of every nest for a GPU."""

    name = "schedule-grid"

    target: str = "cuda"
    threads: int = 256
    lanes: int = 0
    rows: int = 64
    grain: int = 2048
    chunks: int = 1056
    row_cost: int = 4
    piece: int = 128
    edges: int = 4
    resident: int = 2

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(self.name, self.target)
        if self.threads % WARP or not WARP <= self.threads <= 1024:
            raise PassFailedException(
                f"schedule-grid: threads is 32, 64, .. 1024, not {self.threads}"
            )
        if self.lanes not in (0, 1, 2, 4, 8, 16, 32):
            raise PassFailedException(
                f"schedule-grid: lanes is 1, 2, 4, .. 32, or 0 for what rows need, not {self.lanes}"
            )
        for name in ("rows", "grain", "chunks", "piece", "edges", "resident"):
            if not 1 <= getattr(self, name) < 2**31:
                raise PassFailedException(
                    f"schedule-grid: {name} is 1 or more, not {getattr(self, name)}"
                )
        for func in phases(op):
            for nest in uncut(func, self.name):
                nest.properties["schedule"] = self.of(nest, target)

    def of(self, nest: TraverseOp, target: Target) -> GridAttr:
        """The schedule of one nest."""
        single = isinstance(nest.size.owner, SizeOp) and nest.size.owner.domain is None
        vectors = longest_row(nest) // (target.vector_bytes // 4)
        threads = self.threads
        if single:
            threads = min(threads, max(WARP, power_of_two(vectors)))
        whole = single or vectors > WARP * REGISTERS
        lanes = threads if whole else min(self.lanes or power_of_two(vectors), WARP)
        needed = estimate(nest, threads, lanes)  # what has no register goes to memory, in each turn
        return GridAttr.of(
            threads=threads,
            lanes=lanes,
            rows=self.tile_rows(nest, threads // lanes, target),
            grain=self.grain,
            chunks=most_chunks(partial_bytes(nest), self.chunks, target),
            row_cost=self.row_cost + products(nest) // 512 + longest_row(nest) // WIDE,
            piece=self.piece,
            edges=self.edges if needed <= MOST else 1,
            resident=max(1, min(self.resident, FILE // (needed * threads))),
        )

    def tile_rows(self, nest: TraverseOp, teams: int, target: Target) -> int:
        """As many rows as shared memory holds, at most `rows`; without products, one a team."""
        per_row = tile_bytes(nest)
        if not has_products(nest):
            return teams
        rows = self.rows
        while rows > 1 and rows * per_row > target.caches.block:
            rows //= 2
        return rows


def power_of_two(n: int) -> int:
    """The least power of two that is `n` or more; 1 for 0."""
    return 1 << max(n - 1, 0).bit_length()


def longest_row(nest: TraverseOp) -> int:
    """Numbers of the longest row that lanes share: what is loaded, reduced or stored, but for the
    matrices of products, and rows that only products read, where they lie."""
    found = [1]
    for op in nest.walk():
        values: list[SSAValue] = []
        if isinstance(op, SegmentOp):
            values = list(op.results)
        elif isinstance(op, AwaitOp):
            values = [op.result]
        elif isinstance(op, LoadOp) and not (op.row is nest.row and only_for_products(op)):
            values = [op.result]
        elif not isinstance(op, LoadOp | MatmulOp | OuterOp):
            values = [x for x in op.operands if isinstance(x.type, VectorType)]
        found += map(length, values)
    return max(found)


def only_for_products(op: LoadOp) -> bool:
    """Whether products alone read a row."""
    return all(isinstance(use.operation, MatmulOp | OuterOp) for use in op.result.uses)


def has_products(nest: TraverseOp) -> bool:
    """Whether the nest is more than one stage of row-wise ops."""
    return any(isinstance(op, MatmulOp | OuterOp) for op in nest.body.block.ops)


def tile_bytes(nest: TraverseOp) -> int:
    """What a row takes in the tiles of a block: what products read and make, but for rows that they
    read where they lie."""
    local: dict[SSAValue, int] = {}
    for op in nest.body.block.ops:
        if isinstance(op, MatmulOp):
            values = (op.x, op.result)
        elif isinstance(op, OuterOp):
            values = (op.a, op.b)
        else:
            continue
        for v in values:
            lies = isinstance(v.owner, LoadOp) and v.owner.row is nest.row
            remote = isinstance(v.owner, LoadOp) and is_remote(v.owner.buffer)
            local[v] = 0 if lies and not remote else row_bytes(v)
    return sum(local.values())
