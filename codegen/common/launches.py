"""What a kernel will do, for the launch record: the rows it runs over, and its products."""

from __future__ import annotations

from typing import Any

from ...dialects.intra import bindings, rows
from .host import domain_of


def describe_nest(kernel: str, nest: rows.TraverseOp) -> dict[str, Any]:
    """`kernel`, the `domain` of its rows (None: a single row), and `products`: `kind`, `spec`, and
    the `size` of each letter in the normal form of intra.matmul and intra.outer.

    A nest over several sets one after the other has no domain of its own and gives `domain: []`;
    one over pieces does a single row.
    """
    match nest.size.owner:
        case bindings.SizeOp(domain=over):
            domain = domain_of(over)
        case bindings.PiecesOp():
            domain = None
        case _:
            domain = []
    products = [
        {"kind": op.name.removeprefix("intra."), "spec": op.spec.data, "size": op.sizes()}
        for op in nest.walk()
        if isinstance(op, rows.MatmulOp | rows.OuterOp)
    ]
    return {"kernel": kernel, "domain": domain, "products": products}


def summary(nest: rows.TraverseOp) -> str:
    """What a kernel does, for its name: `_segment_matmul`."""
    seen: list[str] = [
        word
        for kind, word in (
            (rows.SegmentOp, "segment"),
            (rows.MatmulOp, "matmul"),
            (rows.OuterOp, "outer"),
            (rows.TotalOp, "total"),
        )
        if any(isinstance(op, kind) for op in nest.walk())
    ]
    return "".join(f"_{w}" for w in seen or ["rows"])
