"""Where the buffers of programs lie: what a phase asks for addresses."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray


class Lease(Protocol):
    """Memory that is the caller's while the object lives."""

    address: int


class Table(Protocol):
    """A table that stays as it is while the object lives."""

    @property
    def address(self) -> int: ...

    @property
    def nbytes(self) -> int: ...


class Memory(Protocol):
    """The memory of the host, or of a device. `device` is its name, as torch spells it; rows of
    arguments begin at multiples of `alignment` bytes."""

    device: str
    alignment: int

    def upload(self, array: NDArray[Any]) -> Table:
        """A table of the host's, which does not change afterwards, there."""
        ...

    def take(self, size: int) -> Lease:
        """At least `size` bytes of undefined content.

        Raises:
            MemoryError: there are no more.
        """
        ...
