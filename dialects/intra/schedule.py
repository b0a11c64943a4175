"""How a nest runs: the decisions of `schedule`, which a printer follows."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

VECTORS = (16, 32, 64)
"""Bytes that a vector may have."""
KEYS = ("vector_bytes", "block", "grain", "chunks", "row_cost", "prefetch", "panel")


@irdl_attr_definition
class ScheduleAttr(ParametrizedAttribute):
    """`#intra.schedule<vector_bytes = 32, block = 48, ..>`.

    At most `chunks` share the rows, each of about `grain` units of work (an edge is 1, a row
    `row_cost`); `block` rows go through the stages together; a panel of a matrix has at most
    `panel` vectors; rows that are gathered are asked for `prefetch` rows, or edges, before.
    """

    name = "intra.schedule"
    vector_bytes: IntAttr
    block: IntAttr
    grain: IntAttr
    chunks: IntAttr
    row_cost: IntAttr
    prefetch: IntAttr
    panel: IntAttr

    @staticmethod
    def of(**numbers: int) -> ScheduleAttr:
        """The schedule of these numbers."""
        return ScheduleAttr(*(IntAttr(numbers[k]) for k in KEYS))

    def numbers(self) -> dict[str, int]:
        """The decisions by name."""
        return {k: getattr(self, k).data for k in KEYS}

    def verify(self) -> None:
        width = self.vector_bytes.data
        if width not in VECTORS:
            raise VerifyException(f"vectors have 16, 32 or 64 bytes, not {width}")
        for key, value in self.numbers().items():
            least = 0 if key in ("row_cost", "prefetch") else 1
            if not least <= value < 2**31:
                raise VerifyException(f"{key} of a schedule is {least} or more, not {value}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        found: list[Attribute] = []
        with parser.in_angle_brackets():
            for key in KEYS:
                if found:
                    parser.parse_punctuation(",")
                parser.parse_keyword(key)
                parser.parse_punctuation("=")
                found.append(IntAttr(parser.parse_integer()))
        return found

    def print_parameters(self, printer: Printer) -> None:
        text = ", ".join(f"{k} = {v}" for k, v in self.numbers().items())
        printer.print_string(f"<{text}>")
