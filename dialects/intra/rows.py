"""The ops inside a nest under one name, for code that handles all of them."""

from __future__ import annotations

from .arithmetic import ApplyOp, CastOp, ConstOp, DotOp, DropoutOp, FoldOp, broadcast_dims
from .indices import CountOp, FirstOp, LengthOp, LookupOp, PositionOp
from .loops import (
    REDUCTIONS,
    WRITERS,
    SegmentOp,
    StageOp,
    TraverseOp,
    YieldOp,
    buffers_read,
    buffers_written,
    nests,
)
from .memory import LoadOp, StoreOp, TotalOp
from .products import MatmulOp, OuterOp
from .remote import AwaitOp, IssueOp
from .shapes import BroadcastOp, ConcatOp, ReshapeOp, SliceOp, TransposeOp

__all__ = [
    "REDUCTIONS",
    "WRITERS",
    "ApplyOp",
    "AwaitOp",
    "BroadcastOp",
    "CastOp",
    "ConcatOp",
    "ConstOp",
    "CountOp",
    "DotOp",
    "DropoutOp",
    "FirstOp",
    "FoldOp",
    "IssueOp",
    "LengthOp",
    "LoadOp",
    "LookupOp",
    "MatmulOp",
    "OuterOp",
    "PositionOp",
    "ReshapeOp",
    "SegmentOp",
    "SliceOp",
    "StageOp",
    "StoreOp",
    "TotalOp",
    "TransposeOp",
    "TraverseOp",
    "YieldOp",
    "broadcast_dims",
    "buffers_read",
    "buffers_written",
    "nests",
]
