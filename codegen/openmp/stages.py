"""What a nest is printed from: the decisions of its schedule, and its stages in order."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException, VerifyException

from ...dialects.intra import rows
from ...dialects.intra.schedule import ScheduleAttr
from ..common.c_types import Vectors


class Schedule:
    """The decisions of `schedule` for a nest, as numbers."""

    def __init__(self, nest: rows.TraverseOp) -> None:
        """Raises PassFailedException for a nest that has no schedule of threads, or is not cut."""
        if not isinstance(nest.schedule, ScheduleAttr):
            raise PassFailedException("a nest has no schedule: run `schedule` before printing")
        try:
            nest.check_cut()
        except VerifyException as error:
            raise PassFailedException(str(error)) from error
        found = nest.schedule.numbers()
        self.vector_bytes, self.block = found["vector_bytes"], found["block"]
        self.grain, self.chunks = found["grain"], found["chunks"]
        self.row_cost, self.panel, self.round = found["row_cost"], found["panel"], found["round"]
        self.prefetch, self.meanwhile = found["prefetch"], found["meanwhile"]
        self.vectors = Vectors(found["vector_bytes"], bool(found["masked"]))


@dataclass
class Stage:
    """Row-wise ops of a nest, where there are some, then the products that follow them."""

    cut: rows.StageOp | None
    products: list[rows.MatmulOp | rows.OuterOp] = field(
        default_factory=list[rows.MatmulOp | rows.OuterOp]
    )

    @property
    def ops(self) -> list[Operation]:
        """The row-wise ops."""
        return [] if self.cut is None else list(self.cut.body.block.ops)[:-1]


def stages_of(nest: rows.TraverseOp) -> list[Stage]:
    """The stages of a nest that is cut, in order."""
    found: list[Stage] = []
    for op in nest.body.block.ops:
        if isinstance(op, rows.StageOp):
            found.append(Stage(op))
        elif isinstance(op, rows.MatmulOp | rows.OuterOp):
            found = found or [Stage(None)]
            found[-1].products.append(op)
    return found
