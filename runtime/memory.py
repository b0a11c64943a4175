"""Where the buffers of programs lie: what a phase asks for addresses."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

from numpy.typing import NDArray


class Region(NamedTuple):
    """Where something lies: an address, and bytes; it lies there while `kept` lives."""

    address: int
    size: int
    kept: object = None


class Lease(Protocol):
    """Memory that is the caller's while the object lives."""

    address: int


class Handle(NamedTuple):
    """What other processes open an allocation by, `HANDLE_BYTES` long, and how far in it something
    begins. No two allocations ever have the same name, be they at the same place."""

    name: bytes
    offset: int


HANDLE_BYTES = 64
"""Of names of allocations: as many as CUDA's."""


class CannotOpen(RuntimeError):
    """Memory of another process cannot be read here."""


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


@runtime_checkable
class Exporting(Memory, Protocol):
    """Memory that kernels of other processes can read."""

    def export(self, address: int) -> Handle | None:
        """What others find by what lies at an address; None where its allocation is none that they
        can open."""
        ...

    def open(self, name: bytes) -> Lease:
        """The allocation of another process with this name, to be read.

        Raises:
            CannotOpen: it cannot be reached from here, or is gone.
        """
        ...

    def take_exported(self, size: int) -> Lease:
        """At least `size` bytes that others can open, where anything can be exported at all.

        Raises:
            MemoryError: there are no more.
        """
        ...

    def copy(self, to: int, source: int, size: int) -> None:
        """Copy bytes between addresses of the device or the host; they are there on return."""
        ...
