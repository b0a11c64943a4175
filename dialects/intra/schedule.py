"""How a nest runs: the decisions of `schedule` or `schedule-grid`, which a printer follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self, cast

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

VECTORS = (16, 32, 64)
"""Bytes that a vector may have."""
SHORT_ROW = 4
"""Vectors of a row that has less to do than the sum over its lanes takes to arrive."""
WARP = 32
"""Threads that run together on a GPU."""


class Decisions(ParametrizedAttribute):
    """Numbers by name, `<block = 48, grain = 8192>`: those of `KEYS`, 1 or more unless `MAY_BE_0`
    names them. The last may be left out where they are 0, if `MAY_BE_LEFT_OUT` names them."""

    KEYS: ClassVar[tuple[str, ...]] = ()
    MAY_BE_0: ClassVar[tuple[str, ...]] = ()
    MAY_BE_LEFT_OUT: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def of(cls, **numbers: int) -> Self:
        """The schedule of these numbers."""
        return cls(*(IntAttr(numbers.get(k, 0)) for k in cls.KEYS))

    def numbers(self) -> dict[str, int]:
        """The decisions by name."""
        return {k: cast("IntAttr", getattr(self, k)).data for k in self.KEYS}

    def verify(self) -> None:
        for key, value in self.numbers().items():
            least = 0 if key in self.MAY_BE_0 else 1
            if not least <= value < 2**31:
                raise VerifyException(f"{key} of a schedule is {least} or more, not {value}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        found: list[Attribute] = []
        with parser.in_angle_brackets():
            for key in cls.KEYS:
                if found and parser.parse_optional_punctuation(",") is None:
                    if key not in cls.MAY_BE_LEFT_OUT:
                        parser.raise_error(f"`, {key} = ` is missing")
                    found.append(IntAttr(0))
                    continue
                parser.parse_keyword(key)
                parser.parse_punctuation("=")
                found.append(IntAttr(parser.parse_integer()))
        return found

    def print_parameters(self, printer: Printer) -> None:
        shown = list(self.numbers().items())
        while shown[-1][1] == 0 and shown[-1][0] in self.MAY_BE_LEFT_OUT:
            shown.pop()
        text = ", ".join(f"{k} = {v}" for k, v in shown)
        printer.print_string(f"<{text}>")

    def numbers_in_vector(self, element_bytes: int) -> int:
        """How many numbers of a padded row are read at once, past its end too."""
        raise NotImplementedError(f"{self.name} says nothing of vectors: define numbers_in_vector")

    def packs(self, in_order: bool, columns: int, element_bytes: int) -> bool:
        """Whether the matrix of a product is copied into panels before it is used; its rows have
        `columns` numbers, `in_order` says whether they lie as the panels do."""
        raise NotImplementedError(f"{self.name} says nothing of panels: define packs")

    def pauses(self, row_bytes: int) -> bool:
        """Whether all rows of a block are reduced, each a row of so many bytes to a number, before
        any of them goes on."""
        raise NotImplementedError(f"{self.name} says nothing of rows that wait: define pauses")


@irdl_attr_definition
class ScheduleAttr(Decisions):
    """`#intra.schedule<vector_bytes = 32, block = 48, ..>`: on threads with vectors.

    At most `chunks` share the rows, each of about `grain` units of work (an edge is 1, a row
    `row_cost`); `block` rows go through the stages together; a panel of a matrix has at most
    `panel` vectors; rows that are gathered are asked for `prefetch` rows, or edges, before, and
    while products of a block run those of at most `meanwhile` rows, or edges, of the next. Where
    vectors can be `masked` (1), the rest of a row is read and written as a part of one.

    With a `round` of some blocks there are no chunks, but of pieces of long rows, on graphs where
    sums of outer products of each would take much beside what a step needs: threads share the
    blocks of a round, then the columns of its sums, of which each is kept once.
    """

    name = "intra.schedule"
    KEYS = (
        *("vector_bytes", "block", "grain", "chunks", "row_cost", "prefetch", "panel", "masked"),
        *("round", "meanwhile"),
    )
    MAY_BE_0 = ("row_cost", "prefetch", "masked", "round", "meanwhile")
    MAY_BE_LEFT_OUT = ("masked", "round", "meanwhile")

    vector_bytes: IntAttr
    block: IntAttr
    grain: IntAttr
    chunks: IntAttr
    row_cost: IntAttr
    prefetch: IntAttr
    panel: IntAttr
    masked: IntAttr
    round: IntAttr
    meanwhile: IntAttr

    def verify(self) -> None:
        if self.masked.data not in (0, 1):
            raise VerifyException(f"masked of a schedule is 0 or 1, not {self.masked.data}")
        width = self.vector_bytes.data
        if width not in VECTORS:
            raise VerifyException(f"vectors have 16, 32 or 64 bytes, not {width}")
        super().verify()

    def numbers_in_vector(self, element_bytes: int) -> int:
        return self.vector_bytes.data // element_bytes

    def packs(self, in_order: bool, columns: int, element_bytes: int) -> bool:
        lanes = self.numbers_in_vector(element_bytes)
        one_panel = columns % lanes == 0 and columns // lanes <= self.panel.data
        return not (in_order and one_panel)

    def pauses(self, row_bytes: int) -> bool:
        return row_bytes <= SHORT_ROW * self.vector_bytes.data


@irdl_attr_definition
class PipelineAttr(Decisions):
    """`#intra.pipeline<local = 16, remote = 16, pairs = 2, warps = 4, depth = 4, lanes = 16>`: how
    rows of other ranks are read while those here are summed (MGG, Wang et al., OSDI 2023).

    A group's rows here are reduced in partitions of `local` rows, those of other ranks in ones of
    `remote` rows. A team of `lanes` threads takes `pairs` partitions of each kind, in turns, with
    `depth` rows of other ranks on their way, each in a slot of its own. A block has `warps` warps.
    In MGG these are `ps`, `dist` and `wpb`.
    """

    name = "intra.pipeline"
    KEYS = ("local", "remote", "pairs", "warps", "depth", "lanes")

    local: IntAttr
    remote: IntAttr
    pairs: IntAttr
    warps: IntAttr
    depth: IntAttr
    lanes: IntAttr

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.warps.data * WARP

    @property
    def teams(self) -> int:
        """Of a block."""
        return self.threads // self.lanes.data

    def verify(self) -> None:
        super().verify()
        if self.warps.data > 32:
            raise VerifyException(f"a block has 1 to 32 warps, not {self.warps.data}")
        if not 2 <= self.depth.data <= 16:
            raise VerifyException(
                f"2 to 16 rows are on their way, not {self.depth.data}: with one nothing is done "
                "meanwhile"
            )
        need_team(self.lanes.data, self.threads)


@irdl_attr_definition
class GridAttr(Decisions):
    """`#intra.grid<threads = 256, lanes = 16, rows = 32, ..>`: on blocks of threads of a GPU.

    At most `chunks` blocks of `threads` share the rows, each of about `grain` units of work (an
    edge is 1, a row `row_cost`). `lanes` threads compute one row together, `rows` rows go through
    the stages of a block together. A group of more than two `piece`s of rows is reduced in pieces,
    where it may be. `edges` rows of a group are in flight; the compiler leaves registers for
    `resident` blocks a multiprocessor. With `joins = 1` the nest is computed in the launch of the
    one before it, by the same block; both have a single row.
    """

    name = "intra.grid"
    KEYS = (
        "threads",
        "lanes",
        "rows",
        "grain",
        "chunks",
        "row_cost",
        "piece",
        "edges",
        "resident",
        "joins",
    )
    MAY_BE_0 = ("row_cost", "joins")
    MAY_BE_LEFT_OUT = ("joins",)

    threads: IntAttr
    lanes: IntAttr
    rows: IntAttr
    grain: IntAttr
    chunks: IntAttr
    row_cost: IntAttr
    piece: IntAttr
    edges: IntAttr
    resident: IntAttr
    joins: IntAttr

    def verify(self) -> None:
        super().verify()
        threads, lanes = self.threads.data, self.lanes.data
        if threads % WARP or threads > 1024:
            raise VerifyException(f"a block has 32, 64, .. 1024 threads, not {threads}")
        need_team(lanes, threads)

    def numbers_in_vector(self, element_bytes: int) -> int:
        return 1

    def packs(self, in_order: bool, columns: int, element_bytes: int) -> bool:
        return False

    def pauses(self, row_bytes: int) -> bool:
        return False  # other warps go on meanwhile


def need_team(lanes: int, threads: int) -> None:
    """Raises VerifyException unless so many threads of a block can compute a row together."""
    if lanes != threads and (lanes > WARP or lanes & (lanes - 1)):
        raise VerifyException(
            f"a row is computed by 1, 2, 4, .. 32 lanes or by all {threads} threads, not by {lanes}"
        )
