"""Memory of kernels, laid out as it is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from ..common.c_types import CType

VECTOR = 16
"""Bytes of what a thread loads at once, to which rows in memory of a block are aligned."""


class TeamMemory:
    """Memory of a team, laid out as it is asked for; a kernel declares it as `team_memory`."""

    def __init__(self) -> None:
        self.bytes = 0

    def take(self, c: CType, count: int) -> str:
        """The address of so many numbers."""
        offset = self.bytes
        self.bytes += -(-count * c.bytes // VECTOR) * VECTOR
        return f"(({c.memory} *)(team_memory + {offset}))"


class Workspace:
    """Scratch memory of one nest: constant size, laid out as it is asked for."""

    def __init__(self) -> None:
        self.bytes = 0

    def take(self, c: CType, count: int) -> str:
        """The address of so many numbers."""
        offset = self.bytes
        self.bytes += -(-count * c.bytes // 256) * 256
        return f"(({c.memory} *)(ws + {offset}))"


@dataclass
class Shared:
    """Shared memory of a block, laid out as it is asked for."""

    bytes: int = 0
    most: int = 48 * 1024

    def take(self, count: int, c: CType) -> str | None:
        """The address of so many numbers, None where there is no room."""
        size = -(-count * c.bytes // VECTOR) * VECTOR
        if self.bytes + size > self.most:
            return None
        offset = self.bytes
        self.bytes += size
        return f"(({c.memory} *)(shared_memory + {offset}))"
