"""The communicator of a process that has no others."""

from __future__ import annotations

from collections.abc import Sequence

from .board import Board, Note
from .peers import Channel, Messages, Peers
from .waiting import Pending


class Nothing(Pending):
    """No messages under way."""

    def poll(self) -> bool:
        return True

    def missing(self) -> Sequence[int]:
        return ()

    def left(self) -> int:
        return 0


class Alone(Peers):
    """Rank 0 of 1: what it sends itself is copied."""

    def __init__(self) -> None:
        super().__init__(0, 1, Note(Board.private(1), 0))

    def carry(
        self, sends: Messages, receives: Messages, channel: Channel, tag: int, name: str
    ) -> Pending:
        return Nothing(name, self.note)
