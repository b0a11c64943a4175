"""How many registers a nest takes of a GPU's threads: an estimate, fitted to what ptxas gave the
kernels of real models (tests/codegen/cuda/test_registers.py).
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from ...dialects.intra.rows import MatmulOp, OuterOp, SegmentOp, TotalOp, TraverseOp
from ...dialects.intra.syntax import element, element_bytes, length

FILE = 65536
"""Registers of a multiprocessor, 4 bytes each."""
MOST = 255
"""Of a thread."""
HELD_SUMS = 192
"""Bytes of one sum of outer products that a thread holds, at most (codegen/cuda/tiles.py)."""
HELD_TILES = 8
"""Tiles of a row that a thread holds, at most (codegen/cuda/team.py)."""
BASE, GATHERS, PRODUCTS, TOTALS = 48, 12, 20, 4
"""What addresses, loops and pointwise ops take, and what each loop over a group, each product and
each total take beside them."""


def estimate(nest: TraverseOp, threads: int, lanes: int) -> int:
    """Registers of a thread of a nest, of which each row is computed by `lanes` of `threads`."""
    ops = list(nest.body.block.ops)
    segments = [op for op in nest.walk() if isinstance(op, SegmentOp)]
    totals = [op for op in nest.walk() if isinstance(op, TotalOp)]
    products = [op for op in ops if isinstance(op, MatmulOp | OuterOp)]
    taken = BASE + GATHERS * len(segments) + PRODUCTS * len(products) + TOTALS * len(totals)
    taken += sum(of_outer(op, threads) for op in ops if isinstance(op, OuterOp))
    taken += sum(of_row(op.value, lanes) for op in totals)
    return taken + sum(of_row(r, lanes) for op in segments for r in op.results)


def of_outer(op: OuterOp, threads: int) -> int:
    """What a thread holds of a sum of outer products; none where it lies in memory."""
    n, size = op.sizes(), element_bytes(element(op.a.type))
    each = -(-n["b"] * n["k"] * n["f"] // threads) * size
    return 0 if each > HELD_SUMS else each // 4


def of_row(v: SSAValue, lanes: int) -> int:
    """What a lane holds of a row that lanes share."""
    size = element_bytes(element(v.type))
    vector = 16 // size
    each = -(-length(v) // lanes)
    return 0 if each > HELD_TILES * vector else each * max(size // 4, 1)
