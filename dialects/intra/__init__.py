"""The `intra` dialect: kernels over buffers, neutral as to the target.

It says what is parallel, what is reduced, and which index finds a row.
"""

from xdsl.ir import Dialect

from . import bindings, exchange, peers, publication, rows
from .bindings import DomainAttr
from .remote import TokenType
from .schedule import GridAttr, PipelineAttr, ScheduleAttr

Intra = Dialect(
    "intra",
    [
        bindings.SizeOp,
        bindings.PiecesOp,
        bindings.IndexMapOp,
        bindings.PairIndexOp,
        bindings.OffsetsOp,
        bindings.MembersOp,
        bindings.MemberMapOp,
        bindings.MemberPairOp,
        bindings.WitnessOp,
        bindings.InputOp,
        bindings.OutputOp,
        bindings.TableOp,
        bindings.AllocOp,
        peers.PeerRowsOp,
        peers.PeerTotalsOp,
        bindings.PartOp,
        bindings.ViewOp,
        bindings.ColumnsOp,
        bindings.SumSizesOp,
        rows.LookupOp,
        rows.LengthOp,
        rows.FirstOp,
        rows.PositionOp,
        rows.CountOp,
        rows.LoadOp,
        rows.StoreOp,
        rows.TotalOp,
        rows.IssueOp,
        rows.AwaitOp,
        rows.ConstOp,
        rows.ApplyOp,
        rows.CastOp,
        rows.ReshapeOp,
        rows.BroadcastOp,
        rows.TransposeOp,
        rows.SliceOp,
        rows.ConcatOp,
        rows.FoldOp,
        rows.DotOp,
        rows.DropoutOp,
        rows.MatmulOp,
        rows.OuterOp,
        rows.YieldOp,
        rows.SegmentOp,
        rows.StageOp,
        rows.TraverseOp,
        exchange.MoveStartOp,
        exchange.MoveWaitOp,
        exchange.AllReduceOp,
        publication.PublishOp,
        publication.RetireOp,
        publication.PublishAllOp,
        publication.RetireAllOp,
    ],
    [DomainAttr, GridAttr, PipelineAttr, ScheduleAttr, TokenType],
)
