"""How groups are reduced in pieces, and by whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ...dialects.intra import rows
from ..common.writer import Writer
from .rooms import TeamMemory
from .team import Team

if TYPE_CHECKING:
    from .row_code import RowCode


@dataclass(frozen=True)
class Pieces:
    """How a group longer than `longest` is reduced in pieces: the C names of their table and its
    length, and of the rows of each result; `piece` where a piece is computed, its bounds."""

    segment: rows.SegmentOp
    table: str
    count: str
    longest: int
    partials: tuple[str, ...]
    piece: tuple[str, str] | None = None


class Ahead(Protocol):
    """What comes around the rows of a group that are on their way before their turn."""

    segment: rows.SegmentOp

    def arrive(self, code: RowCode, position: str) -> None:
        """In front of what is computed of a row."""
        ...

    def leave(self, code: RowCode) -> None:
        """Behind it."""
        ...


@dataclass(frozen=True)
class PieceCode:
    """Where pieces of groups are printed: by which team, with which memory."""

    out: Writer
    team: Team
    memory: TeamMemory
    ahead: Ahead | None = None
