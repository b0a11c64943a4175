"""What the kernels of a nest do on a GPU beyond what its IR says: launches, blocks, sums that
blocks hand on, matrices that every tile of rows reads again.

`codegen/cuda/kernel_code.py` prints a nest as up to four kernels. Nests must have grids.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from xdsl.ir import SSAValue

from ..codegen.common.host import nest_arguments
from ..codegen.cuda.kernel_code import KernelCode
from ..codegen.cuda.tiles import far_numbers
from ..dialects.intra import bindings, rows
from ..dialects.intra.schedule import GridAttr
from ..dialects.intra.syntax import element, element_bytes, row_bytes
from . import work


class GridSizes(work.Sizes, Protocol):
    """The sizes of one graph, with how its long groups are cut."""

    def pieces(
        self, set_name: str, keys: tuple[str, ...], along: tuple[str, ...], piece: int
    ) -> int:
        """Pieces of all groups of more than two times `piece` rows."""
        ...


@dataclass(frozen=True)
class GridWork:
    """`launches` of kernels, the largest with so many `blocks`; `handed_on` is bytes of partial
    results that are written and read again, `reread` bytes that tiles read again from the L2."""

    launches: int
    blocks: int
    handed_on: float
    reread: float


def grid_work_of(nest: rows.TraverseOp, sizes: GridSizes) -> GridWork:
    """What a nest does on a GPU.

    Raises:
        PassFailedException: it has no grid.
    """
    names = {v: f"v{k}" for k, v in enumerate(nest_arguments(nest))}
    code = KernelCode(nest, names)
    kernels = code.run()
    assert isinstance(nest.schedule, GridAttr)
    count = work.rows_of(nest, sizes)
    blocks = _blocks(nest, code, sizes, count)
    if not blocks:
        return GridWork(0, 0, 0, 0)
    tiles = blocks * math.ceil(count / blocks / nest.schedule.rows.data)
    cut, handed_on = 0, 0.0
    for op in code.in_pieces:
        parts = sizes.pieces(*_group(op.offsets), code.numbers["piece"])
        handed_on += 2.0 * parts * sum(map(row_bytes, op.results))
        cut += parts
    reread = 0.0
    for op in nest.walk():
        match op:
            case rows.OuterOp():
                size = work.row_bytes(op.buffer)
                handed_on += 2 * size * (blocks if op.index is None else 2 * blocks)
                number = element_bytes(element(op.a.type))
                far = far_numbers(number, nest.schedule.threads.data, size // number)
                reread += 2 * tiles * far * number
            case rows.TotalOp():
                handed_on += 2 * blocks * row_bytes(op.value)
            case rows.MatmulOp():
                groups = 0 if op.index is None else _matrices(op, sizes)
                reread += (tiles + groups) * work.row_bytes(op.weight)
            case _:
                pass
    launches = sum(kernel.suffix != "_pieces" or cut > 0 for kernel in kernels)
    return GridWork(launches, blocks, handed_on, reread)


def _blocks(nest: rows.TraverseOp, code: KernelCode, sizes: GridSizes, count: int) -> int:
    """Blocks of the nest itself, as the host counts them (codegen/cuda/launch.h)."""
    numbers = code.numbers
    if code.offsets is None:
        cost = count * max(numbers["row_cost"], 1)
    else:
        cost = sizes.members(*_group(code.offsets)) + count * numbers["row_cost"]
    return min(-(-cost // numbers["grain"]), numbers["chunks"], count)


def _group(offsets: SSAValue) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    op = offsets.owner
    assert isinstance(op, bindings.OffsetsOp)
    return op.domain.set_name.data, op.domain.key_names, op.along_paths


def _matrices(op: rows.MatmulOp, sizes: GridSizes) -> int:
    """How many matrices a product by group has."""
    found = bindings.known_domain(op.weight)
    if found is None or found[0] is None:
        return 1
    return sizes.rows(found[0].set_name.data, found[0].key_names)
